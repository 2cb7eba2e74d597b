"""kafka-python behind the line protocol of PROTOCOL.md."""

import time

from kafka import ConsumerRebalanceListener, KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.errors import CommitFailedError, KafkaConnectionError, RebalanceInProgressError

from protocol import close_on_command, config, now, say

ASSIGNORS = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor}


def common(config):
    settings = {"bootstrap_servers": config["bootstrap"].split(","), "client_id": config.get("client_id", "kafka-python")}
    if "metadata_max_age_ms" in config:
        settings["metadata_max_age_ms"] = config["metadata_max_age_ms"]
    if "api_version" in config:
        settings["api_version"] = tuple(config["api_version"])
    if sasl := config.get("sasl"):
        settings |= {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": sasl["mechanism"],
            "sasl_plain_username": sasl["username"],
            "sasl_plain_password": sasl["password"],
        }
    return settings


def produce(config):
    acks = config.get("acks", "all")
    producer = KafkaProducer(**common(config), acks=acks if acks == "all" else int(acks), linger_ms=5)
    sent = [
        producer.send(config["topic"], value=f"{config['prefix']}-{number}".encode(),
                      partition=number % config.get("partitions", 1))
        for number in range(config["count"])
    ]
    producer.flush(60)
    for future in sent:
        future.get(60)
    producer.close()
    say("produced", count=config["count"])


class Listener(ConsumerRebalanceListener):
    def __init__(self, consumer):
        self.consumer = consumer

    def on_partitions_revoked(self, revoked):
        say("revoked", partitions=names(revoked))

    def on_partitions_assigned(self, assigned):
        say("assigned", partitions=names(self.consumer.assignment()))


def names(partitions):
    return sorted(f"{one.topic}-{one.partition}" for one in partitions)


def patiently(call):
    """kafka-python lets an address that refuses connections out of poll and commit; an application has to go on."""
    deadline = time.monotonic() + 30
    while True:
        try:
            return call()
        except KafkaConnectionError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def consume(config):
    settings = common(config) | {
        "group_id": config["group"],
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "max_poll_records": 50,
        "session_timeout_ms": config.get("session_timeout_ms", 10000),
        "heartbeat_interval_ms": config.get("heartbeat_ms", 500),
        "partition_assignment_strategy": [ASSIGNORS[config.get("assignor", "range")]],
    }
    if config.get("instance_id"):
        settings["group_instance_id"] = config["instance_id"]
    consumer = KafkaConsumer(**settings)
    closing = close_on_command()
    consumer.subscribe(config["topics"], listener=Listener(consumer))
    while not closing.is_set():
        offsets = {}
        for partition, records in patiently(lambda: consumer.poll(timeout_ms=300)).items():
            for record in records:
                say("message", partition=f"{partition.topic}-{partition.partition}", offset=record.offset,
                    value=record.value.decode())
                offsets[partition] = OffsetAndMetadata(record.offset + 1, "", -1)
        if not offsets:
            continue
        try:
            began = now()
            patiently(lambda: consumer.commit(offsets))
            say("committed", began=began, offsets={f"{one.topic}-{one.partition}": at.offset for one, at in offsets.items()})
        except (CommitFailedError, RebalanceInProgressError):
            pass  # The partitions are somebody else's now, or soon: their records come again.
    consumer.close()
    say("closed")


if __name__ == "__main__":
    settings = config()
    produce(settings) if settings["role"] == "producer" else consume(settings)
