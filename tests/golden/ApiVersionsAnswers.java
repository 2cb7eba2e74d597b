// Asks a running broker for ApiVersions in every way that matters and prints what it answers.
//
// java tests/golden/ApiVersionsAnswers.java RELEASE HOST PORT CLUSTER_ID NODE_ID
//
// A line is: release, version, name, request body in hex, answer body in hex (without correlation id) or "closed",
// parted by spaces. tests/golden/api_versions_answers.txt holds the lines of Apache Kafka 3.8.1, 4.1.1 and 4.4.0,
// each one KRaft node (4) of cluster BASEBASEBASEBASEBASEBA with the newest features, on a PLAINTEXT listener.

import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;

public class ApiVersionsAnswers {
    private static String release;
    private static String host;
    private static int port;

    public static void main(String[] args) throws IOException {
        release = args[0];
        host = args[1];
        port = Integer.parseInt(args[2]);
        String cluster = args[3];
        int node = Integer.parseInt(args[4]);
        for (int v = 0; v <= 5; v++) {
            ask(v, "plain", request(v, "testing", "1", null, -1));
        }
        ask(99, "future", new byte[] {1, 2, 3});
        ask(6, "next", request(5, "testing", "1", null, -1));
        ask(-1, "minus", new byte[] {});
        for (int v = 3; v <= 5; v++) {
            ask(v, "no-name", request(v, "", "1", null, -1));
            ask(v, "no-version", request(v, "testing", "", null, -1));
            ask(v, "illegal-name", request(v, "con voke", "1", null, -1));
            ask(v, "dash-end", request(v, "testing-", "1", null, -1));
            ask(v, "dot-start", request(v, "testing", ".1", null, -1));
            ask(v, "one-letter", request(v, "c", "1.0-rc.1", null, -1));
        }
        ask(5, "both-right", request(5, "testing", "1", cluster, node));
        ask(5, "wrong-cluster", request(5, "testing", "1", "x" + cluster, node));
        ask(5, "wrong-node", request(5, "testing", "1", cluster, node + 1));
        ask(5, "negative-node", request(5, "testing", "1", cluster, -2));
        ask(5, "only-cluster", request(5, "testing", "1", cluster, -1));
        ask(5, "only-node", request(5, "testing", "1", null, node));
        ask(5, "only-negative-node", request(5, "testing", "1", null, -2));
        ask(5, "empty-cluster", request(5, "testing", "1", "", node));
        ask(5, "empty-cluster-only", request(5, "testing", "1", "", -1));
        ask(5, "no-name-wrong-node", request(5, "", "1", cluster, node + 1));
        ask(3, "garbage", new byte[] {(byte) 0xff, 1, 2});
        ask(3, "trailing", new byte[] {2, 'a', 2, '1', 0, 9, 9});
        ask(0, "trailing", new byte[] {2, 'a', 2, '1', 0, 9, 9});
    }

    private static byte[] request(int version, String name, String software, String cluster, int node) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        if (version >= 3) {
            string(out, name);
            string(out, software);
            if (version >= 5) {
                string(out, cluster);
                out.writeBytes(ByteBuffer.allocate(4).putInt(node).array());
            }
            out.write(0);
        }
        return out.toByteArray();
    }

    private static void string(ByteArrayOutputStream out, String text) {
        if (text == null) {
            out.write(0);
            return;
        }
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        out.write(bytes.length + 1);
        out.writeBytes(bytes);
    }

    private static void ask(int version, String name, byte[] body) throws IOException {
        try (Socket socket = new Socket(host, port)) {
            socket.setSoTimeout(5000);
            ByteArrayOutputStream frame = new ByteArrayOutputStream();
            DataOutputStream request = new DataOutputStream(frame);
            request.writeShort(18);
            request.writeShort(version);
            request.writeInt(7);
            request.writeShort(2);
            request.writeBytes("id");
            if (version >= 3) {
                request.write(0);
            }
            request.write(body);
            DataOutputStream out = new DataOutputStream(socket.getOutputStream());
            out.writeInt(frame.size());
            out.write(frame.toByteArray());
            out.flush();
            String answer;
            try {
                DataInputStream in = new DataInputStream(socket.getInputStream());
                byte[] bytes = new byte[in.readInt()];
                in.readFully(bytes);
                answer = HexFormat.of().formatHex(bytes, 4, bytes.length);
            } catch (EOFException e) {
                answer = "closed";
            }
            System.out.printf("%s %d %s %s %s%n", release, version, name, HexFormat.of().formatHex(body), answer);
        }
    }
}
