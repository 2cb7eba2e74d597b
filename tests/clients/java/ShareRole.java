import java.time.Duration;
import java.util.*;
import java.util.concurrent.atomic.AtomicBoolean;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.StringDeserializer;

/** A member of a share group (KIP-932), for the client versions that have them. */
final class ShareRole implements Role {
    @Override
    public void run(JsonNode config) {
        Properties properties = Client.common(config);
        properties.put("group.id", config.get("group").asText());
        KafkaShareConsumer<String, String> consumer =
            new KafkaShareConsumer<>(properties, new StringDeserializer(), new StringDeserializer());
        AtomicBoolean closing = Client.closeOnCommand(consumer::wakeup);
        List<String> topics = new ArrayList<>();
        config.get("topics").forEach(topic -> topics.add(topic.asText()));
        consumer.subscribe(topics);
        Client.say("assigned", "partitions", List.of());
        while (!closing.get()) {
            try {
                consumer.poll(Duration.ofMillis(500)).forEach(record -> Client.say("message", "partition",
                    record.topic() + "-" + record.partition(), "offset", record.offset(), "value", record.value()));
                consumer.commitSync();
                Client.say("polled");
            } catch (WakeupException e) {
                // The command to close; the loop's condition ends it.
            }
        }
        consumer.close();
        Client.say("closed");
    }
}
