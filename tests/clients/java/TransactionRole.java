import java.util.Map;
import java.util.Properties;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringSerializer;

/** A transactional producer: one transaction for each of `transactions`, with the group's offsets where `group` is given. */
final class TransactionRole implements Role {
    @Override
    public void run(JsonNode config) {
        Properties properties = Client.common(config);
        properties.put("transactional.id", config.get("transactional_id").asText());
        properties.put("max.block.ms", "30000");
        String topic = config.get("topic").asText();
        try (KafkaProducer<String, String> producer =
                 new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer())) {
            producer.initTransactions();
            for (JsonNode transaction : config.get("transactions")) {
                producer.beginTransaction();
                for (int i = 0; i < transaction.get("count").asInt(); i++) {
                    producer.send(new ProducerRecord<>(topic, transaction.get("prefix").asText() + "-" + i));
                }
                if (transaction.hasNonNull("group") && !sendOffsets(producer, topic, transaction)) {
                    continue;
                }
                if (transaction.get("commit").asBoolean()) {
                    producer.commitTransaction();
                } else {
                    producer.abortTransaction();
                }
                Client.say("produced", "count", transaction.get("count").asInt());
            }
        }
    }

    /** False when the offsets were refused; the transaction is aborted then. */
    private static boolean sendOffsets(KafkaProducer<String, String> producer, String topic, JsonNode transaction) {
        long began = System.nanoTime();
        try {
            producer.sendOffsetsToTransaction(Map.of(new TopicPartition(topic, 0), new OffsetAndMetadata(7)),
                new ConsumerGroupMetadata(transaction.get("group").asText()));
            return true;
        } catch (KafkaException e) {
            Client.say("refused", "message", e.toString(), "after_ms", (System.nanoTime() - began) / 1_000_000);
        }
        try {
            producer.abortTransaction();
        } catch (KafkaException e) {
            Client.say("error", "message", e.toString());
        }
        return false;
    }
}
