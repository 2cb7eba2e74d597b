package convoke.conformance;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.EnumSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;

import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.RequestContext;

/** Evidence: the group APIs that reached the real brokers, who sent them, and over whose sockets. */
public final class Requests {
    private static final Set<ApiKeys> GROUP_APIS = EnumSet.of(ApiKeys.OFFSET_COMMIT, ApiKeys.OFFSET_FETCH, ApiKeys.JOIN_GROUP,
        ApiKeys.HEARTBEAT, ApiKeys.LEAVE_GROUP, ApiKeys.SYNC_GROUP, ApiKeys.DESCRIBE_GROUPS, ApiKeys.LIST_GROUPS,
        ApiKeys.TXN_OFFSET_COMMIT, ApiKeys.DELETE_GROUPS, ApiKeys.OFFSET_DELETE, ApiKeys.CONSUMER_GROUP_HEARTBEAT,
        ApiKeys.CONSUMER_GROUP_DESCRIBE);
    private static final String CONVOKES_CLIENT_ID = "convoke";

    /** `API, sender, way`, each with how often. */
    private static final Map<String, Integer> COUNTS = new TreeMap<>();
    private static final Map<String, String> WAYS = new ConcurrentHashMap<>();

    private Requests() {
    }

    public static void arrived(RequestContext context) {
        ApiKeys api = context.header.apiKey();
        if (!GROUP_APIS.contains(api)) {
            return;
        }
        String sender = CONVOKES_CLIENT_ID.equals(context.header.clientId()) ? "convoke" : "client";
        String way = WAYS.computeIfAbsent(context.connectionId, Requests::way);
        synchronized (COUNTS) {
            COUNTS.merge(String.join("\t", api.name, sender, way), 1, Integer::sum);
        }
    }

    /** What has arrived since it was asked before. */
    static Map<String, Integer> taken() {
        synchronized (COUNTS) {
            Map<String, Integer> taken = new TreeMap<>(COUNTS);
            COUNTS.clear();
            return taken;
        }
    }

    /** `direct` where the socket at the other end is one of this JVM, in which the tests and their clients run. */
    private static String way(String connectionId) {
        // HOST:PORT of the broker, HOST:PORT of who connected, and numbers.
        String[] ends = connectionId.split("-");
        try {
            return isOwn(inode(port(ends[1]), port(ends[0]))) ? "direct" : "front";
        } catch (IOException error) {
            return error.toString();
        }
    }

    private static int port(String address) {
        return Integer.parseInt(address.substring(address.lastIndexOf(':') + 1));
    }

    private static String inode(int local, int remote) throws IOException {
        for (String table : new String[] {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
            for (String line : Files.readAllLines(Path.of(table))) {
                String[] fields = line.trim().split("\\s+");
                if (fields[1].endsWith(hex(local)) && fields[2].endsWith(hex(remote))) {
                    return fields[9];
                }
            }
        }
        throw new IOException("no socket from port " + local + " to port " + remote);
    }

    private static String hex(int port) {
        return String.format(":%04X", port);
    }

    private static boolean isOwn(String inode) throws IOException {
        Path link = Path.of("socket:[" + inode + "]");
        try (DirectoryStream<Path> descriptors = Files.newDirectoryStream(Path.of("/proc/self/fd"))) {
            for (Path descriptor : descriptors) {
                if (Files.isSymbolicLink(descriptor) && link.equals(target(descriptor))) {
                    return true;
                }
            }
        }
        return false;
    }

    /** Null where the descriptor was closed meanwhile. */
    private static Path target(Path descriptor) {
        try {
            return Files.readSymbolicLink(descriptor);
        } catch (IOException closed) {
            return null;
        }
    }
}
