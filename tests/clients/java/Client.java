import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.*;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Collectors;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.*;

/** The stock Java client behind the line protocol of PROTOCOL.md. */
public final class Client {
    static final ObjectMapper JSON = new ObjectMapper();
    // By name: the oldest client version has no cooperative assignor.
    private static final String ASSIGNORS = "org.apache.kafka.clients.consumer.";

    public static void main(String[] arguments) throws Exception {
        JsonNode config = JSON.readTree(arguments[0]);
        switch (config.get("role").asText()) {
            case "producer" -> produce(config);
            case "steady" -> produceSteadily(config);
            case "consumer" -> consume(config);
            case "transactional" -> role("TransactionRole").run(config);
            case "streams" -> role("StreamsRole").run(config);
            case "admin" -> role("NewestAdminRole", "AdminRole").run(config);
            default -> throw new IllegalArgumentException(config.get("role").asText());
        }
    }

    /** The first of these roles that was compiled for this client version. */
    private static Role role(String... names) throws ReflectiveOperationException {
        for (String name : names) {
            try {
                return (Role) Class.forName(name).getDeclaredConstructor().newInstance();
            } catch (ClassNotFoundException e) {
                // This version does not have the feature; the next name may do.
            }
        }
        throw new UnsupportedOperationException("this client version has no " + String.join(" or ", names));
    }

    static synchronized void say(String event, Object... fields) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("event", event);
        line.put("at", now());
        for (int i = 0; i < fields.length; i += 2) {
            line.put((String) fields[i], fields[i + 1]);
        }
        try {
            System.out.println(JSON.writeValueAsString(line));
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
        System.out.flush();
    }

    /** Microseconds since 1970. */
    private static long now() {
        return ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now());
    }

    static Properties common(JsonNode config) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", config.get("bootstrap").asText());
        properties.put("client.id", config.path("client_id").asText("java"));
        properties.put("reconnect.backoff.max.ms", "500");
        if (config.hasNonNull("metadata_max_age_ms")) {
            properties.put("metadata.max.age.ms", config.get("metadata_max_age_ms").asText());
        }
        if (config.hasNonNull("sasl")) {
            JsonNode sasl = config.get("sasl");
            String mechanism = sasl.get("mechanism").asText();
            String user = sasl.get("username").asText();
            properties.put("security.protocol", "SASL_PLAINTEXT");
            properties.put("sasl.mechanism", mechanism);
            String module = switch (mechanism) {
                case "PLAIN" -> "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"" + user
                    + "\" password=\"" + sasl.get("password").asText() + "\";";
                case "OAUTHBEARER" -> "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
                    + "unsecuredLoginStringClaim_sub=\"" + user + "\";";
                default -> "org.apache.kafka.common.security.scram.ScramLoginModule required username=\"" + user
                    + "\" password=\"" + sasl.get("password").asText() + "\";";
            };
            properties.put("sasl.jaas.config", module);
        }
        return properties;
    }

    static void produce(JsonNode config) throws Exception {
        Properties properties = common(config);
        properties.put("acks", config.path("acks").asText("all"));
        if (!"all".equals(properties.get("acks"))) {
            properties.put("enable.idempotence", "false");
        }
        properties.put("delivery.timeout.ms", "60000");
        properties.put("linger.ms", "5");
        int count = config.get("count").asInt();
        int partitions = config.path("partitions").asInt(1);
        int interval = config.path("interval_ms").asInt(0);
        try (KafkaProducer<String, String> producer =
                 new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer())) {
            List<java.util.concurrent.Future<RecordMetadata>> sent = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                sent.add(producer.send(new ProducerRecord<>(config.get("topic").asText(), i % partitions, null,
                    config.get("prefix").asText() + "-" + i)));
                if (interval > 0) {
                    Thread.sleep(interval);
                }
            }
            producer.flush();
            for (var future : sent) {
                future.get();
            }
            say("produced", "count", count);
        }
    }

    /** Sends a value after the other until it is told to close, and tells of each that is acknowledged. */
    private static void produceSteadily(JsonNode config) throws Exception {
        Properties properties = common(config);
        properties.put("acks", "all");
        properties.put("linger.ms", "5");
        String topic = config.get("topic").asText();
        AtomicBoolean closing = closeOnCommand(() -> { });
        try (KafkaProducer<String, String> producer =
                 new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer())) {
            for (int i = 0; !closing.get(); i++) {
                String value = config.get("prefix").asText() + "-" + i;
                producer.send(new ProducerRecord<>(topic, value, value), (sent, error) -> {
                    if (error == null) {
                        say("sent", "partition", sent.topic() + "-" + sent.partition(), "offset", sent.offset());
                    } else {
                        say("error", "message", error.toString());
                    }
                });
                Thread.sleep(config.get("interval_ms").asInt());
            }
        }
        say("closed");
    }

    static void consume(JsonNode config) throws Exception {
        Properties properties = common(config);
        properties.put("group.id", config.get("group").asText());
        properties.put("auto.offset.reset", "earliest");
        properties.put("enable.auto.commit", "false");
        properties.put("max.poll.records", "50");
        properties.put("isolation.level", config.path("isolation_level").asText("read_uncommitted"));
        if (config.hasNonNull("instance_id")) {
            properties.put("group.instance.id", config.get("instance_id").asText());
        }
        if (config.hasNonNull("rack")) {
            properties.put("client.rack", config.get("rack").asText());
        }
        String protocol = config.path("protocol").asText("classic");
        if ("share".equals(protocol)) {
            role("ShareRole").run(config);
            return;
        }
        if ("consumer".equals(protocol)) {
            properties.put("group.protocol", "consumer");
            if (config.hasNonNull("remote_assignor")) {
                properties.put("group.remote.assignor", config.get("remote_assignor").asText());
            }
        } else {
            properties.put("session.timeout.ms", config.path("session_timeout_ms").asText("10000"));
            properties.put("heartbeat.interval.ms", config.path("heartbeat_ms").asText("500"));
            properties.put("partition.assignment.strategy", switch (config.path("assignor").asText("range")) {
                case "range" -> ASSIGNORS + "RangeAssignor";
                case "roundrobin" -> ASSIGNORS + "RoundRobinAssignor";
                case "sticky" -> ASSIGNORS + "StickyAssignor";
                case "cooperative-sticky" -> ASSIGNORS + "CooperativeStickyAssignor";
                default -> throw new IllegalArgumentException(config.get("assignor").asText());
            });
        }
        KafkaConsumer<String, String> consumer =
            new KafkaConsumer<>(properties, new StringDeserializer(), new StringDeserializer());
        AtomicBoolean closing = closeOnCommand(consumer::wakeup);
        List<String> topics = new ArrayList<>();
        config.get("topics").forEach(topic -> topics.add(topic.asText()));
        ConsumerRebalanceListener listener = new ConsumerRebalanceListener() {
            @Override
            public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                say("revoked", "partitions", names(partitions));
            }

            // Without @Override: the oldest version does not know it.
            public void onPartitionsLost(Collection<TopicPartition> partitions) {
                say("revoked", "partitions", names(partitions), "lost", true);
            }

            @Override
            public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                say("assigned", "partitions", names(consumer.assignment()));
            }
        };
        if (config.hasNonNull("pattern")) {
            // By name: it came with 4.0.
            Class<?> pattern = Class.forName("org.apache.kafka.clients.consumer.SubscriptionPattern");
            KafkaConsumer.class.getMethod("subscribe", pattern, ConsumerRebalanceListener.class).invoke(consumer,
                pattern.getConstructor(String.class).newInstance(config.get("pattern").asText()), listener);
        } else {
            consumer.subscribe(topics, listener);
        }
        while (!closing.get()) {
            try {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(500));
                records.forEach(record -> say("message", "partition", record.topic() + "-" + record.partition(),
                    "offset", record.offset(), "value", record.value()));
                commit(consumer, records);
            } catch (WakeupException e) {
                // The command to close; the loop's condition ends it.
            } catch (CommitFailedException | RebalanceInProgressException e) {
                // The partitions are somebody else's now, or soon: their records come again.
            } catch (Exception e) {
                say("error", "message", e.toString());
                if (!(e instanceof org.apache.kafka.common.errors.RetriableException)) {
                    throw e;
                }
            }
        }
        consumer.close(Duration.ofSeconds(20));
        say("closed");
    }

    private static void commit(KafkaConsumer<String, String> consumer, ConsumerRecords<String, String> records) {
        if (records.isEmpty()) {
            return;
        }
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        records.forEach(record -> offsets.put(new TopicPartition(record.topic(), record.partition()),
            new OffsetAndMetadata(record.offset() + 1)));
        long began = now();
        consumer.commitSync(offsets, Duration.ofSeconds(30));
        Map<String, Long> said = new TreeMap<>();
        offsets.forEach((partition, offset) -> said.put(partition.toString(), offset.offset()));
        say("committed", "began", began, "offsets", said);
    }

    static AtomicBoolean closeOnCommand(Runnable wake) {
        AtomicBoolean closing = new AtomicBoolean();
        Thread reader = new Thread(() -> {
            try (BufferedReader in = new BufferedReader(new InputStreamReader(System.in))) {
                String line;
                while ((line = in.readLine()) != null) {
                    if (line.equals("close")) {
                        closing.set(true);
                        wake.run();
                    }
                }
            } catch (java.io.IOException e) {
                say("error", "message", e.toString());
            }
        });
        reader.setDaemon(true);
        reader.start();
        return closing;
    }

    private static List<String> names(Collection<TopicPartition> partitions) {
        return partitions.stream().map(TopicPartition::toString).sorted().collect(Collectors.toList());
    }
}
