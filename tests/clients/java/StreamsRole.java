import java.nio.file.Files;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.KStream;

/** A Kafka Streams application without state: each value of the first topic goes to the second. */
final class StreamsRole implements Role {
    @Override
    public void run(JsonNode config) throws Exception {
        Properties properties = Client.common(config);
        properties.put("application.id", config.get("group").asText());
        String protocol = config.path("protocol").asText("classic");
        properties.put("group.protocol", protocol);
        if (protocol.equals("classic")) {
            // Its members do not leave when it is closed; the next run waits for their sessions to end.
            properties.put("session.timeout.ms", "6000");
            properties.put("heartbeat.interval.ms", "500");
        }
        properties.put("state.dir", Files.createTempDirectory("convoke-streams-").toString());
        properties.put("num.stream.threads", "2");
        properties.put("commit.interval.ms", "100");
        properties.put("main.consumer.auto.offset.reset", "earliest");
        properties.put("default.key.serde", Serdes.StringSerde.class.getName());
        properties.put("default.value.serde", Serdes.StringSerde.class.getName());
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> values = builder.stream(config.get("topics").get(0).asText());
        values.to(config.get("topics").get(1).asText());
        KafkaStreams streams = new KafkaStreams(builder.build(), properties);
        CountDownLatch closing = new CountDownLatch(1);
        streams.setUncaughtExceptionHandler(error -> {
            Client.say("error", "message", error.toString());
            return org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse
                .SHUTDOWN_CLIENT;
        });
        streams.setStateListener((now, before) -> {
            if (now == KafkaStreams.State.RUNNING) {
                Client.say("assigned", "partitions", List.of());
            }
        });
        Client.closeOnCommand(closing::countDown);
        streams.start();
        closing.await();
        streams.close(Duration.ofSeconds(20));
        Client.say("closed");
    }
}
