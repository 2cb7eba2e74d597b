use std::collections::BTreeMap;

use kafka_protocol::messages::*;
use kafka_protocol::protocol::{HeaderVersion, Message, Request, VersionRange};

use super::*;

/// What kafka-protocol says of one API.
struct Known {
    request: VersionRange,
    response: VersionRange,
    request_head: fn(i16) -> i16,
    response_head: fn(i16) -> i16,
}

fn known<T: Request>(all: &mut BTreeMap<i16, Known>) {
    let known = Known {
        request: T::VERSIONS,
        response: <T::Response as Message>::VERSIONS,
        request_head: <T as HeaderVersion>::header_version,
        response_head: <T::Response as HeaderVersion>::header_version,
    };
    all.insert(T::KEY, known);
}

/// Every request of kafka-protocol.
fn all_known() -> BTreeMap<i16, Known> {
    let mut all = BTreeMap::new();
    macro_rules! insert {
        ($($request:ident),* $(,)?) => { $(known::<$request>(&mut all);)* };
    }
    insert!(
        ProduceRequest,
        FetchRequest,
        ListOffsetsRequest,
        MetadataRequest,
        OffsetCommitRequest,
        OffsetFetchRequest,
        FindCoordinatorRequest,
        JoinGroupRequest,
        HeartbeatRequest,
        LeaveGroupRequest,
        SyncGroupRequest,
        DescribeGroupsRequest,
        ListGroupsRequest,
        SaslHandshakeRequest,
        ApiVersionsRequest,
        CreateTopicsRequest,
        DeleteTopicsRequest,
        DeleteRecordsRequest,
        InitProducerIdRequest,
        OffsetForLeaderEpochRequest,
        AddPartitionsToTxnRequest,
        AddOffsetsToTxnRequest,
        EndTxnRequest,
        WriteTxnMarkersRequest,
        TxnOffsetCommitRequest,
        DescribeAclsRequest,
        CreateAclsRequest,
        DeleteAclsRequest,
        DescribeConfigsRequest,
        AlterConfigsRequest,
        AlterReplicaLogDirsRequest,
        DescribeLogDirsRequest,
        SaslAuthenticateRequest,
        CreatePartitionsRequest,
        CreateDelegationTokenRequest,
        RenewDelegationTokenRequest,
        ExpireDelegationTokenRequest,
        DescribeDelegationTokenRequest,
        DeleteGroupsRequest,
        ElectLeadersRequest,
        IncrementalAlterConfigsRequest,
        AlterPartitionReassignmentsRequest,
        ListPartitionReassignmentsRequest,
        OffsetDeleteRequest,
        DescribeClientQuotasRequest,
        AlterClientQuotasRequest,
        DescribeUserScramCredentialsRequest,
        AlterUserScramCredentialsRequest,
        VoteRequest,
        BeginQuorumEpochRequest,
        EndQuorumEpochRequest,
        DescribeQuorumRequest,
        AlterPartitionRequest,
        UpdateFeaturesRequest,
        EnvelopeRequest,
        FetchSnapshotRequest,
        DescribeClusterRequest,
        DescribeProducersRequest,
        BrokerRegistrationRequest,
        BrokerHeartbeatRequest,
        UnregisterBrokerRequest,
        DescribeTransactionsRequest,
        ListTransactionsRequest,
        AllocateProducerIdsRequest,
        ConsumerGroupHeartbeatRequest,
        ConsumerGroupDescribeRequest,
        ControllerRegistrationRequest,
        GetTelemetrySubscriptionsRequest,
        PushTelemetryRequest,
        AssignReplicasToDirsRequest,
        ListConfigResourcesRequest,
        DescribeTopicPartitionsRequest,
        ShareGroupHeartbeatRequest,
        ShareGroupDescribeRequest,
        ShareFetchRequest,
        ShareAcknowledgeRequest,
        AddRaftVoterRequest,
        RemoveRaftVoterRequest,
        UpdateRaftVoterRequest,
        InitializeShareGroupStateRequest,
        ReadShareGroupStateRequest,
        WriteShareGroupStateRequest,
        DeleteShareGroupStateRequest,
        ReadShareGroupStateSummaryRequest,
        DescribeShareGroupOffsetsRequest,
        AlterShareGroupOffsetsRequest,
        DeleteShareGroupOffsetsRequest
    );
    all
}

/// Versions that kafka-protocol knows and the table leaves out on purpose.
const LEFT_OUT: [(i16, i16, &str); 2] = [
    (
        SASL_HANDSHAKE,
        0,
        "raw tokens follow it, which nobody between can delimit",
    ),
    (
        22,
        6,
        "InitProducerId v6 is unstable in Kafka 4.4: brokers do not offer it, and kafka-protocol has no body for it",
    ),
];

#[test]
fn a_row_stands_at_the_index_of_its_key() {
    for (index, api) in APIS.iter().enumerate() {
        assert_eq!(usize::try_from(api.key), Ok(index), "{}", api.name);
        assert!(api.min <= api.max, "{}", api.name);
        assert!(!api.why.is_empty(), "{}", api.name);
        assert_eq!(find(api.key).map(|found| found.name), Some(api.name));
    }
    assert!(find(-1).is_none());
    assert!(find(95).is_none());
}

#[test]
fn every_api_and_version_that_kafka_protocol_knows_is_decided_on() {
    let known = all_known();
    for key in ApiKey::iter() {
        let api = find(key as i16).unwrap_or_else(|| panic!("{key:?} has no row: decide what becomes of it"));
        assert_eq!(api.name, format!("{key:?}"));
        let of_key = &known[&(key as i16)];
        for range in [of_key.request, of_key.response, key.valid_versions()] {
            for version in range.min..=range.max {
                let left_out = LEFT_OUT
                    .iter()
                    .any(|(key, left_out, _)| (*key, *left_out) == (api.key, version));
                assert!(
                    api.has_version(version) != left_out,
                    "{} v{version}: decide on it",
                    api.name
                );
            }
        }
    }
    assert_eq!(known.len(), ApiKey::iter().count());
}

#[test]
fn heads_are_flexible_from_the_version_that_kafka_protocol_says() {
    for (key, known) in all_known() {
        let api = find(key).expect("decided on");
        for version in known.request.min..=known.request.max {
            let flexible = api.is_flexible(version);
            assert_eq!(
                (known.request_head)(version),
                if flexible { 2 } else { 1 },
                "{} v{version}",
                api.name
            );
            let tagged_response = flexible && key != API_VERSIONS;
            assert_eq!(
                (known.response_head)(version),
                i16::from(tagged_response),
                "{} v{version}",
                api.name
            );
        }
    }
}

#[test]
fn keys_have_the_names_that_the_table_gives_them() {
    let names = [
        (PRODUCE, "Produce"),
        (FETCH, "Fetch"),
        (METADATA, "Metadata"),
        (OFFSET_COMMIT, "OffsetCommit"),
        (OFFSET_FETCH, "OffsetFetch"),
        (FIND_COORDINATOR, "FindCoordinator"),
        (JOIN_GROUP, "JoinGroup"),
        (HEARTBEAT, "Heartbeat"),
        (LEAVE_GROUP, "LeaveGroup"),
        (SYNC_GROUP, "SyncGroup"),
        (DESCRIBE_GROUPS, "DescribeGroups"),
        (LIST_GROUPS, "ListGroups"),
        (SASL_HANDSHAKE, "SaslHandshake"),
        (API_VERSIONS, "ApiVersions"),
        (DESCRIBE_CONFIGS, "DescribeConfigs"),
        (SASL_AUTHENTICATE, "SaslAuthenticate"),
        (DELETE_GROUPS, "DeleteGroups"),
        (OFFSET_DELETE, "OffsetDelete"),
        (DESCRIBE_QUORUM, "DescribeQuorum"),
        (DESCRIBE_CLUSTER, "DescribeCluster"),
        (SHARE_FETCH, "ShareFetch"),
        (SHARE_ACKNOWLEDGE, "ShareAcknowledge"),
    ];
    for (key, name) in names {
        assert_eq!(find(key).map(|api| api.name), Some(name));
    }
}
