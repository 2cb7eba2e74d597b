// Makes tests/golden/rewritten_answers.txt with kafka-clients' own classes: the answers that carry addresses, in
// every version.
//
// java -cp "$KAFKA_LIBS/*" tests/golden/RewrittenAnswers.java > tests/golden/rewritten_answers.txt
//
// KAFKA_LIBS holds the jars of Apache Kafka 4.4.0. A line is: api key, version, name, addresses in it as id=host:port
// (or "-"), body in hex, parted by spaces. Hosts and ports are unlikely to be met in other bytes, so that a test may
// look for them.

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.StringJoiner;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.*;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.record.internal.MemoryRecords;

public class RewrittenAnswers {
    /** An address of the upstream, as every answer names it. */
    record Node(int id, String host, int port, String rack) { }

    static final List<Node> NODES = List.of(
        new Node(1, "upstream-one.example.net", 47011, "rack-a"),
        new Node(2, "10.211.55.102", 47012, null),
        new Node(70000, "u3.example.net", 47013, ""));
    static final Uuid TOPIC = new Uuid(0x0123456789abcdefL, 0x7edcba9876543210L);

    public static void main(String[] args) {
        for (List<Node> nodes : List.of(List.<Node>of(), NODES.subList(0, 1), NODES)) {
            String name = switch (nodes.size()) { case 0 -> "none"; case 1 -> "one"; default -> "three"; };
            for (short v = 0; v <= 13; v++) {
                print(ApiKeys.METADATA, v, name, nodes, metadata(v, nodes));
            }
            for (short v = 4; v <= 6; v++) {
                print(ApiKeys.FIND_COORDINATOR, v, name, nodes, coordinators(nodes));
            }
            for (short v = 0; v <= 2; v++) {
                print(ApiKeys.DESCRIBE_CLUSTER, v, name, nodes, cluster(v, nodes));
            }
            print(ApiKeys.DESCRIBE_QUORUM, 2, name, nodes, quorum(2, nodes));
            for (short v = 3; v <= 13; v++) {
                print(ApiKeys.PRODUCE, v, name, v < 10 ? List.of() : nodes, produce(v, nodes));
            }
            for (short v = 4; v <= 18; v++) {
                print(ApiKeys.FETCH, v, name, v < 16 ? List.of() : nodes, fetch(v, nodes));
            }
            for (short v = 1; v <= 2; v++) {
                print(ApiKeys.SHARE_FETCH, v, name, nodes, shareFetch(nodes));
                print(ApiKeys.SHARE_ACKNOWLEDGE, v, name, nodes, shareAcknowledge(v, nodes));
            }
        }
        for (short v = 0; v <= 3; v++) {
            Node node = NODES.get(0);
            FindCoordinatorResponseData found = new FindCoordinatorResponseData()
                .setNodeId(node.id).setHost(node.host).setPort(node.port);
            print(ApiKeys.FIND_COORDINATOR, v, "one", List.of(node), v < 1 ? found : found.setErrorMessage("NONE"));
            FindCoordinatorResponseData missing = new FindCoordinatorResponseData()
                .setErrorCode((short) 15).setNodeId(-1).setHost("").setPort(-1);
            print(ApiKeys.FIND_COORDINATOR, v, "missing", List.of(), v < 1 ? missing : missing.setErrorMessage("no coordinator"));
        }
        for (short v = 0; v <= 1; v++) {
            print(ApiKeys.DESCRIBE_QUORUM, v, "none", List.of(), quorum(v, List.of()));
        }
        for (short v = 1; v <= 2; v++) {
            print(ApiKeys.DESCRIBE_CLUSTER, v, "controllers-refused", List.of(), new DescribeClusterResponseData()
                .setErrorCode((short) 114).setErrorMessage("sent to a broker").setEndpointType((byte) 2).setClusterId(""));
            print(ApiKeys.DESCRIBE_CLUSTER, v, "controllers", NODES, cluster(v, NODES).setEndpointType((byte) 2));
        }
        // Tagged fields that no version defines, before and behind those that matter.
        print(ApiKeys.PRODUCE, 13, "tagged", NODES, tagged(produce(13, NODES)));
        print(ApiKeys.FETCH, 18, "tagged", NODES, tagged(fetch(18, NODES)));
        print(ApiKeys.METADATA, 13, "tagged", NODES, tagged(metadata(13, NODES)));
        print(ApiKeys.SHARE_FETCH, 2, "tagged", NODES, tagged(shareFetch(NODES)));
        print(ApiKeys.SHARE_ACKNOWLEDGE, 2, "tagged", NODES, tagged(shareAcknowledge(2, NODES)));
        print(ApiKeys.DESCRIBE_QUORUM, 2, "tagged", NODES, tagged(quorum(2, NODES)));
    }

    static MetadataResponseData metadata(int version, List<Node> nodes) {
        MetadataResponseData data = new MetadataResponseData().setThrottleTimeMs(version < 3 ? 0 : 7)
            .setClusterId(version < 2 ? null : "cluster-of-the-upstream").setControllerId(version < 1 ? -1 : 1);
        for (Node node : nodes) {
            data.brokers().add(new MetadataResponseData.MetadataResponseBroker().setNodeId(node.id).setHost(node.host)
                .setPort(node.port).setRack(version < 1 ? null : node.rack));
        }
        data.topics().add(new MetadataResponseData.MetadataResponseTopic().setName("orders")
            .setTopicId(version < 10 ? Uuid.ZERO_UUID : TOPIC)
            .setPartitions(List.of(new MetadataResponseData.MetadataResponsePartition().setPartitionIndex(0).setLeaderId(1)
                .setLeaderEpoch(version < 7 ? -1 : 3).setReplicaNodes(List.of(1, 2)).setIsrNodes(List.of(1)))));
        return data;
    }

    static FindCoordinatorResponseData coordinators(List<Node> nodes) {
        List<FindCoordinatorResponseData.Coordinator> found = new ArrayList<>();
        for (Node node : nodes) {
            found.add(new FindCoordinatorResponseData.Coordinator().setKey("group-" + node.id).setNodeId(node.id)
                .setHost(node.host).setPort(node.port));
        }
        found.add(new FindCoordinatorResponseData.Coordinator().setKey("homeless").setNodeId(-1).setHost("").setPort(-1)
            .setErrorCode((short) 15).setErrorMessage("no coordinator"));
        return new FindCoordinatorResponseData().setCoordinators(found);
    }

    static DescribeClusterResponseData cluster(int version, List<Node> nodes) {
        DescribeClusterResponseData data = new DescribeClusterResponseData().setClusterId("cluster-of-the-upstream").setControllerId(2);
        for (Node node : nodes) {
            data.brokers().add(new DescribeClusterResponseData.DescribeClusterBroker().setBrokerId(node.id).setHost(node.host)
                .setPort(node.port).setRack(node.rack).setIsFenced(version >= 2 && node.id == 2));
        }
        return data;
    }

    static DescribeQuorumResponseData quorum(int version, List<Node> nodes) {
        List<DescribeQuorumResponseData.ReplicaState> voters = List.of(
            new DescribeQuorumResponseData.ReplicaState().setReplicaId(1).setLogEndOffset(99)
                .setReplicaDirectoryId(version < 2 ? Uuid.ZERO_UUID : TOPIC),
            new DescribeQuorumResponseData.ReplicaState().setReplicaId(2).setLogEndOffset(98));
        DescribeQuorumResponseData data = new DescribeQuorumResponseData().setTopics(List.of(
            new DescribeQuorumResponseData.TopicData().setTopicName("__cluster_metadata").setPartitions(List.of(
                new DescribeQuorumResponseData.PartitionData().setLeaderId(1).setLeaderEpoch(4).setHighWatermark(97)
                    .setErrorMessage(version < 2 ? null : "fine").setCurrentVoters(voters).setObservers(voters.subList(1, 2))))));
        for (Node node : nodes) {
            DescribeQuorumResponseData.ListenerCollection listeners = new DescribeQuorumResponseData.ListenerCollection();
            listeners.add(new DescribeQuorumResponseData.Listener().setName("CONTROLLER").setHost(node.host).setPort(node.port));
            listeners.add(new DescribeQuorumResponseData.Listener().setName("CONTROLLER_TLS").setHost(node.host).setPort(node.port));
            data.nodes().add(new DescribeQuorumResponseData.Node().setNodeId(node.id).setListeners(listeners));
        }
        return data;
    }

    static ProduceResponseData produce(int version, List<Node> nodes) {
        ProduceResponseData.PartitionProduceResponse fine = new ProduceResponseData.PartitionProduceResponse().setIndex(0)
            .setBaseOffset(1234).setLogAppendTimeMs(1764500000123L).setLogStartOffset(version < 5 ? -1 : 12);
        ProduceResponseData.PartitionProduceResponse moved = new ProduceResponseData.PartitionProduceResponse().setIndex(1)
            .setErrorCode((short) 6);
        if (version >= 8) {
            moved.setErrorMessage("the leader is elsewhere").setRecordErrors(List.of(
                new ProduceResponseData.BatchIndexAndErrorMessage().setBatchIndex(3).setBatchIndexErrorMessage("no key"),
                new ProduceResponseData.BatchIndexAndErrorMessage().setBatchIndex(4)));
        }
        if (version >= 10) {
            moved.setCurrentLeader(new ProduceResponseData.LeaderIdAndEpoch().setLeaderId(2).setLeaderEpoch(8));
        }
        ProduceResponseData data = new ProduceResponseData().setThrottleTimeMs(5);
        data.responses().add(new ProduceResponseData.TopicProduceResponse().setName(version < 13 ? "orders" : "")
            .setTopicId(version < 13 ? Uuid.ZERO_UUID : TOPIC).setPartitionResponses(List.of(fine, moved)));
        if (version >= 10) {
            for (Node node : nodes) {
                data.nodeEndpoints().add(new ProduceResponseData.NodeEndpoint().setNodeId(node.id).setHost(node.host)
                    .setPort(node.port).setRack(node.rack));
            }
        }
        return data;
    }

    static FetchResponseData fetch(int version, List<Node> nodes) {
        FetchResponseData.PartitionData full = new FetchResponseData.PartitionData().setPartitionIndex(0).setHighWatermark(500)
            .setLastStableOffset(499).setLogStartOffset(version < 5 ? -1 : 3)
            .setAbortedTransactions(List.of(new FetchResponseData.AbortedTransaction().setProducerId(77).setFirstOffset(400)))
            .setRecords(records(300));
        FetchResponseData.PartitionData moved = new FetchResponseData.PartitionData().setPartitionIndex(1)
            .setErrorCode((short) 6).setHighWatermark(-1).setRecords(MemoryRecords.EMPTY);
        if (version >= 12) {
            moved.setCurrentLeader(new FetchResponseData.LeaderIdAndEpoch().setLeaderId(2).setLeaderEpoch(8));
        }
        FetchResponseData data = new FetchResponseData().setThrottleTimeMs(5).setSessionId(version < 7 ? 0 : 4711)
            .setResponses(List.of(new FetchResponseData.FetchableTopicResponse().setTopic(version < 13 ? "orders" : "")
                .setTopicId(version < 13 ? Uuid.ZERO_UUID : TOPIC).setPartitions(List.of(full, moved))));
        if (version >= 16) {
            for (Node node : nodes) {
                data.nodeEndpoints().add(new FetchResponseData.NodeEndpoint().setNodeId(node.id).setHost(node.host)
                    .setPort(node.port).setRack(node.rack));
            }
        }
        return data;
    }

    static ShareFetchResponseData shareFetch(List<Node> nodes) {
        ShareFetchResponseData.PartitionData full = new ShareFetchResponseData.PartitionData().setPartitionIndex(0)
            .setRecords(records(200)).setAcquiredRecords(List.of(
                new ShareFetchResponseData.AcquiredRecords().setFirstOffset(5).setLastOffset(9).setDeliveryCount((short) 1),
                new ShareFetchResponseData.AcquiredRecords().setFirstOffset(11).setLastOffset(12).setDeliveryCount((short) 2)));
        ShareFetchResponseData.PartitionData moved = new ShareFetchResponseData.PartitionData().setPartitionIndex(1)
            .setErrorCode((short) 6).setErrorMessage("moved").setAcknowledgeErrorCode((short) 6).setAcknowledgeErrorMessage("moved too")
            .setRecords(MemoryRecords.EMPTY)
            .setCurrentLeader(new ShareFetchResponseData.LeaderIdAndEpoch().setLeaderId(2).setLeaderEpoch(8));
        ShareFetchResponseData data = new ShareFetchResponseData().setThrottleTimeMs(5).setAcquisitionLockTimeoutMs(30000);
        ShareFetchResponseData.ShareFetchableTopicResponse topic = new ShareFetchResponseData.ShareFetchableTopicResponse().setTopicId(TOPIC);
        topic.partitions().add(full);
        topic.partitions().add(moved);
        data.responses().add(topic);
        for (Node node : nodes) {
            data.nodeEndpoints().add(new ShareFetchResponseData.NodeEndpoint().setNodeId(node.id).setHost(node.host)
                .setPort(node.port).setRack(node.rack));
        }
        return data;
    }

    static ShareAcknowledgeResponseData shareAcknowledge(int version, List<Node> nodes) {
        ShareAcknowledgeResponseData data = new ShareAcknowledgeResponseData().setThrottleTimeMs(5).setErrorMessage("partly");
        if (version >= 2) {
            data.setAcquisitionLockTimeoutMs(30000);
        }
        ShareAcknowledgeResponseData.ShareAcknowledgeTopicResponse topic =
            new ShareAcknowledgeResponseData.ShareAcknowledgeTopicResponse().setTopicId(TOPIC);
        topic.partitions().add(new ShareAcknowledgeResponseData.PartitionData().setPartitionIndex(1).setErrorCode((short) 6)
            .setErrorMessage("moved").setCurrentLeader(new ShareAcknowledgeResponseData.LeaderIdAndEpoch().setLeaderId(2).setLeaderEpoch(8)));
        data.responses().add(topic);
        for (Node node : nodes) {
            data.nodeEndpoints().add(new ShareAcknowledgeResponseData.NodeEndpoint().setNodeId(node.id).setHost(node.host)
                .setPort(node.port).setRack(node.rack));
        }
        return data;
    }

    /** Bytes in the place of a record batch: an answer's walker has no business with them. */
    static MemoryRecords records(int size) {
        ByteBuffer buffer = ByteBuffer.allocate(size);
        for (int i = 0; i < size; i++) {
            buffer.put(i, (byte) (i * 7 + 1));
        }
        return MemoryRecords.readableRecords(buffer);
    }

    static <T extends ApiMessage> T tagged(T message) {
        message.unknownTaggedFields().add(new RawTaggedField(90, "kept".getBytes(StandardCharsets.UTF_8)));
        message.unknownTaggedFields().add(new RawTaggedField(300, new byte[200]));
        return message;
    }

    static void print(ApiKeys api, int version, String name, List<Node> nodes, ApiMessage message) {
        StringJoiner addresses = new StringJoiner(",");
        for (Node node : nodes) {
            addresses.add(node.id + "=" + node.host + ":" + node.port);
        }
        ByteBufferAccessor body = MessageUtil.toByteBufferAccessor(message, (short) version);
        byte[] bytes = new byte[body.buffer().remaining()];
        body.buffer().get(bytes);
        System.out.printf("%d %d %s %s %s%n", api.id, version, name, nodes.isEmpty() ? "-" : addresses, HexFormat.of().formatHex(bytes));
    }
}
