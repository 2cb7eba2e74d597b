// Makes tests/golden/classic_assignments.txt with kafka-clients' own assignors: what they place, and the bytes that consumers tell
// of themselves.
//
// java -cp "$KAFKA_LIBS/*" tests/golden/ClassicAssignments.java > tests/golden/classic_assignments.txt
//
// KAFKA_LIBS holds the jars of Apache Kafka 4.4.0. A line is one of these, parted by spaces; lists are parted by commas, nothing is "-":
//   range|roundrobin TOPIC=SIZE,.. MEMBER/INSTANCE:TOPIC,..;.. MEMBER:TOPIC=0+1,..;..
//   cooperative-sticky TOPIC=SIZE,.. MEMBER/INSTANCE:TOPIC,..:TOPIC=0+1,..;.. PARTITIONS   (what members own; how many they have
//                                                                                      after the first of two rounds)
//   subscription VERSION TOPIC,.. OWNED GENERATION RACK HEX
//   sticky|cooperative OWNED GENERATION HEX                                             (user data)

import java.nio.ByteBuffer;
import java.util.*;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.*;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.*;

public class ClassicAssignments {
    static final int GROUPS = 150;
    static final Node[] NODES = {new Node(0, "localhost", 9092)};
    static final Random RANDOM = new Random(6);

    public static void main(String[] args) {
        for (int round = 0; round < GROUPS; round++) {
            place(new RangeAssignor(), round);
            place(new RoundRobinAssignor(), round);
        }
        for (int round = 0; round < GROUPS; round++) {
            move();
        }
        for (short version = 0; version <= 3; version++) {
            subscription(version);
        }
        sticky();
    }

    /** Topics whose names sort otherwise than their numbers; some are empty or do not exist. */
    static TreeMap<String, Integer> topics() {
        TreeMap<String, Integer> topics = new TreeMap<>();
        int count = 1 + RANDOM.nextInt(6);
        for (int topic = 0; topic < count; topic++) {
            topics.put("t" + RANDOM.nextInt(20), RANDOM.nextInt(10));
        }
        return topics;
    }

    static void place(ConsumerPartitionAssignor assignor, int round) {
        TreeMap<String, Integer> topics = topics();
        TreeMap<String, Subscription> members = new TreeMap<>();
        int count = 1 + RANDOM.nextInt(8);
        for (int member = 0; member < count; member++) {
            List<String> subscribed = new ArrayList<>(topics.keySet());
            if (round % 3 > 0) {
                subscribed.removeIf(topic -> RANDOM.nextInt(3) == 0);
            }
            Subscription subscription = new Subscription(subscribed);
            if (RANDOM.nextInt(4) == 0) {
                subscription.setGroupInstanceId(Optional.of("i" + member + "-" + RANDOM.nextInt(10)));
            }
            members.put("m" + RANDOM.nextInt(100), subscription);
        }
        Map<String, Assignment> placed = assign(assignor, topics, members);
        String given = placed.entrySet().stream().sorted(Map.Entry.comparingByKey())
            .map(entry -> entry.getKey() + ":" + partitions(entry.getValue().partitions())).collect(Collectors.joining(";"));
        System.out.println(assignor.name() + " " + sizes(topics) + " " + members(members, false) + " " + given);
    }

    /** Members with equal subscriptions that own what a round before gave to some of them. */
    static void move() {
        TreeMap<String, Integer> topics = topics();
        int before = 1 + RANDOM.nextInt(6);
        List<String> names = new ArrayList<>();
        for (int member = 0; member < before + RANDOM.nextInt(4); member++) {
            names.add("m" + (10 + member));
        }
        TreeMap<String, List<TopicPartition>> owned = new TreeMap<>();
        names.forEach(name -> owned.put(name, new ArrayList<>()));
        topics.forEach((topic, size) -> {
            for (int partition = 0; partition < size; partition++) {
                owned.get(names.get(RANDOM.nextInt(before))).add(new TopicPartition(topic, partition));
            }
        });
        TreeMap<String, Subscription> members = new TreeMap<>();
        owned.forEach((name, partitions) -> members.put(name, new Subscription(
            new ArrayList<>(topics.keySet()), null, partitions, 4, Optional.empty())));
        Map<String, Assignment> placed = assign(new CooperativeStickyAssignor(), topics, members);
        int count = placed.values().stream().mapToInt(assignment -> assignment.partitions().size()).sum();
        System.out.println("cooperative-sticky " + sizes(topics) + " " + members(members, true) + " " + count);
    }

    static Map<String, Assignment> assign(ConsumerPartitionAssignor assignor, Map<String, Integer> topics, Map<String, Subscription> members) {
        List<PartitionInfo> partitions = new ArrayList<>();
        topics.forEach((topic, size) -> {
            for (int partition = 0; partition < size; partition++) {
                partitions.add(new PartitionInfo(topic, partition, NODES[0], NODES, NODES));
            }
        });
        Cluster cluster = new Cluster("cluster", List.of(NODES), partitions, Set.of(), Set.of());
        return assignor.assign(cluster, new GroupSubscription(members)).groupAssignment();
    }

    static void subscription(short version) {
        List<String> topics = List.of("orders", "payments");
        List<TopicPartition> owned = List.of(new TopicPartition("orders", 0), new TopicPartition("orders", 2), new TopicPartition("payments", 1));
        Subscription subscription = new Subscription(topics, ByteBuffer.wrap(new byte[] {1, 2, 3}), owned, 7, Optional.of("rack-a"));
        ByteBuffer bytes = ConsumerProtocol.serializeSubscription(subscription, version);
        System.out.println("subscription " + version + " " + String.join(",", topics) + " " + (version < 1 ? "-" : partitions(owned)) + " "
            + (version < 2 ? "-" : "7") + " " + (version < 3 ? "-" : "rack-a") + " " + hex(bytes));
    }

    static void sticky() {
        List<TopicPartition> owned = List.of(new TopicPartition("orders", 0), new TopicPartition("orders", 2), new TopicPartition("payments", 1));
        ConsumerGroupMetadata group = new ConsumerGroupMetadata("g", 9, "m", Optional.empty());
        StickyAssignor sticky = new StickyAssignor();
        sticky.onAssignment(new Assignment(owned), group);
        System.out.println("sticky " + partitions(owned) + " 9 " + hex(sticky.subscriptionUserData(Set.of("orders"))));
        CooperativeStickyAssignor cooperative = new CooperativeStickyAssignor();
        cooperative.onAssignment(new Assignment(owned), group);
        System.out.println("cooperative - 9 " + hex(cooperative.subscriptionUserData(Set.of("orders"))));
    }

    static String sizes(Map<String, Integer> topics) {
        return topics.entrySet().stream().map(entry -> entry.getKey() + "=" + entry.getValue()).collect(Collectors.joining(","));
    }

    static String members(Map<String, Subscription> members, boolean withOwned) {
        return members.entrySet().stream().map(entry -> {
            Subscription said = entry.getValue();
            String member = entry.getKey() + "/" + said.groupInstanceId().orElse("-") + ":"
                + (said.topics().isEmpty() ? "-" : String.join(",", said.topics()));
            return withOwned ? member + ":" + partitions(said.ownedPartitions()) : member;
        }).collect(Collectors.joining(";"));
    }

    static String partitions(List<TopicPartition> partitions) {
        TreeMap<String, TreeSet<Integer>> byTopic = new TreeMap<>();
        partitions.forEach(partition -> byTopic.computeIfAbsent(partition.topic(), topic -> new TreeSet<>()).add(partition.partition()));
        String text = byTopic.entrySet().stream().map(entry -> entry.getKey() + "="
            + entry.getValue().stream().map(String::valueOf).collect(Collectors.joining("+"))).collect(Collectors.joining(","));
        return text.isEmpty() ? "-" : text;
    }

    static String hex(ByteBuffer bytes) {
        byte[] copy = new byte[bytes.remaining()];
        bytes.duplicate().get(copy);
        return HexFormat.of().formatHex(copy);
    }
}
