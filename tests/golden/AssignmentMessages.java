// Makes tests/golden/assignment_messages.txt: the messages and tagged fields of client-side assignors, which are Convoke's own.
//
//   java -cp "$KAFKA_LIBS/*" tests/golden/AssignmentMessages.java > tests/golden/assignment_messages.txt
//
// KAFKA_LIBS holds the jars of Apache Kafka 4.4.0 (kafka-clients). The messages are written down here a second time, as the
// README's section on client-side assignors describes them, with the types that Kafka's generated messages are made of, and
// Kafka encodes them. The heartbeats are Kafka's own messages with our tagged fields among the unknown ones, as any client
// would send them; Kafka reads each back and writes it again, and skips the fields in doing so.
// The output has the tables in the form of message_schemas.txt, and then bodies in the form of wire_messages.txt.

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatRequestData;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatResponseData;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.CompactArrayOf;
import org.apache.kafka.common.protocol.types.Field;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.Struct;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;

public class AssignmentMessages {
    static final short PREPARE = 20848;
    static final short INSTALL = 20849;
    static final Uuid ORDERS = new Uuid(1, 2);
    static final Uuid PAYMENTS = new Uuid(3, 4);

    static final Schema TOPIC_PARTITIONS = struct(
        field("topic_id", Type.UUID), field("partitions", new CompactArrayOf(Type.INT32)));
    static final Schema PREPARE_REQUEST = struct(
        field("group_id", Type.COMPACT_STRING), field("member_id", Type.COMPACT_STRING), field("member_epoch", Type.INT32));
    static final Schema MEMBER_ASSIGNOR = struct(
        field("reason", Type.INT8), field("metadata_version", Type.INT16), field("metadata_bytes", Type.COMPACT_BYTES));
    static final Schema PREPARED_MEMBER = struct(
        field("member_id", Type.COMPACT_STRING), field("member_epoch", Type.INT32),
        field("instance_id", Type.COMPACT_NULLABLE_STRING), field("rack_id", Type.COMPACT_NULLABLE_STRING),
        field("subscribed_topic_ids", new CompactArrayOf(Type.UUID)), field("assignor", MEMBER_ASSIGNOR),
        field("topic_partitions", new CompactArrayOf(TOPIC_PARTITIONS)));
    static final Schema TOPIC = struct(
        field("topic_id", Type.UUID), field("topic_name", Type.COMPACT_STRING), field("num_partitions", Type.INT32));
    static final Schema PREPARE_RESPONSE = struct(
        field("throttle_time_ms", Type.INT32), field("error_code", Type.INT16),
        field("error_message", Type.COMPACT_NULLABLE_STRING), field("group_epoch", Type.INT32),
        field("assignor_name", Type.COMPACT_STRING), field("members", new CompactArrayOf(PREPARED_MEMBER)),
        field("topics", new CompactArrayOf(TOPIC)));
    static final Schema INSTALLED_MEMBER = struct(
        field("member_id", Type.COMPACT_STRING), field("partitions", new CompactArrayOf(TOPIC_PARTITIONS)),
        field("metadata_version", Type.INT16), field("metadata_bytes", Type.COMPACT_BYTES));
    static final Schema INSTALL_REQUEST = struct(
        field("group_id", Type.COMPACT_STRING), field("member_id", Type.COMPACT_STRING), field("member_epoch", Type.INT32),
        field("group_epoch", Type.INT32), field("error", Type.INT8), field("members", new CompactArrayOf(INSTALLED_MEMBER)));
    static final Schema INSTALL_RESPONSE = struct(
        field("throttle_time_ms", Type.INT32), field("error_code", Type.INT16),
        field("error_message", Type.COMPACT_NULLABLE_STRING));
    static final Schema CLIENT_ASSIGNOR = struct(
        field("name", Type.COMPACT_STRING), field("minimum_version", Type.INT16), field("maximum_version", Type.INT16),
        field("reason", Type.INT8), field("metadata_version", Type.INT16), field("metadata_bytes", Type.COMPACT_BYTES));

    static Field field(String name, Type type) {
        return new Field(name, type);
    }

    static Schema struct(Field... fields) {
        Field[] all = Arrays.copyOf(fields, fields.length + 1);
        all[fields.length] = Field.TaggedFieldsSection.of();
        return new Schema(all);
    }

    /** A struct with these values, in the order of its fields. */
    static Struct of(Schema schema, Object... values) {
        Struct struct = new Struct(schema);
        int next = 0;
        for (BoundField bound : schema.fields()) {
            if (bound.def.type instanceof TaggedFields) {
                struct.set(bound, new TreeMap<Integer, Object>());
            } else {
                Object value = values[next++];
                struct.set(bound, value instanceof List<?> list ? list.toArray() : value);
            }
        }
        return struct;
    }

    static ByteBuffer bytes(int... bytes) {
        ByteBuffer buffer = ByteBuffer.allocate(bytes.length);
        for (int each : bytes) {
            buffer.put((byte) each);
        }
        return buffer.flip();
    }

    public static void main(String[] args) {
        table("request", PREPARE, "ConsumerGroupPrepareAssignment", PREPARE_REQUEST);
        table("response", PREPARE, "ConsumerGroupPrepareAssignment", PREPARE_RESPONSE);
        table("request", INSTALL, "ConsumerGroupInstallAssignment", INSTALL_REQUEST);
        table("response", INSTALL, "ConsumerGroupInstallAssignment", INSTALL_RESPONSE);
        body("request", PREPARE, of(PREPARE_REQUEST, "orders-app", "m-1", 5));
        Struct all = of(TOPIC_PARTITIONS, ORDERS, List.of(0, 2));
        Struct first = of(PREPARED_MEMBER, "m-1", 5, "i-1", "r1", List.of(ORDERS, PAYMENTS),
            of(MEMBER_ASSIGNOR, (byte) 1, (short) 2, bytes(1, 2, 0xff)), List.of(all));
        Struct stock = of(PREPARED_MEMBER, "m-2", 4, null, null, List.of(),
            of(MEMBER_ASSIGNOR, (byte) 0, (short) 0, bytes()), List.of());
        body("response", PREPARE, of(PREPARE_RESPONSE, 3, (short) 0, null, 6, "lag-balanced", List.of(first, stock),
            List.of(of(TOPIC, ORDERS, "orders", 3), of(TOPIC, PAYMENTS, "pay\u00e9", 200))));
        body("response", PREPARE, of(PREPARE_RESPONSE, 0, (short) 113, "stale", 0, "", List.of(), List.of()));
        Struct target = of(INSTALLED_MEMBER, "m-1",
            List.of(of(TOPIC_PARTITIONS, ORDERS, List.of(0, 1, 2)), of(TOPIC_PARTITIONS, PAYMENTS, List.of(199))),
            (short) 300, bytes(0xca, 0xfe));
        Struct nothing = of(INSTALLED_MEMBER, "m-2", List.of(), (short) 0, bytes());
        body("request", INSTALL, of(INSTALL_REQUEST, "orders-app", "m-1", 5, 6, (byte) 0, List.of(target, nothing)));
        body("request", INSTALL, of(INSTALL_REQUEST, "orders-app", "m-1", 5, 6, (byte) -7, List.of()));
        body("response", INSTALL, of(INSTALL_RESPONSE, 0, (short) 0, null));
        body("response", INSTALL, of(INSTALL_RESPONSE, 9, (short) 20848, "partition 3 of orders is nobody's"));
        heartbeats();
    }

    /** Three requests: two assignors, none any more, and without the field; three responses: to compute, to compute for
     *  groups of a pattern, and an assignment. */
    static void heartbeats() {
        Object[] two = {
            of(CLIENT_ASSIGNOR, "lag-balanced", (short) 1, (short) 3, (byte) 2, (short) 3, bytes(9, 8)),
            of(CLIENT_ASSIGNOR, "plain", (short) -1, (short) 0, (byte) 0, (short) 0, bytes()),
        };
        heartbeat("request", request(), tag(20848, new CompactArrayOf(CLIENT_ASSIGNOR), two));
        heartbeat("request", request(), tag(20848, new CompactArrayOf(CLIENT_ASSIGNOR), new Object[0]));
        heartbeat("request", request());
        ConsumerGroupHeartbeatResponseData compute = new ConsumerGroupHeartbeatResponseData()
            .setMemberId("m-1").setMemberEpoch(5).setHeartbeatIntervalMs(5000);
        heartbeat("response", compute.duplicate(), tag(20848, Type.BOOLEAN, true));
        Object[] groups = {"orders-eu", "orders-\u00fc"};
        heartbeat("response", compute.duplicate(), tag(20849, new CompactArrayOf(Type.COMPACT_STRING), groups));
        ConsumerGroupHeartbeatResponseData.Assignment assignment = new ConsumerGroupHeartbeatResponseData.Assignment()
            .setTopicPartitions(List.of(new ConsumerGroupHeartbeatResponseData.TopicPartitions()
                .setTopicId(ORDERS).setPartitions(List.of(0, 1))));
        assignment.unknownTaggedFields().addAll(List.of(
            tag(20848, Type.INT8, (byte) -7), tag(20849, Type.INT16, (short) 300),
            tag(20850, Type.COMPACT_BYTES, bytes(0xca, 0xfe))));
        heartbeat("response", compute.setAssignment(assignment));
    }

    static ConsumerGroupHeartbeatRequestData request() {
        return new ConsumerGroupHeartbeatRequestData().setGroupId("orders-app").setMemberId("m-1").setMemberEpoch(5);
    }

    static RawTaggedField tag(int tag, Type type, Object value) {
        ByteBuffer content = ByteBuffer.allocate(type.sizeOf(value));
        type.write(content, value);
        return new RawTaggedField(tag, content.array());
    }

    static void heartbeat(String kind, Message message, RawTaggedField... fields) {
        message.unknownTaggedFields().addAll(List.of(fields));
        short version = 1;
        byte[] body = bytesOf(MessageUtil.toByteBufferAccessor(message, version).buffer());
        Message again = kind.equals("request")
            ? new ConsumerGroupHeartbeatRequestData(new ByteBufferAccessor(ByteBuffer.wrap(body)), version)
            : new ConsumerGroupHeartbeatResponseData(new ByteBufferAccessor(ByteBuffer.wrap(body)), version);
        if (!again.equals(message)) {
            throw new IllegalStateException(again + " is not " + message);
        }
        line(kind, (short) 68, version, body);
    }

    static byte[] bytesOf(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return bytes;
    }

    static void body(String kind, short key, Struct body) {
        ByteBuffer out = ByteBuffer.allocate(body.sizeOf());
        body.writeTo(out);
        line(kind, key, (short) 0, out.array());
    }

    static void line(String kind, short key, short version, byte[] body) {
        System.out.printf("%s %d %d %s%n", kind, key, version, HexFormat.of().formatHex(body));
    }

    static void table(String kind, short key, String name, Schema schema) {
        System.out.printf("%s %d %s 0-0 flexible 0%n", kind, key, name);
        fields("", schema);
    }

    static void fields(String path, Schema schema) {
        for (BoundField bound : schema.fields()) {
            Type type = bound.def.type;
            String name = path + bound.def.name;
            if (type instanceof TaggedFields) {
                continue;
            }
            if (type instanceof Schema inner) {
                System.out.printf("  %s struct 0-0%n", name);
                fields(name + ".", inner);
            } else if (type.isArray() && type.arrayElementType().get() instanceof Schema inner) {
                System.out.printf("  %s structs 0-0%n", name);
                fields(name + "[].", inner);
            } else if (type.isArray()) {
                System.out.printf("  %s array:%s 0-0%n", name, plain(type.arrayElementType().get()));
            } else {
                System.out.printf("  %s %s%s 0-0%n", name, plain(type), type.isNullable() ? "?" : "");
            }
        }
    }

    static String plain(Type type) {
        return type.toString().toLowerCase().replace("compact_", "").replace("nullable_", "");
    }
}
