// Makes tests/golden/coordinator_records.txt with Apache Kafka's own classes, and reads records back with them.
//
//   java -cp "$KAFKA_LIBS/*" tests/golden/CoordinatorRecords.java > tests/golden/coordinator_records.txt
//   java -cp "$KAFKA_LIBS/*" tests/golden/CoordinatorRecords.java read < lines
//
// KAFKA_LIBS holds the jars of Apache Kafka 4.4.0 (kafka-group-coordinator, kafka-coordinator-common, kafka-server-common,
// kafka-clients, jackson). A line is: name, key in hex, value in hex ("-" for a tombstone), parted by spaces.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordHelpers;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.coordinator.group.OffsetAndMetadata;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupCurrentMemberAssignmentKey;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupCurrentMemberAssignmentValue;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupMemberMetadataValue;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupPartitionMetadataKey;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupPartitionMetadataValue;
import org.apache.kafka.coordinator.group.generated.GroupMetadataKey;
import org.apache.kafka.coordinator.group.generated.GroupMetadataValue;
import org.apache.kafka.coordinator.group.generated.LegacyOffsetCommitKey;
import org.apache.kafka.coordinator.group.generated.LegacyOffsetCommitValue;
import org.apache.kafka.coordinator.group.generated.OffsetCommitKey;
import org.apache.kafka.coordinator.group.generated.OffsetCommitValue;
import org.apache.kafka.coordinator.group.modern.MemberState;
import org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroupMember;
import org.apache.kafka.coordinator.group.modern.consumer.ResolvedRegularExpression;
import org.apache.kafka.server.common.ApiMessageAndVersion;

public class CoordinatorRecords {
    static final GroupCoordinatorRecordSerde SERDE = new GroupCoordinatorRecordSerde();

    public static void main(String[] args) throws Exception {
        if (args.length > 0 && args[0].equals("read")) {
            read();
            return;
        }
        // What Kafka's coordinator writes today.
        print("offset-written", GroupCoordinatorRecordHelpers.newOffsetCommitRecord("orders", "payments", 7,
            new OffsetAndMetadata(123456789012L, OptionalInt.of(42), "caf\u00e9 \ud83d\ude80", 1764500000123L,
                OptionalLong.empty(), new Uuid(0x0123456789abcdefL, 0x8edcba9876543210L))));
        print("offset-written-bare", GroupCoordinatorRecordHelpers.newOffsetCommitRecord("", "t", 0,
            new OffsetAndMetadata(0L, OptionalInt.empty(), "", 1764500000123L, OptionalLong.empty(), Uuid.ZERO_UUID)));
        print("offset-written-expiring", GroupCoordinatorRecordHelpers.newOffsetCommitRecord("orders", "payments", 7,
            new OffsetAndMetadata(5L, OptionalInt.of(42), "m", 1764500000123L, OptionalLong.of(1764500060123L),
                new Uuid(1, 2))));
        print("offset-tombstone", GroupCoordinatorRecordHelpers.newOffsetCommitTombstoneRecord("orders", "payments", 7));
        print("group-tombstone", GroupCoordinatorRecordHelpers.newGroupMetadataTombstoneRecord("orders"));
        // Long texts and bytes need more than one byte of length.
        print("offset-long-metadata", GroupCoordinatorRecordHelpers.newOffsetCommitRecord("orders", "payments", 7,
            new OffsetAndMetadata(5L, OptionalInt.of(1), "x".repeat(300), 1L, OptionalLong.empty(), Uuid.ZERO_UUID)));

        // Every version that may be met.
        for (short version = 0; version <= OffsetCommitValue.HIGHEST_SUPPORTED_VERSION; version++) {
            OffsetCommitValue value = new OffsetCommitValue().setOffset(77).setMetadata("meta").setCommitTimestamp(1000);
            if (version == 1) value.setExpireTimestamp(2000);
            if (version >= 3) value.setLeaderEpoch(9);
            if (version >= 4) value.setTopicId(new Uuid(3, 4));
            print("offset-v" + version, record(new OffsetCommitKey().setGroup("g").setTopic("t").setPartition(3), value, version));
        }
        print("offset-legacy", record(new LegacyOffsetCommitKey().setGroup("g").setTopic("t").setPartition(3),
            new LegacyOffsetCommitValue().setOffset(77).setMetadata("meta").setCommitTimestamp(1000), (short) 0));
        for (short version = 0; version <= GroupMetadataValue.HIGHEST_SUPPORTED_VERSION; version++) {
            print("group-v" + version, record(new GroupMetadataKey().setGroup("g"), group(version), version));
        }
        short newest = GroupMetadataValue.HIGHEST_SUPPORTED_VERSION;
        print("group-empty", record(new GroupMetadataKey().setGroup("g"), new GroupMetadataValue()
            .setProtocolType("consumer").setGeneration(5).setProtocol(null).setLeader(null)
            .setCurrentStateTimestamp(1764500000123L).setMembers(List.of()), newest));
        consumerGroup();
    }

    // The records of a consumer group (KIP-848), as the coordinator writes them.
    static void consumerGroup() {
        Uuid one = new Uuid(1, 2);
        Uuid two = new Uuid(3, 4);
        print("consumer-epoch", GroupCoordinatorRecordHelpers.newConsumerGroupEpochRecord("g", 7, 0x0123456789abcdefL));
        print("consumer-epoch-no-topics", GroupCoordinatorRecordHelpers.newConsumerGroupEpochRecord("g", 1, 0));
        print("consumer-epoch-tombstone", GroupCoordinatorRecordHelpers.newConsumerGroupEpochTombstoneRecord("g"));
        print("consumer-partition-metadata", record(new ConsumerGroupPartitionMetadataKey().setGroupId("g"),
            new ConsumerGroupPartitionMetadataValue().setTopics(List.of(new ConsumerGroupPartitionMetadataValue.TopicMetadata()
                .setTopicId(one).setTopicName("t").setNumPartitions(3))), (short) 0));
        print("consumer-partition-metadata-tombstone",
            GroupCoordinatorRecordHelpers.newConsumerGroupSubscriptionMetadataTombstoneRecord("g"));
        print("consumer-member", GroupCoordinatorRecordHelpers.newConsumerGroupMemberSubscriptionRecord("g",
            new ConsumerGroupMember.Builder("m").setInstanceId("i").setRackId("r").setClientId("c").setClientHost("/10.0.0.1")
                .setSubscribedTopicNames(List.of("b", "a")).setSubscribedTopicRegex("x.*").setRebalanceTimeoutMs(60000)
                .setServerAssignorName("uniform").build()));
        print("consumer-member-bare", GroupCoordinatorRecordHelpers.newConsumerGroupMemberSubscriptionRecord("g",
            new ConsumerGroupMember.Builder("m").setClientId("").setClientHost("/10.0.0.1").build()));
        print("consumer-member-classic", GroupCoordinatorRecordHelpers.newConsumerGroupMemberSubscriptionRecord("g",
            new ConsumerGroupMember.Builder("m").setClientId("c").setClientHost("/10.0.0.1").setRebalanceTimeoutMs(60000)
                .setSubscribedTopicNames(List.of("t")).setClassicMemberMetadata(
                    new ConsumerGroupMemberMetadataValue.ClassicMemberMetadata().setSessionTimeoutMs(45000)
                        .setSupportedProtocols(List.of(new ConsumerGroupMemberMetadataValue.ClassicProtocol()
                            .setName("range").setMetadata(new byte[200])))).build()));
        print("consumer-member-tombstone", GroupCoordinatorRecordHelpers.newConsumerGroupMemberSubscriptionTombstoneRecord("g", "m"));
        print("consumer-target", GroupCoordinatorRecordHelpers.newConsumerGroupTargetAssignmentMetadataRecord("g", 7, 1764500000123L));
        print("consumer-target-no-time", GroupCoordinatorRecordHelpers.newConsumerGroupTargetAssignmentMetadataRecord("g", 7, 0));
        print("consumer-target-tombstone", GroupCoordinatorRecordHelpers.newConsumerGroupTargetAssignmentMetadataTombstoneRecord("g"));
        print("consumer-target-member", GroupCoordinatorRecordHelpers.newConsumerGroupTargetAssignmentRecord("g", "m",
            new TreeMap<>(Map.of(one, new TreeSet<>(List.of(0, 5)), two, new TreeSet<>(List.of(1))))));
        print("consumer-target-member-none", GroupCoordinatorRecordHelpers.newConsumerGroupTargetAssignmentRecord("g", "m", Map.of()));
        print("consumer-target-member-tombstone",
            GroupCoordinatorRecordHelpers.newConsumerGroupTargetAssignmentTombstoneRecord("g", "m"));
        print("consumer-current", GroupCoordinatorRecordHelpers.newConsumerGroupCurrentAssignmentRecord("g",
            new ConsumerGroupMember.Builder("m").setState(MemberState.UNREVOKED_PARTITIONS).setMemberEpoch(9).setPreviousMemberEpoch(8)
                .setAssignedPartitions(new TreeMap<>(Map.of(one, new TreeMap<>(Map.of(0, 9, 5, 7)))))
                .setPartitionsPendingRevocation(Map.of(two, Map.of(1, 4))).build()));
        print("consumer-current-none", GroupCoordinatorRecordHelpers.newConsumerGroupCurrentAssignmentRecord("g",
            new ConsumerGroupMember.Builder("m").setState(MemberState.STABLE).setMemberEpoch(9).setPreviousMemberEpoch(8).build()));
        // As before KIP-1251.
        print("consumer-current-no-epochs", record(
            new ConsumerGroupCurrentMemberAssignmentKey().setGroupId("g").setMemberId("m"),
            new ConsumerGroupCurrentMemberAssignmentValue().setMemberEpoch(9).setPreviousMemberEpoch(8).setState((byte) 2)
                .setAssignedPartitions(List.of(new ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions()
                    .setTopicId(one).setPartitions(List.of(3, 1)))), (short) 0));
        print("consumer-current-tombstone", GroupCoordinatorRecordHelpers.newConsumerGroupCurrentAssignmentTombstoneRecord("g", "m"));
        print("consumer-regex", GroupCoordinatorRecordHelpers.newConsumerGroupRegularExpressionRecord("g", "x.*",
            new ResolvedRegularExpression(new TreeSet<>(List.of("xb", "xa")), 12345L, 1764500000123L)));
        print("consumer-regex-tombstone", GroupCoordinatorRecordHelpers.newConsumerGroupRegularExpressionTombstone("g", "x.*"));
    }

    static GroupMetadataValue group(short version) {
        GroupMetadataValue.MemberMetadata first = new GroupMetadataValue.MemberMetadata()
            .setMemberId("c1-id").setClientId("c1").setClientHost("/127.0.0.1").setSessionTimeout(45000)
            .setSubscription(new byte[] {0, 1, 2}).setAssignment("a".repeat(200).getBytes(StandardCharsets.UTF_8));
        GroupMetadataValue.MemberMetadata second = new GroupMetadataValue.MemberMetadata()
            .setMemberId("c2-id").setClientId("").setClientHost("/10.0.0.2").setSessionTimeout(10000)
            .setSubscription(new byte[0]).setAssignment(new byte[0]);
        if (version >= 1) {
            first.setRebalanceTimeout(300000);
            second.setRebalanceTimeout(60000);
        }
        if (version >= 3) first.setGroupInstanceId("instance-1");
        GroupMetadataValue value = new GroupMetadataValue().setProtocolType("consumer").setGeneration(12)
            .setProtocol("range").setLeader("c1-id").setMembers(List.of(first, second));
        if (version >= 2) value.setCurrentStateTimestamp(1764500000123L);
        return value;
    }

    static CoordinatorRecord record(ApiMessage key, ApiMessage value, short version) {
        return CoordinatorRecord.record(key, new ApiMessageAndVersion(value, version));
    }

    static void print(String name, CoordinatorRecord record) {
        HexFormat hex = HexFormat.of();
        byte[] value = SERDE.serializeValue(record);
        System.out.println(name + " " + hex.formatHex(SERDE.serializeKey(record)) + " " + (value == null ? "-" : hex.formatHex(value)));
    }

    static void read() throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split(" ");
            ByteBuffer key = ByteBuffer.wrap(HexFormat.of().parseHex(parts[1]));
            ByteBuffer value = parts[2].equals("-") ? null : ByteBuffer.wrap(HexFormat.of().parseHex(parts[2]));
            try {
                System.out.println(parts[0] + ": " + SERDE.deserialize(key, value));
            } catch (RuntimeException e) {
                System.out.println(parts[0] + ": " + e);
            }
        }
    }
}
