// Makes tests/golden/wire_messages.txt with Apache Kafka's own classes.
//
//   java -cp "$KAFKA_LIBS/*" tests/golden/WireMessages.java > tests/golden/wire_messages.txt
//
// KAFKA_LIBS holds the jars of Apache Kafka 4.4.0 (kafka-clients, jackson). Each line of MESSAGES is a message as Kafka's
// JSON converters write it: request or response, api key, version, content. A line of the output is the same with the
// body (no head, no length) in hex for the content. Uuids and bytes are base64; records are put in where there was no error.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.ShareFetchResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.SimpleRecord;

public class WireMessages {
    static final String MESSAGES = """
        request 8 10 {"groupId": "orders", "generationIdOrMemberEpoch": 3, "memberId": "m-1", "groupInstanceId": null, "topics": [{"topicId": "AAAAAAAAAAEAAAAAAAAAAg", "partitions": [{"partitionIndex": 7, "committedOffset": 123456789012, "committedLeaderEpoch": 42, "committedMetadata": "café"}, {"partitionIndex": 8, "committedOffset": 0, "committedLeaderEpoch": -1, "committedMetadata": null}]}]}
        response 8 10 {"throttleTimeMs": 5, "topics": [{"topicId": "AAAAAAAAAAEAAAAAAAAAAg", "partitions": [{"partitionIndex": 7, "errorCode": 0}, {"partitionIndex": 8, "errorCode": 100}]}]}
        request 9 10 {"groups": [{"groupId": "orders", "memberId": "m-1", "memberEpoch": 3, "topics": [{"topicId": "AAAAAAAAAAEAAAAAAAAAAg", "partitionIndexes": [7, 8]}]}, {"groupId": "all", "memberId": null, "memberEpoch": -1, "topics": null}], "requireStable": true}
        response 9 10 {"throttleTimeMs": 0, "groups": [{"groupId": "orders", "topics": [{"topicId": "AAAAAAAAAAEAAAAAAAAAAg", "partitions": [{"partitionIndex": 7, "committedOffset": 123456789012, "committedLeaderEpoch": 42, "metadata": "m", "errorCode": 0}, {"partitionIndex": 8, "committedOffset": -1, "committedLeaderEpoch": -1, "metadata": null, "errorCode": 100}]}], "errorCode": 0}]}
        request 10 6 {"keyType": 0, "coordinatorKeys": ["orders", "payments"]}
        response 10 6 {"throttleTimeMs": 0, "coordinators": [{"key": "orders", "nodeId": 2, "host": "broker-2.example", "port": 9092, "errorCode": 0, "errorMessage": null}, {"key": "payments", "nodeId": -1, "host": "", "port": -1, "errorCode": 15, "errorMessage": "not yet"}]}
        request 11 9 {"groupId": "orders", "sessionTimeoutMs": 45000, "rebalanceTimeoutMs": 300000, "memberId": "", "groupInstanceId": "i-1", "protocolType": "consumer", "protocols": [{"name": "range", "metadata": "AAEC"}, {"name": "cooperative-sticky", "metadata": ""}], "reason": "rejoin"}
        response 11 9 {"throttleTimeMs": 0, "errorCode": 0, "generationId": 4, "protocolType": "consumer", "protocolName": "range", "leader": "m-1", "skipAssignment": true, "memberId": "m-1", "members": [{"memberId": "m-1", "groupInstanceId": "i-1", "metadata": "AAEC"}, {"memberId": "m-2", "groupInstanceId": null, "metadata": ""}]}
        response 12 4 {"throttleTimeMs": 0, "errorCode": 27}
        request 13 5 {"groupId": "orders", "members": [{"memberId": "m-1", "groupInstanceId": null, "reason": "closed"}, {"memberId": "", "groupInstanceId": "i-1", "reason": null}]}
        response 13 5 {"throttleTimeMs": 0, "errorCode": 0, "members": [{"memberId": "m-1", "groupInstanceId": null, "errorCode": 0}, {"memberId": "", "groupInstanceId": "i-1", "errorCode": 25}]}
        request 14 5 {"groupId": "orders", "generationId": 4, "memberId": "m-1", "groupInstanceId": null, "protocolType": "consumer", "protocolName": "range", "assignments": [{"memberId": "m-1", "assignment": "AAEC"}]}
        response 14 5 {"throttleTimeMs": 0, "errorCode": 0, "protocolType": "consumer", "protocolName": "range", "assignment": "AAEC"}
        response 15 6 {"throttleTimeMs": 0, "groups": [{"errorCode": 0, "errorMessage": null, "groupId": "orders", "groupState": "Stable", "protocolType": "consumer", "protocolData": "range", "members": [{"memberId": "m-1", "groupInstanceId": null, "clientId": "c", "clientHost": "/127.0.0.1", "memberMetadata": "AAEC", "memberAssignment": "AwQ="}], "authorizedOperations": -2147483648}, {"errorCode": 69, "errorMessage": "Group none not found.", "groupId": "none", "groupState": "Dead", "protocolType": "", "protocolData": "", "members": [], "authorizedOperations": 264}]}
        request 16 5 {"statesFilter": ["Stable"], "typesFilter": ["classic", "consumer"]}
        response 16 5 {"throttleTimeMs": 0, "errorCode": 0, "groups": [{"groupId": "orders", "protocolType": "consumer", "groupState": "Stable", "groupType": "classic"}]}
        request 18 5 {"clientSoftwareName": "apache-kafka-java", "clientSoftwareVersion": "4.4.0", "clusterId": "Wx1yTqJ1Q5uVv0Gk3Yb6aA", "nodeId": 3}
        request 18 5 {"clientSoftwareName": "apache-kafka-java", "clientSoftwareVersion": "4.4.0", "clusterId": null, "nodeId": -1}
        response 18 4 {"errorCode": 0, "apiKeys": [{"apiKey": 18, "minVersion": 0, "maxVersion": 5}], "throttleTimeMs": 0, "supportedFeatures": [{"name": "group.version", "minVersion": 0, "maxVersion": 1}], "finalizedFeaturesEpoch": 9, "finalizedFeatures": [{"name": "metadata.version", "maxVersionLevel": 33, "minVersionLevel": 33}], "zkMigrationReady": true}
        response 18 5 {"errorCode": 0, "apiKeys": [{"apiKey": 18, "minVersion": 0, "maxVersion": 5}], "throttleTimeMs": 0, "supportedFeatures": [{"name": "group.version", "minVersion": 0, "maxVersion": 1}], "finalizedFeaturesEpoch": 9, "finalizedFeatures": [{"name": "metadata.version", "maxVersionLevel": 33, "minVersionLevel": 33}], "zkMigrationReady": false}
        request 42 3 {"groupsNames": ["orders", "payments"]}
        response 42 3 {"throttleTimeMs": 0, "results": [{"groupId": "orders", "errorCode": 0, "errorMessage": null}, {"groupId": "payments", "errorCode": 68, "errorMessage": "The group is not empty."}]}
        response 42 1 {"throttleTimeMs": 0, "results": [{"groupId": "orders", "errorCode": 69}]}
        request 47 0 {"groupId": "orders", "topics": [{"name": "t", "partitions": [{"partitionIndex": 7}]}]}
        response 47 0 {"errorCode": 0, "throttleTimeMs": 0, "topics": [{"name": "t", "partitions": [{"partitionIndex": 7, "errorCode": 86}]}]}
        response 3 13 {"throttleTimeMs": 0, "brokers": [{"nodeId": 1, "host": "broker-1.example", "port": 9092, "rack": null}, {"nodeId": 2, "host": "broker-2.example", "port": 9093, "rack": "r2"}], "clusterId": "Wx1yTqJ1Q5uVv0Gk3Yb6aA", "controllerId": 2, "topics": [{"errorCode": 0, "name": "t", "topicId": "AAAAAAAAAAEAAAAAAAAAAg", "isInternal": false, "partitions": [{"errorCode": 0, "partitionIndex": 0, "leaderId": 1, "leaderEpoch": 6, "replicaNodes": [1, 2], "isrNodes": [1], "offlineReplicas": [2]}], "topicAuthorizedOperations": 3576}, {"errorCode": 100, "name": null, "topicId": "AAAAAAAAAAMAAAAAAAAABA", "isInternal": false, "partitions": [], "topicAuthorizedOperations": -2147483648}], "errorCode": 0}
        response 0 13 {"responses": [{"topicId": "AAAAAAAAAAEAAAAAAAAAAg", "partitionResponses": [{"index": 0, "errorCode": 6, "baseOffset": -1, "logAppendTimeMs": -1, "logStartOffset": -1, "recordErrors": [{"batchIndex": 1, "batchIndexErrorMessage": "bad"}], "errorMessage": "moved", "currentLeader": {"leaderId": 2, "leaderEpoch": 8}}, {"index": 1, "errorCode": 0, "baseOffset": 55, "logAppendTimeMs": -1, "logStartOffset": 3, "recordErrors": [], "errorMessage": null}]}], "throttleTimeMs": 0, "nodeEndpoints": [{"nodeId": 2, "host": "broker-2.example", "port": 9093, "rack": "r2"}]}
        response 1 18 {"throttleTimeMs": 0, "errorCode": 0, "sessionId": 77, "responses": [{"topicId": "AAAAAAAAAAEAAAAAAAAAAg", "partitions": [{"partitionIndex": 0, "errorCode": 0, "highWatermark": 9, "lastStableOffset": 9, "logStartOffset": 0, "abortedTransactions": [{"producerId": 5, "firstOffset": 1}], "preferredReadReplica": 2, "records": null}, {"partitionIndex": 1, "errorCode": 6, "highWatermark": -1, "lastStableOffset": -1, "logStartOffset": -1, "abortedTransactions": null, "preferredReadReplica": -1, "records": null, "currentLeader": {"leaderId": 2, "leaderEpoch": 8}}]}], "nodeEndpoints": [{"nodeId": 2, "host": "broker-2.example", "port": 9093, "rack": null}]}
        response 60 2 {"throttleTimeMs": 0, "errorCode": 0, "errorMessage": null, "endpointType": 1, "clusterId": "Wx1yTqJ1Q5uVv0Gk3Yb6aA", "controllerId": 2, "brokers": [{"brokerId": 2, "host": "broker-2.example", "port": 9093, "rack": "r2", "isFenced": true}], "clusterAuthorizedOperations": -2147483648}
        response 55 2 {"errorCode": 0, "errorMessage": null, "topics": [{"topicName": "__cluster_metadata", "partitions": [{"partitionIndex": 0, "errorCode": 0, "errorMessage": null, "leaderId": 3, "leaderEpoch": 5, "highWatermark": 99, "currentVoters": [{"replicaId": 3, "replicaDirectoryId": "AAAAAAAAAAEAAAAAAAAAAg", "logEndOffset": 100, "lastFetchTimestamp": 1764500000123, "lastCaughtUpTimestamp": -1}], "observers": []}]}], "nodes": [{"nodeId": 3, "listeners": [{"name": "CONTROLLER", "host": "controller-3.example", "port": 50000}]}]}
        request 68 1 {"groupId": "orders", "memberId": "m-1", "memberEpoch": 0, "instanceId": "i-1", "rackId": "r1", "rebalanceTimeoutMs": 300000, "subscribedTopicNames": ["t", "u"], "subscribedTopicRegex": "t.*", "serverAssignor": "uniform", "topicPartitions": []}
        request 68 0 {"groupId": "orders", "memberId": "", "memberEpoch": 3, "instanceId": null, "rackId": null, "rebalanceTimeoutMs": -1, "subscribedTopicNames": null, "serverAssignor": null, "topicPartitions": [{"topicId": "AAAAAAAAAAEAAAAAAAAAAg", "partitions": [7, 8]}]}
        response 68 1 {"throttleTimeMs": 0, "errorCode": 0, "errorMessage": null, "memberId": "m-1", "memberEpoch": 4, "heartbeatIntervalMs": 5000, "assignment": {"topicPartitions": [{"topicId": "AAAAAAAAAAEAAAAAAAAAAg", "partitions": [7, 8]}]}}
        response 68 0 {"throttleTimeMs": 0, "errorCode": 110, "errorMessage": "fenced", "memberId": null, "memberEpoch": 0, "heartbeatIntervalMs": 0, "assignment": null}
        request 69 1 {"groupIds": ["orders", "payments"], "includeAuthorizedOperations": true}
        response 69 1 {"throttleTimeMs": 0, "groups": [{"errorCode": 0, "errorMessage": null, "groupId": "orders", "groupState": "Stable", "groupEpoch": 4, "assignmentEpoch": 4, "assignorName": "uniform", "members": [{"memberId": "m-1", "instanceId": "i-1", "rackId": null, "memberEpoch": 4, "clientId": "c", "clientHost": "/127.0.0.1", "subscribedTopicNames": ["t"], "subscribedTopicRegex": "t.*", "assignment": {"topicPartitions": [{"topicId": "AAAAAAAAAAEAAAAAAAAAAg", "topicName": "t", "partitions": [7]}]}, "targetAssignment": {"topicPartitions": [{"topicId": "AAAAAAAAAAEAAAAAAAAAAg", "topicName": "t", "partitions": [7, 8]}]}, "memberType": 1}], "authorizedOperations": -2147483648}, {"errorCode": 69, "errorMessage": "Group none not found.", "groupId": "none", "groupState": "", "groupEpoch": 0, "assignmentEpoch": 0, "assignorName": "", "members": [], "authorizedOperations": -2147483648}]}
        response 78 2 {"throttleTimeMs": 0, "errorCode": 0, "errorMessage": null, "acquisitionLockTimeoutMs": 30000, "responses": [{"topicId": "AAAAAAAAAAEAAAAAAAAAAg", "partitions": [{"partitionIndex": 0, "errorCode": 0, "errorMessage": null, "acknowledgeErrorCode": 0, "acknowledgeErrorMessage": null, "currentLeader": {"leaderId": 2, "leaderEpoch": 8}, "records": "", "acquiredRecords": [{"firstOffset": 1, "lastOffset": 2, "deliveryCount": 1}]}]}], "nodeEndpoints": [{"nodeId": 2, "host": "broker-2.example", "port": 9093, "rack": "r2"}]}
        response 79 2 {"throttleTimeMs": 0, "errorCode": 0, "errorMessage": null, "acquisitionLockTimeoutMs": 30000, "responses": [{"topicId": "AAAAAAAAAAEAAAAAAAAAAg", "partitions": [{"partitionIndex": 0, "errorCode": 6, "errorMessage": "moved", "currentLeader": {"leaderId": 2, "leaderEpoch": 8}}]}], "nodeEndpoints": [{"nodeId": 2, "host": "broker-2.example", "port": 9093, "rack": "r2"}]}
        """;

    public static void main(String[] args) throws Exception {
        for (String line : MESSAGES.lines().toList()) {
            String[] words = line.split(" ", 4);
            short version = Short.parseShort(words[2]);
            ApiMessageType type = ApiKeys.forId(Integer.parseInt(words[1])).messageType;
            ApiMessage shape = words[0].equals("request") ? type.newRequest() : type.newResponse();
            ApiMessage message = read(shape, new ObjectMapper().readTree(words[3]), version);
            ByteBuffer body = MessageUtil.toByteBufferAccessor(message, version).buffer();
            byte[] bytes = new byte[body.remaining()];
            body.get(bytes);
            System.out.printf("%s %s %s %s%n", words[0], words[1], words[2], HexFormat.of().formatHex(bytes));
        }
    }

    static ApiMessage read(ApiMessage shape, JsonNode json, short version) throws Exception {
        Class<?> converter = Class.forName(shape.getClass().getName() + "JsonConverter");
        Object message = converter.getMethod("read", JsonNode.class, short.class).invoke(null, json, version);
        if (message instanceof FetchResponseData fetch) {
            fetch.responses().forEach(topic -> topic.partitions().forEach(partition -> {
                if (partition.errorCode() == 0) partition.setRecords(records());
            }));
        }
        if (message instanceof ShareFetchResponseData fetch) {
            fetch.responses().forEach(topic -> topic.partitions().forEach(partition -> partition.setRecords(records())));
        }
        return (ApiMessage) message;
    }

    static MemoryRecords records() {
        return MemoryRecords.withRecords(Compression.NONE, new SimpleRecord(1764500000123L, "k".getBytes(), "v".getBytes()));
    }
}
