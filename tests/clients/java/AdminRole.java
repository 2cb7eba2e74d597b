import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.*;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * An AdminClient that does what lines on standard input ask for, one answer a line. Answers leave out what differs between
 * two equal clusters or groups (member ids, hosts, ports), so that a scenario can compare them.
 */
class AdminRole implements Role {
    private JsonNode config;
    protected Admin admin;

    @Override
    public void run(JsonNode config) throws Exception {
        this.config = config;
        Properties properties = Client.common(config);
        properties.put("request.timeout.ms", "20000");
        properties.put("default.api.timeout.ms", "40000");
        admin = Admin.create(properties);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        String line;
        while ((line = in.readLine()) != null && !line.equals("close")) {
            JsonNode asked = Client.JSON.readTree(line);
            String name = asked.get("call").asText();
            try {
                Client.say("answered", "call", name, "answer", call(name, asked));
            } catch (ExecutionException e) {
                Client.say("failed", "call", name, "error", e.getCause().getClass().getSimpleName(),
                    "message", String.valueOf(e.getCause().getMessage()));
            }
        }
        admin.close();
        Client.say("closed");
    }

    protected Object call(String name, JsonNode asked) throws Exception {
        return switch (name) {
            case "createTopic" -> createTopic(asked.get("topic").asText(), asked.get("partitions").asInt());
            case "createPartitions" -> {
                NewPartitions wanted = NewPartitions.increaseTo(asked.get("partitions").asInt());
                admin.createPartitions(Map.of(asked.get("topic").asText(), wanted)).all().get();
                yield "done";
            }
            case "commitToNewTopic" -> commitToNewTopic(asked.get("topic").asText(), asked.get("group").asText());
            case "addresses" -> admin.describeCluster().nodes().get().stream().map(Node::toString).sorted().toList();
            case "describeCluster" -> describeCluster();
            case "describeFeatures" -> describeFeatures();
            case "describeMetadataQuorum" -> {
                QuorumInfo quorum = admin.describeMetadataQuorum().quorumInfo().get();
                yield Map.of("leader", quorum.leaderId(), "voters",
                    quorum.voters().stream().map(QuorumInfo.ReplicaState::replicaId).sorted().toList());
            }
            case "listConsumerGroups" -> listConsumerGroups(texts(asked.get("groups")));
            case "describeConsumerGroups" -> describeConsumerGroups(texts(asked.get("groups")));
            case "listConsumerGroupOffsets" -> listOffsets(texts(asked.get("groups")));
            case "alterConsumerGroupOffsets" -> {
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                asked.get("offsets").fields().forEachRemaining(entry -> offsets.put(partition(entry.getKey()),
                    new OffsetAndMetadata(entry.getValue().asLong(), Optional.empty(), "by hand")));
                admin.alterConsumerGroupOffsets(asked.get("group").asText(), offsets).all().get();
                yield "done";
            }
            case "deleteConsumerGroupOffsets" -> {
                Set<TopicPartition> partitions =
                    texts(asked.get("partitions")).stream().map(AdminRole::partition).collect(Collectors.toSet());
                admin.deleteConsumerGroupOffsets(asked.get("group").asText(), partitions).all().get();
                yield "done";
            }
            case "removeMember" -> {
                var options = new RemoveMembersFromConsumerGroupOptions(
                    Set.of(new MemberToRemove(asked.get("instance").asText())));
                options.reason("the machine is gone");
                admin.removeMembersFromConsumerGroup(asked.get("group").asText(), options).all().get();
                yield "done";
            }
            case "removeAllMembers" -> {
                admin.removeMembersFromConsumerGroup(asked.get("group").asText(),
                    new RemoveMembersFromConsumerGroupOptions()).all().get();
                yield "done";
            }
            case "deleteConsumerGroups" -> {
                admin.deleteConsumerGroups(texts(asked.get("groups"))).all().get();
                yield "done";
            }
            default -> throw new IllegalArgumentException(name);
        };
    }

    private Object createTopic(String topic, int partitions) throws Exception {
        admin.createTopics(List.of(new NewTopic(topic, Optional.of(partitions), Optional.empty()))).all().get();
        untilKnown(topic, partitions);
        return "done";
    }

    /** The controller's word comes before the brokers know of the topic: it waits until it is told of every partition. */
    private void untilKnown(String topic, int partitions) throws Exception {
        for (int left = 400; ; left--) {
            try {
                var described = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
                if (described.partitions().size() == partitions
                    && described.partitions().stream().allMatch(partition -> partition.leader() != null)) {
                    return;
                }
            } catch (ExecutionException e) {
                if (!(e.getCause() instanceof UnknownTopicOrPartitionException) || left == 0) {
                    throw e;
                }
            }
            Thread.sleep(25);
        }
    }

    /** Commits for a topic as soon as any answer has told of it. */
    private Object commitToNewTopic(String topic, String group) throws Exception {
        Properties properties = Client.common(config);
        properties.put("group.id", group);
        properties.put("enable.auto.commit", "false");
        try (var consumer = new KafkaConsumer<>(properties, new StringDeserializer(), new StringDeserializer())) {
            TopicPartition partition = new TopicPartition(topic, 0);
            // Everything but the topic is ready: the coordinator is known and the connection to it is open.
            consumer.committed(Set.of(new TopicPartition("another", 0)));
            createTopic(topic, 1);
            consumer.commitSync(Map.of(partition, new OffsetAndMetadata(5)));
            return consumer.committed(Set.of(partition)).get(partition).offset();
        }
    }

    private Object describeCluster() throws Exception {
        var cluster = admin.describeCluster(new DescribeClusterOptions().includeAuthorizedOperations(true));
        return Map.of("cluster_id", cluster.clusterId().get(),
            "nodes", cluster.nodes().get().stream().map(Node::id).sorted().toList(),
            "operations", sorted(cluster.authorizedOperations().get()));
    }

    private Object describeFeatures() throws Exception {
        FeatureMetadata features = admin.describeFeatures().featureMetadata().get();
        Map<String, String> finalized = new TreeMap<>();
        features.finalizedFeatures().forEach((name, range) -> finalized.put(name, range.toString()));
        Map<String, String> supported = new TreeMap<>();
        features.supportedFeatures().forEach((name, range) -> supported.put(name, range.toString()));
        return Map.of("finalized", finalized, "supported", supported);
    }

    private Object listConsumerGroups(List<String> groups) throws Exception {
        return admin.listConsumerGroups().all().get().stream().filter(group -> groups.contains(group.groupId()))
            .map(group -> List.of(group.groupId(), group.isSimpleConsumerGroup(), group.state().toString(),
                group.type().toString()))
            .sorted(Comparator.comparing(Object::toString)).toList();
    }

    private Object describeConsumerGroups(List<String> groups) throws Exception {
        Map<String, Object> all = new TreeMap<>();
        var options = new DescribeConsumerGroupsOptions().includeAuthorizedOperations(true);
        for (var group : admin.describeConsumerGroups(groups, options).all().get().values()) {
            Map<String, Object> one = new LinkedHashMap<>();
            one.put("simple", group.isSimpleConsumerGroup());
            one.put("type", group.type().toString());
            one.put("state", group.state().toString());
            one.put("assignor", group.partitionAssignor());
            one.put("coordinator", group.coordinator().id());
            one.put("operations", sorted(group.authorizedOperations()));
            one.put("members", members(group.members()));
            all.put(group.groupId(), one);
        }
        return all;
    }

    protected static List<List<String>> members(Collection<MemberDescription> members) {
        return members.stream().map(member -> List.of(member.clientId(), member.groupInstanceId().orElse("dynamic"),
                member.assignment().topicPartitions().stream().map(TopicPartition::toString).sorted().toList().toString(),
                // The id begins with the instance id or the client id, as the broker makes them.
                member.consumerId().startsWith(member.groupInstanceId().orElse(member.clientId()) + "-")
                    ? "id by Kafka's rule" : member.consumerId()))
            .sorted(Comparator.comparing(List::toString)).toList();
    }

    private Object listOffsets(List<String> groups) throws Exception {
        Map<String, ListConsumerGroupOffsetsSpec> wanted = new HashMap<>();
        groups.forEach(group -> wanted.put(group, new ListConsumerGroupOffsetsSpec()));
        Map<String, Map<String, String>> all = new TreeMap<>();
        admin.listConsumerGroupOffsets(wanted).all().get().forEach((group, offsets) -> {
            Map<String, String> said = new TreeMap<>();
            offsets.forEach((partition, offset) -> said.put(partition.toString(), String.valueOf(offset)));
            all.put(group, said);
        });
        return all;
    }

    protected static List<String> sorted(Collection<?> values) {
        return values == null ? List.of() : values.stream().map(Object::toString).sorted().toList();
    }

    protected static List<String> texts(JsonNode array) {
        List<String> texts = new ArrayList<>();
        array.forEach(text -> texts.add(text.asText()));
        return texts;
    }

    private static TopicPartition partition(String name) {
        int dash = name.lastIndexOf('-');
        return new TopicPartition(name.substring(0, dash), Integer.parseInt(name.substring(dash + 1)));
    }
}
