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
const LEFT_OUT: [(i16, i16, &str); 1] = [(
    22,
    6,
    "InitProducerId v6 is unstable in Kafka 4.4: brokers do not offer it, and kafka-protocol has no body for it",
)];

#[test]
fn a_row_stands_at_the_index_of_its_key() {
    for (index, api) in APIS.iter().enumerate() {
        assert_eq!(slot(api.key), Some(index), "{}", api.name);
        let is_kafkas = index < KAFKAS;
        assert_eq!(usize::try_from(api.key) == Ok(index), is_kafkas, "{}", api.name);
        assert!(api.min <= api.max, "{}", api.name);
        assert!(!api.why.is_empty(), "{}", api.name);
        assert_eq!(find(api.key).map(|found| found.name), Some(api.name));
    }
    for unknown in [i16::MIN, -1, 95, 96, 97, FIRST_OWN_KEY - 1, FIRST_OWN_KEY + 2, i16::MAX] {
        assert!(find(unknown).is_none(), "{unknown}");
    }
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
fn the_newest_versions_are_those_of_kafka_4_4() {
    let headings = include_str!("../../../tests/golden/message_schemas.txt")
        .lines()
        .filter(|line| !line.starts_with(' '));
    let mut listed = 0;
    for heading in headings {
        let words: Vec<_> = heading.split_whitespace().collect();
        let api = find(words[1].parse().expect("a key")).unwrap_or_else(|| panic!("decide on {heading}"));
        let (_, max) = words[3].split_once('-').expect("a range");
        let max: i16 = max.parse().expect("a version");
        let left_out = LEFT_OUT
            .iter()
            .any(|(key, version, _)| (*key, *version) == (api.key, max));
        assert_eq!(api.max, max - i16::from(left_out), "{heading}");
        assert_eq!(api.name, words[2]);
        let flexible = api
            .flexible_since
            .map_or("never".to_owned(), |since| since.max(api_min(words[3])).to_string());
        assert_eq!(flexible, words[5], "{heading}");
        listed += 1;
    }
    assert_eq!(
        listed,
        2 * APIS.iter().take(KAFKAS).filter(|api| api.why != REMOVED).count()
    );
}

/// The oldest version of a range in the listing, which is newer than what only passes through here.
fn api_min(range: &str) -> i16 {
    range
        .split_once('-')
        .and_then(|(min, _)| min.parse().ok())
        .expect("a range")
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
        (ALTER_CONFIGS, "AlterConfigs"),
        (SASL_AUTHENTICATE, "SaslAuthenticate"),
        (DELETE_GROUPS, "DeleteGroups"),
        (INCREMENTAL_ALTER_CONFIGS, "IncrementalAlterConfigs"),
        (OFFSET_DELETE, "OffsetDelete"),
        (DESCRIBE_QUORUM, "DescribeQuorum"),
        (DESCRIBE_CLUSTER, "DescribeCluster"),
        (CONSUMER_GROUP_HEARTBEAT, "ConsumerGroupHeartbeat"),
        (CONSUMER_GROUP_DESCRIBE, "ConsumerGroupDescribe"),
        (SHARE_FETCH, "ShareFetch"),
        (SHARE_ACKNOWLEDGE, "ShareAcknowledge"),
    ];
    for (key, name) in names {
        assert_eq!(find(key).map(|api| api.name), Some(name));
    }
}

/// Fields of responses that name a host or a port and are rewritten: key, path in the listing, first and last version.
const REWRITTEN: [(i16, &str, i16, i16); 18] = [
    (PRODUCE, "node_endpoints@0[].host", 10, 13),
    (PRODUCE, "node_endpoints@0[].port", 10, 13),
    (FETCH, "node_endpoints@0[].host", 16, 18),
    (FETCH, "node_endpoints@0[].port", 16, 18),
    (METADATA, "brokers[].host", 0, 13),
    (METADATA, "brokers[].port", 0, 13),
    (FIND_COORDINATOR, "host", 0, 3),
    (FIND_COORDINATOR, "port", 0, 3),
    (FIND_COORDINATOR, "coordinators[].host", 4, 6),
    (FIND_COORDINATOR, "coordinators[].port", 4, 6),
    (DESCRIBE_QUORUM, "nodes[].listeners[].host", 2, 2),
    (DESCRIBE_QUORUM, "nodes[].listeners[].port", 2, 2),
    (DESCRIBE_CLUSTER, "brokers[].host", 0, 2),
    (DESCRIBE_CLUSTER, "brokers[].port", 0, 2),
    (SHARE_FETCH, "node_endpoints[].host", 1, 2),
    (SHARE_FETCH, "node_endpoints[].port", 1, 2),
    (SHARE_ACKNOWLEDGE, "node_endpoints[].host", 1, 2),
    (SHARE_ACKNOWLEDGE, "node_endpoints[].port", 1, 2),
];

/// Those that are content: nobody dials them.
const CONTENT: [(i16, &str, &str); 10] = [
    (
        DESCRIBE_GROUPS,
        "groups[].members[].client_host",
        "where the member connects from",
    ),
    (29, "resources[].acls[].host", "the host that an ACL speaks of"),
    (
        31,
        "filter_results[].matching_acls[].host",
        "the host that an ACL speaks of",
    ),
    (69, "groups[].members[].client_host", "where the member connects from"),
    (77, "groups[].members[].client_host", "where the member connects from"),
    (
        88,
        "partitions_by_user_endpoint[].user_endpoint.host",
        "the application's own endpoint",
    ),
    (
        88,
        "partitions_by_user_endpoint[].user_endpoint.port",
        "the application's own endpoint",
    ),
    (89, "groups[].members[].client_host", "where the member connects from"),
    (
        89,
        "groups[].members[].user_endpoint.host",
        "the application's own endpoint",
    ),
    (
        89,
        "groups[].members[].user_endpoint.port",
        "the application's own endpoint",
    ),
];

/// The fields of responses, in the listing that kafka-clients printed, that by their name hold a host or a port.
fn listed_addresses() -> Vec<(i16, &'static str, i16, i16)> {
    let mut addresses = Vec::new();
    let mut response = None;
    for line in include_str!("../../../tests/golden/message_schemas.txt").lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        if !line.starts_with(' ') {
            response = (words[0] == "response").then(|| words[1].parse().expect("a key"));
            continue;
        }
        let field = words[0].rsplit('.').next().unwrap_or_default();
        if let (Some(key), true) = (response, is_address(field)) {
            let (first, last) = words[2].split_once('-').expect("a range");
            addresses.push((
                key,
                words[0],
                first.parse().expect("a version"),
                last.parse().expect("a version"),
            ));
        }
    }
    addresses
}

fn is_address(field: &str) -> bool {
    field
        .split('_')
        .any(|word| matches!(word, "host" | "hosts" | "hostname" | "port" | "ports" | "address"))
}

#[test]
fn every_host_and_port_that_a_client_may_see_is_rewritten_or_content() {
    let listed = listed_addresses();
    for (key, path, first, last) in &listed {
        let api = find(*key).expect("decided on");
        let rewritten = REWRITTEN.contains(&(*key, *path, *first, *last));
        let content = CONTENT.iter().any(|(content, of, _)| (content, of) == (key, path));
        assert!(
            api.route == Route::Refuse || rewritten != content,
            "{} {path} v{first}-{last} shows an address: rewrite it, or list it as content",
            api.name
        );
        assert!(
            !rewritten || api.route == Route::Rewrite,
            "{} is not rewritten",
            api.name
        );
    }
    for (key, path, first, last) in REWRITTEN {
        assert!(
            listed.contains(&(key, path, first, last)),
            "{key} {path} is not in the listing"
        );
    }
    let apis: std::collections::BTreeSet<_> = REWRITTEN.iter().map(|(key, ..)| *key).collect();
    let routed = APIS.iter().filter(|api| api.route == Route::Rewrite).map(|api| api.key);
    assert_eq!(apis, routed.collect());
}

/// The source of kafka-protocol where cargo put it.
fn kafka_protocol_messages() -> std::path::PathBuf {
    let home = std::env::var_os("CARGO_HOME")
        .map(std::path::PathBuf::from)
        .or_else(|| {
            let home = std::env::var_os("HOME")?;
            Some(std::path::Path::new(&home).join(".cargo"))
        });
    let registries = home.expect("CARGO_HOME or HOME is set").join("registry/src");
    let registries = std::fs::read_dir(&registries).unwrap_or_else(|error| {
        panic!(
            "{}: {error}; set CARGO_HOME to where cargo keeps sources",
            registries.display()
        )
    });
    let sources = registries
        .flatten()
        .map(|entry| entry.path().join("kafka-protocol-0.18.0/src/messages"));
    sources
        .into_iter()
        .find(|path| path.is_dir())
        .expect("cargo has unpacked kafka-protocol 0.18.0")
}

#[test]
fn kafka_protocol_knows_no_other_host_or_port_than_the_listing() {
    let mut listed: BTreeMap<(String, &str), usize> = BTreeMap::new();
    for (key, path, _, _) in listed_addresses() {
        let api = find(key).expect("decided on").name;
        let field = path.rsplit('.').next().unwrap_or_default();
        *listed.entry((api.to_lowercase(), field)).or_default() += 1;
    }
    let mut files = 0;
    for entry in std::fs::read_dir(kafka_protocol_messages())
        .expect("readable")
        .flatten()
    {
        let name = entry.file_name().into_string().expect("UTF-8");
        let Some(message) = name.strip_suffix("_response.rs") else {
            continue;
        };
        files += 1;
        let source = std::fs::read_to_string(entry.path()).expect("readable");
        let fields = source
            .lines()
            .filter_map(|line| line.strip_prefix("    pub ")?.split_once(": "));
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        for (field, _) in fields.filter(|(field, _)| is_address(field)) {
            *seen.entry(field).or_default() += 1;
        }
        for (field, count) in seen {
            let known = listed.get(&(message.replace('_', ""), field)).copied().unwrap_or(0);
            assert!(
                count <= known,
                "{name} has {field} {count} times, the listing {known} times"
            );
        }
    }
    assert_eq!(files, ApiKey::iter().count(), "one file for each response");
}
