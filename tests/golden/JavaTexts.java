// Makes tests/golden/java_texts.txt: what Java's String makes of bytes that are not all UTF-8.
//
//   java tests/golden/JavaTexts.java > tests/golden/java_texts.txt
//
// A line is the bytes and the text's own UTF-8, both in hex: every mix of up to three bytes from the edges of what UTF-8
// allows, and many of four and five.

import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Random;

public class JavaTexts {
    static final int[] EDGES = {
        0x41, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc1, 0xc2, 0xe0, 0xe1, 0xed, 0xf0, 0xf1, 0xf4, 0xff
    };

    public static void main(String[] args) {
        for (int one : EDGES) {
            print(one);
            for (int two : EDGES) {
                print(one, two);
                for (int three : EDGES) {
                    print(one, two, three);
                }
            }
        }
        Random random = new Random(1);
        for (int round = 0; round < 3_000; round++) {
            int[] bytes = new int[4 + round % 2];
            for (int at = 0; at < bytes.length; at++) {
                bytes[at] = EDGES[random.nextInt(EDGES.length)];
            }
            print(bytes);
        }
    }

    static void print(int... ints) {
        byte[] bytes = new byte[ints.length];
        for (int at = 0; at < ints.length; at++) {
            bytes[at] = (byte) ints[at];
        }
        String text = new String(bytes, StandardCharsets.UTF_8);
        HexFormat hex = HexFormat.of();
        System.out.println(hex.formatHex(bytes) + " " + hex.formatHex(text.getBytes(StandardCharsets.UTF_8)));
    }
}
