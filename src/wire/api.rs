//! The one table of APIs: what Convoke does with each, in which versions, and why.
//!
//! The newest versions are those of Apache Kafka 4.4.0, the oldest those of 3.8.1 where nothing is decoded: the upstream's
//! own range narrows what a client is offered. A version range says what Convoke handles, not what an upstream has.

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// The bytes go to the upstream node and its answer comes back, both untouched.
    Forward,
    /// The request goes up untouched; the answer is changed on its way back.
    Rewrite,
    /// The request ends here.
    Own,
    /// Goes up untouched, but for what it says about groups that are coordinated here, where the upstream has no place for it.
    Split,
    /// Never offered; a client that sends it all the same is treated as Kafka treats an unknown API.
    Refuse,
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Api {
    pub key: i16,
    /// Kafka's name, as metrics and logs print it.
    pub name: &'static str,
    /// The versions that we forward, rewrite or answer; what a client is offered is narrowed further by the upstream.
    pub min: i16,
    pub max: i16,
    /// The first version with flexible (tagged) headers, if any.
    pub flexible_since: Option<i16>,
    pub route: Route,
    /// The reason for the route and for the range, for readers.
    pub why: &'static str,
}

impl Api {
    /// Whether this version is in the range.
    #[must_use]
    pub const fn has_version(&self, version: i16) -> bool {
        self.min <= version && version <= self.max
    }

    /// Whether heads and bodies of this version have compact lengths and tagged fields.
    #[must_use]
    pub const fn is_flexible(&self, version: i16) -> bool {
        match self.flexible_since {
            Some(since) => version >= since,
            None => false,
        }
    }
}

/// The row of a key.
#[must_use]
pub fn find(key: i16) -> Option<&'static Api> {
    slot(key).and_then(|slot| APIS.get(slot))
}

/// The place of a key in [`APIS`].
#[must_use]
pub fn slot(key: i16) -> Option<usize> {
    let slot = match key.checked_sub(FIRST_OWN_KEY) {
        Some(own @ 0..) => KAFKAS + usize::try_from(own).ok()?,
        _ => usize::try_from(key).ok().filter(|slot| *slot < KAFKAS)?,
    };
    (slot < APIS.len()).then_some(slot)
}

/// Whether a request of this API may change which topics there are, their partitions, or where those are kept.
#[must_use]
pub const fn changes_topics(key: i16) -> bool {
    matches!(
        key,
        CREATE_TOPICS | DELETE_TOPICS | CREATE_PARTITIONS | ALTER_PARTITION_REASSIGNMENTS
    )
}

/// Whether a request of this API may change settings, of brokers or of groups.
#[must_use]
pub const fn changes_configs(key: i16) -> bool {
    matches!(key, ALTER_CONFIGS | INCREMENTAL_ALTER_CONFIGS)
}

// The keys that code outside the table speaks of.
pub const PRODUCE: i16 = 0;
pub const FETCH: i16 = 1;
pub const METADATA: i16 = 3;
pub const OFFSET_COMMIT: i16 = 8;
pub const OFFSET_FETCH: i16 = 9;
pub const FIND_COORDINATOR: i16 = 10;
pub const JOIN_GROUP: i16 = 11;
pub const HEARTBEAT: i16 = 12;
pub const LEAVE_GROUP: i16 = 13;
pub const SYNC_GROUP: i16 = 14;
pub const DESCRIBE_GROUPS: i16 = 15;
pub const LIST_GROUPS: i16 = 16;
pub const SASL_HANDSHAKE: i16 = 17;
pub const API_VERSIONS: i16 = 18;
pub const CREATE_TOPICS: i16 = 19;
pub const DELETE_TOPICS: i16 = 20;
pub const DESCRIBE_CONFIGS: i16 = 32;
pub const ALTER_CONFIGS: i16 = 33;
pub const SASL_AUTHENTICATE: i16 = 36;
pub const CREATE_PARTITIONS: i16 = 37;
pub const DELETE_GROUPS: i16 = 42;
pub const INCREMENTAL_ALTER_CONFIGS: i16 = 44;
pub const ALTER_PARTITION_REASSIGNMENTS: i16 = 45;
pub const OFFSET_DELETE: i16 = 47;
pub const DESCRIBE_QUORUM: i16 = 55;
pub const DESCRIBE_CLUSTER: i16 = 60;
pub const CONSUMER_GROUP_HEARTBEAT: i16 = 68;
pub const CONSUMER_GROUP_DESCRIBE: i16 = 69;
pub const SHARE_FETCH: i16 = 78;
pub const SHARE_ACKNOWLEDGE: i16 = 79;
pub const CONSUMER_GROUP_PREPARE_ASSIGNMENT: i16 = 20848;
pub const CONSUMER_GROUP_INSTALL_ASSIGNMENT: i16 = 20849;

/// The keys of our own APIs start here: far above Kafka's, so that no release takes them.
const FIRST_OWN_KEY: i16 = CONSUMER_GROUP_PREPARE_ASSIGNMENT;

const fn row(
    key: i16,
    name: &'static str,
    versions: (i16, i16),
    flexible: i16,
    route: Route,
    why: &'static str,
) -> Api {
    let flexible_since = if flexible == NEVER { None } else { Some(flexible) };
    Api {
        key,
        name,
        min: versions.0,
        max: versions.1,
        flexible_since,
        route,
        why,
    }
}

const fn forward(key: i16, name: &'static str, versions: (i16, i16), flexible: i16, why: &'static str) -> Api {
    row(key, name, versions, flexible, Route::Forward, why)
}

const fn rewrite(key: i16, name: &'static str, versions: (i16, i16), flexible: i16, why: &'static str) -> Api {
    row(key, name, versions, flexible, Route::Rewrite, why)
}

const fn own(key: i16, name: &'static str, versions: (i16, i16), flexible: i16, why: &'static str) -> Api {
    row(key, name, versions, flexible, Route::Own, why)
}

const fn split(key: i16, name: &'static str, versions: (i16, i16), flexible: i16) -> Api {
    row(key, name, versions, flexible, Route::Split, GROUP_CONFIGS)
}

const fn refuse(key: i16, name: &'static str, versions: (i16, i16), flexible: i16, why: &'static str) -> Api {
    row(key, name, versions, flexible, Route::Refuse, why)
}

const NEVER: i16 = i16::MAX;

const PLAIN: &str = "carries neither addresses nor the state of owned groups";
const TRANSACTION: &str = "goes to the transaction coordinator, whose address FindCoordinator rewrote";
const GROUP: &str = "the coordinator of owned groups answers";
const ASSIGNOR: &str = "client-side assignors (KIP-848): Kafka gave it no key and no broker has it, so a private key; being listed tells a client that \
                        ClientAssignors in its heartbeats are understood";
const DELEGATED: &str = "share and streams groups stay with the upstream";
const GROUP_CONFIGS: &str = "brokers before 4.0 have no settings of groups, which are then kept here; those of BROKER resources name \
                             listeners as text: content, which no client dials";
const SHARE_STATE: &str = "spoken between brokers on their own listener; no client sends it";
const CONTROLLER: &str = "controller listeners only; a broker's client listener does not know it";
const REMOVED: &str = "between ZooKeeper-era brokers; Kafka 4.0 removed it";

/// How many APIs are Kafka's; those of our own follow.
const KAFKAS: usize = 95;

/// Every API that Convoke knows. A row of Kafka's stands at the index of its key, those of our own behind them, in order.
#[rustfmt::skip]
pub static APIS: &[Api] = &[
    rewrite(0, "Produce", (0, 13), 9,
        "v10+ names new leaders' endpoints (KIP-951); older answers pass untouched. Brokers list 0 as the minimum whatever they take, for old librdkafka (KAFKA-18659)"),
    rewrite(1, "Fetch", (0, 18), 12,
        "v16+ names new leaders' endpoints (KIP-951); older answers pass untouched, so versions that 4.0 removed may stay"),
    forward(2, "ListOffsets", (0, 11), 6, PLAIN),
    rewrite(3, "Metadata", (0, 13), 9, "brokers' addresses"),
    refuse(4, "LeaderAndIsr", (0, 7), 4, REMOVED),
    refuse(5, "StopReplica", (0, 4), 2, REMOVED),
    refuse(6, "UpdateMetadata", (0, 8), 6, REMOVED),
    refuse(7, "ControlledShutdown", (0, 3), 3, REMOVED),
    own(8, "OffsetCommit", (2, 10), 8, "owned groups' offsets live here; v0-1 wrote to ZooKeeper and Kafka 4.0 removed them"),
    own(9, "OffsetFetch", (1, 10), 6, "owned groups' offsets live here; v0 read from ZooKeeper and Kafka 4.0 removed it"),
    rewrite(10, "FindCoordinator", (0, 6), 3, "coordinators' addresses; the upstream's own choice of node stands"),
    own(11, "JoinGroup", (0, 9), 6, GROUP),
    own(12, "Heartbeat", (0, 4), 4, GROUP),
    own(13, "LeaveGroup", (0, 5), 4, GROUP),
    own(14, "SyncGroup", (0, 5), 4, GROUP),
    own(15, "DescribeGroups", (0, 6), 5, GROUP),
    own(16, "ListGroups", (0, 5), 3, "owned groups of this node, with those that the upstream keeps"),
    forward(17, "SaslHandshake", (0, 1), NEVER,
        "the upstream authenticates; after v0 bare tokens follow, which pass one by one"),
    own(18, "ApiVersions", (0, 5), 3, "what the upstream offers, narrowed to this table"),
    forward(19, "CreateTopics", (0, 7), 5, PLAIN),
    forward(20, "DeleteTopics", (0, 6), 4, PLAIN),
    forward(21, "DeleteRecords", (0, 2), 2, PLAIN),
    forward(22, "InitProducerId", (0, 5), 2, "transactions stay upstream; v6 (KIP-939) is unstable in Kafka 4.4"),
    forward(23, "OffsetForLeaderEpoch", (0, 4), 4, PLAIN),
    forward(24, "AddPartitionsToTxn", (0, 5), 3, TRANSACTION),
    forward(25, "AddOffsetsToTxn", (0, 4), 3, TRANSACTION),
    forward(26, "EndTxn", (0, 5), 3, TRANSACTION),
    forward(27, "WriteTxnMarkers", (0, 2), 1,
        "between brokers, but admin clients abort hanging transactions with it; the upstream demands ClusterAction"),
    refuse(28, "TxnOffsetCommit", (0, 6), 3, "transactional offsets of owned groups are not kept yet"),
    forward(29, "DescribeAcls", (0, 3), 2, PLAIN),
    forward(30, "CreateAcls", (0, 3), 2, PLAIN),
    forward(31, "DeleteAcls", (0, 3), 2, PLAIN),
    split(32, "DescribeConfigs", (0, 4), 4),
    split(33, "AlterConfigs", (0, 2), 2),
    forward(34, "AlterReplicaLogDirs", (0, 2), 2, PLAIN),
    forward(35, "DescribeLogDirs", (0, 5), 2, PLAIN),
    forward(36, "SaslAuthenticate", (0, 2), 2, "the upstream authenticates"),
    forward(37, "CreatePartitions", (0, 3), 2, PLAIN),
    forward(38, "CreateDelegationToken", (0, 3), 2, PLAIN),
    forward(39, "RenewDelegationToken", (0, 2), 2, PLAIN),
    forward(40, "ExpireDelegationToken", (0, 2), 2, PLAIN),
    forward(41, "DescribeDelegationToken", (0, 3), 2, PLAIN),
    own(42, "DeleteGroups", (0, 3), 2, GROUP),
    forward(43, "ElectLeaders", (0, 2), 2, PLAIN),
    split(44, "IncrementalAlterConfigs", (0, 1), 1),
    forward(45, "AlterPartitionReassignments", (0, 1), 0, PLAIN),
    forward(46, "ListPartitionReassignments", (0, 0), 0, PLAIN),
    own(47, "OffsetDelete", (0, 0), NEVER, GROUP),
    forward(48, "DescribeClientQuotas", (0, 1), 1, PLAIN),
    forward(49, "AlterClientQuotas", (0, 1), 1, PLAIN),
    forward(50, "DescribeUserScramCredentials", (0, 0), 0, PLAIN),
    forward(51, "AlterUserScramCredentials", (0, 0), 0, PLAIN),
    refuse(52, "Vote", (0, 2), 0, CONTROLLER),
    refuse(53, "BeginQuorumEpoch", (0, 1), 1, CONTROLLER),
    refuse(54, "EndQuorumEpoch", (0, 1), 1, CONTROLLER),
    rewrite(55, "DescribeQuorum", (0, 2), 0, "v2 names the controllers' listeners"),
    refuse(56, "AlterPartition", (0, 3), 0, CONTROLLER),
    forward(57, "UpdateFeatures", (0, 2), 0, PLAIN),
    refuse(58, "Envelope", (0, 0), 0, CONTROLLER),
    refuse(59, "FetchSnapshot", (0, 1), 0, CONTROLLER),
    rewrite(60, "DescribeCluster", (0, 2), 0, "brokers' addresses"),
    forward(61, "DescribeProducers", (0, 0), 0, PLAIN),
    refuse(62, "BrokerRegistration", (0, 4), 0, CONTROLLER),
    refuse(63, "BrokerHeartbeat", (0, 2), 0, CONTROLLER),
    forward(64, "UnregisterBroker", (0, 0), 0, PLAIN),
    forward(65, "DescribeTransactions", (0, 0), 0, TRANSACTION),
    forward(66, "ListTransactions", (0, 2), 0, PLAIN),
    refuse(67, "AllocateProducerIds", (0, 0), 0, CONTROLLER),
    own(68, "ConsumerGroupHeartbeat", (0, 1), 0, GROUP),
    own(69, "ConsumerGroupDescribe", (0, 1), 0, GROUP),
    refuse(70, "ControllerRegistration", (0, 0), 0, CONTROLLER),
    forward(71, "GetTelemetrySubscriptions", (0, 0), 0, "its state is kept by the node, and a connection stays with its node"),
    forward(72, "PushTelemetry", (0, 0), 0, "its state is kept by the node, and a connection stays with its node"),
    refuse(73, "AssignReplicasToDirs", (0, 0), 0, CONTROLLER),
    forward(74, "ListConfigResources", (0, 1), 0, PLAIN),
    forward(75, "DescribeTopicPartitions", (0, 0), 0, PLAIN),
    forward(76, "ShareGroupHeartbeat", (1, 1), 1, DELEGATED),
    forward(77, "ShareGroupDescribe", (1, 1), 1, DELEGATED),
    rewrite(78, "ShareFetch", (1, 2), 1, "new leaders' endpoints"),
    rewrite(79, "ShareAcknowledge", (1, 2), 1, "new leaders' endpoints"),
    forward(80, "AddRaftVoter", (0, 1), 0, PLAIN),
    forward(81, "RemoveRaftVoter", (0, 0), 0, PLAIN),
    refuse(82, "UpdateRaftVoter", (0, 0), 0, CONTROLLER),
    refuse(83, "InitializeShareGroupState", (0, 0), 0, SHARE_STATE),
    refuse(84, "ReadShareGroupState", (0, 0), 0, SHARE_STATE),
    refuse(85, "WriteShareGroupState", (0, 1), 0, SHARE_STATE),
    refuse(86, "DeleteShareGroupState", (0, 0), 0, SHARE_STATE),
    refuse(87, "ReadShareGroupStateSummary", (0, 1), 0, SHARE_STATE),
    forward(88, "StreamsGroupHeartbeat", (0, 1), 0, "streams groups stay with the upstream; its endpoints are the applications' own"),
    forward(89, "StreamsGroupDescribe", (0, 1), 0, "streams groups stay with the upstream; its endpoints are the applications' own"),
    forward(90, "DescribeShareGroupOffsets", (0, 1), 0, DELEGATED),
    forward(91, "AlterShareGroupOffsets", (0, 0), 0, DELEGATED),
    forward(92, "DeleteShareGroupOffsets", (0, 0), 0, DELEGATED),
    forward(93, "StreamsGroupTopologyDescriptionUpdate", (0, 0), 0, DELEGATED),
    forward(94, "UnregisterController", (0, 0), 0, PLAIN),
    own(20848, "ConsumerGroupPrepareAssignment", (0, 0), 0, ASSIGNOR),
    own(20849, "ConsumerGroupInstallAssignment", (0, 0), 0, ASSIGNOR),
];

#[cfg(test)]
mod tests;
