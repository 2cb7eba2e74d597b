"""librdkafka (confluent-kafka) behind the line protocol of PROTOCOL.md."""

import time

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from protocol import close_on_command, config, now, say


def common(config):
    settings = {
        "bootstrap.servers": config["bootstrap"],
        "client.id": config.get("client_id", "librdkafka"),
        "reconnect.backoff.max.ms": 500,
        "topic.metadata.refresh.interval.ms": config.get("metadata_max_age_ms", 300000),
    }
    if sasl := config.get("sasl"):
        settings |= {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": sasl["mechanism"],
        }
        if sasl["mechanism"] == "OAUTHBEARER":
            settings |= {
                "enable.sasl.oauthbearer.unsecure.jwt": True,
                "sasl.oauthbearer.config": f"principal={sasl['username']}",
            }
        else:
            settings |= {"sasl.username": sasl["username"], "sasl.password": sasl["password"]}
    return settings


def produce(config):
    settings = common(config) | {"acks": config.get("acks", "all"), "linger.ms": 5, "message.timeout.ms": 60000}
    producer = Producer(settings)
    failures = []

    def delivered(error, _message):
        if error:
            failures.append(str(error))

    for number in range(config["count"]):
        producer.produce(
            config["topic"],
            value=f"{config['prefix']}-{number}",
            partition=number % config.get("partitions", 1),
            on_delivery=delivered,
        )
        producer.poll(0)
    left = producer.flush(60)
    if failures or left:
        say("error", message=f"{left} not sent, {len(failures)} failed: {failures[:1]}")
    else:
        say("produced", count=config["count"])


def steady(config):
    """Sends a value after the other until it is told to close, and tells of each that is acknowledged."""
    producer = Producer(common(config) | {"acks": "all", "enable.idempotence": True, "linger.ms": 5})
    closing = close_on_command()

    def delivered(error, message):
        if error:
            say("error", message=str(error))
        else:
            say("sent", partition=f"{message.topic()}-{message.partition()}", offset=message.offset())

    number = 0
    while not closing.wait(config["interval_ms"] / 1000):
        value = f"{config['prefix']}-{number}"
        try:
            producer.produce(config["topic"], key=value, value=value, on_delivery=delivered)
            number += 1
        except BufferError as error:
            say("error", message=str(error))
        producer.poll(0)
    producer.flush(60)
    say("closed")


def transactional(config):
    """One transaction for each of `transactions`, with the group's offsets where `group` is given."""
    producer = Producer(common(config) | {"transactional.id": config["transactional_id"], "transaction.timeout.ms": 30000})
    producer.init_transactions(30)
    for transaction in config["transactions"]:
        producer.begin_transaction()
        for number in range(transaction["count"]):
            producer.produce(config["topic"], value=f"{transaction['prefix']}-{number}")
        producer.flush(30)
        if transaction.get("group") and not send_offsets(producer, config, transaction["group"]):
            continue
        if transaction["commit"]:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
        say("produced", count=transaction["count"])


def send_offsets(producer, config, group):
    """False when the offsets were refused; the transaction is aborted then."""
    consumer = Consumer(common(config) | {"group.id": group})
    began = time.monotonic()
    try:
        producer.send_offsets_to_transaction([TopicPartition(config["topic"], 0, 7)], consumer.consumer_group_metadata(), 30)
        return True
    except KafkaException as error:
        say("refused", message=str(error), after_ms=int((time.monotonic() - began) * 1000))
    finally:
        consumer.close()
    try:
        producer.abort_transaction(30)
    except KafkaException as error:
        say("error", message=str(error))
    return False


def consume(config):
    settings = common(config) | {
        "group.id": config["group"],
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "isolation.level": config.get("isolation_level", "read_uncommitted"),
        "partition.assignment.strategy": config.get("assignor", "range"),
        "session.timeout.ms": config.get("session_timeout_ms", 10000),
        "heartbeat.interval.ms": config.get("heartbeat_ms", 500),
    }
    if config.get("protocol") == "consumer":
        for key in ("partition.assignment.strategy", "session.timeout.ms", "heartbeat.interval.ms"):
            del settings[key]
        settings["group.protocol"] = "consumer"
        if config.get("remote_assignor"):
            settings["group.remote.assignor"] = config["remote_assignor"]
    if config.get("instance_id"):
        settings["group.instance.id"] = config["instance_id"]
    if config.get("rack"):
        settings["client.rack"] = config["rack"]
    consumer = Consumer(settings)
    closing = close_on_command()
    owned = set()

    def name(partition):
        return f"{partition.topic}-{partition.partition}"

    def on_assign(_consumer, partitions):
        owned.update(map(name, partitions))
        say("assigned", partitions=sorted(owned))

    def on_revoke(_consumer, partitions):
        owned.difference_update(map(name, partitions))
        say("revoked", partitions=sorted(map(name, partitions)))

    def on_lost(_consumer, partitions):
        owned.difference_update(map(name, partitions))
        say("revoked", partitions=sorted(map(name, partitions)), lost=True)

    # A name that begins with ^ is a pattern.
    topics = [config["pattern"]] if config.get("pattern") else config["topics"]
    consumer.subscribe(topics, on_assign=on_assign, on_revoke=on_revoke, on_lost=on_lost)
    while not closing.is_set():
        batch = []
        for message in consumer.consume(50, timeout=0.3):
            if message.error():
                say("error", message=str(message.error()))
                if message.error().code() == KafkaError._FATAL:
                    raise KafkaException(message.error())  # This consumer does nothing more.
                continue
            batch.append(message)
            say("message", partition=f"{message.topic()}-{message.partition()}", offset=message.offset(),
                value=message.value().decode())
        if batch:
            commit(consumer, batch)
    consumer.close()
    say("closed")


def commit(consumer, batch):
    offsets = {}
    for message in batch:
        offsets[(message.topic(), message.partition())] = message.offset() + 1
    wanted = [TopicPartition(topic, partition, offset) for (topic, partition), offset in offsets.items()]
    deadline = time.monotonic() + 30
    while True:
        began = now()
        try:
            done = consumer.commit(offsets=wanted, asynchronous=False)
        except KafkaException as error:
            code = error.args[0].code()
            if code in (KafkaError.ILLEGAL_GENERATION, KafkaError.UNKNOWN_MEMBER_ID, KafkaError.REBALANCE_IN_PROGRESS,
                        KafkaError._ASSIGNMENT_LOST, KafkaError.STALE_MEMBER_EPOCH):
                return  # The partitions are somebody else's now, or soon: their records come again.
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
            continue
        failed = [str(one.error) for one in done if one.error]
        if failed:
            say("error", message=f"commit: {failed[0]}")
        else:
            say("committed", began=began, offsets={f"{one.topic}-{one.partition}": one.offset for one in done})
        return


if __name__ == "__main__":
    settings = config()
    roles = {"producer": produce, "steady": steady, "consumer": consume, "transactional": transactional}
    roles[settings["role"]](settings)
