//! The cluster as an assignor reaches it: through Convoke, at the addresses that Convoke names.

use std::sync::Arc;

use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{
    FindCoordinatorRequest, ListGroupsRequest, MetadataRequest, MetadataResponse, TopicName,
};
use kafka_protocol::protocol::StrBytes;

use crate::config::HostPort;
use crate::upstream::UpstreamError;
use crate::upstream::node::{Dialer, Node};
use crate::upstream::pool::Pool;
use crate::wire::error_code::ErrorCode;

/// The key type of FindCoordinator for groups.
const GROUP_KEY: i8 = 0;
/// FindCoordinator with a list of keys (KIP-699).
const FIND_COORDINATOR_LEAST: i16 = 4;
/// Metadata in which no topics means none, and creation can be forbidden.
const METADATA_LEAST: i16 = 4;
const CONSUMER: &str = "consumer";

/// Connections for short questions are shared; a registration dials one of its own.
#[derive(Debug)]
pub(super) struct Cluster {
    bootstrap: Vec<HostPort>,
    dialer: Dialer,
    pool: Pool,
}

impl Cluster {
    pub(super) fn new(bootstrap: Vec<HostPort>, dialer: Dialer) -> Self {
        Self {
            bootstrap,
            pool: Pool::new(dialer.clone()),
            dialer,
        }
    }

    /// A connection that nobody else uses.
    pub(super) async fn dial(&self, address: &HostPort) -> Result<Arc<Node>, UpstreamError> {
        self.dialer.dial(address).await
    }

    /// The connection to an address that everybody here shares.
    pub(super) async fn shared(&self, address: &HostPort) -> Result<Arc<Node>, UpstreamError> {
        self.pool.node(address).await
    }

    /// Where the group's requests are to go.
    pub(super) async fn coordinator(&self, group: &str) -> Result<HostPort, UpstreamError> {
        let node = self.any().await?;
        let request = FindCoordinatorRequest::default()
            .with_key_type(GROUP_KEY)
            .with_coordinator_keys(vec![StrBytes::from_string(group.to_owned())]);
        let answer = node.call(FIND_COORDINATOR_LEAST, &request).await?;
        let Some(coordinator) = answer.coordinators.first() else {
            return Err(refused(&node, "FindCoordinator", ErrorCode::COORDINATOR_NOT_AVAILABLE));
        };
        let error = ErrorCode(coordinator.error_code);
        if !error.is_none() {
            return Err(refused(&node, "FindCoordinator", error));
        }
        address(&coordinator.host, coordinator.port)
            .ok_or_else(|| refused(&node, "FindCoordinator", ErrorCode::COORDINATOR_NOT_AVAILABLE))
    }

    /// The ids of all groups of consumers that our user may see, of either protocol.
    pub(super) async fn groups(&self) -> Result<Vec<String>, UpstreamError> {
        let brokers = self.metadata(&[]).await?.brokers;
        let mut groups = Vec::new();
        for broker in &brokers {
            let Some(address) = address(&broker.host, broker.port) else {
                continue;
            };
            let node = self.pool.node(&address).await?;
            let answer = node.call(0, &ListGroupsRequest::default()).await?;
            let error = ErrorCode(answer.error_code);
            if !error.is_none() {
                return Err(refused(&node, "ListGroups", error));
            }
            let consumers = answer.groups.into_iter().filter(|group| {
                group.protocol_type.as_str() == CONSUMER || group.group_type.eq_ignore_ascii_case(CONSUMER)
            });
            groups.extend(consumers.map(|group| group.group_id.to_string()));
        }
        Ok(groups)
    }

    /// The brokers, and of these topics where their partitions are.
    pub(super) async fn metadata(&self, topics: &[StrBytes]) -> Result<MetadataResponse, UpstreamError> {
        let topics = topics
            .iter()
            .map(|name| MetadataRequestTopic::default().with_name(Some(TopicName(name.clone()))));
        let request = MetadataRequest::default()
            .with_topics(Some(topics.collect()))
            .with_allow_auto_topic_creation(false);
        self.any().await?.call(METADATA_LEAST, &request).await
    }

    /// The shared connection to an address that Convoke named.
    pub(super) async fn node(&self, host: &str, port: i32) -> Result<Arc<Node>, UpstreamError> {
        let unreachable = || UpstreamError::Unreachable {
            address: format!("{host}:{port}"),
            reason: "it is no address".to_owned(),
        };
        self.pool.node(&address(host, port).ok_or_else(unreachable)?).await
    }

    /// The first of the given addresses at which somebody answers.
    async fn any(&self) -> Result<Arc<Node>, UpstreamError> {
        let mut last = UpstreamError::Unreachable {
            address: "(none)".to_owned(),
            reason: "no address is given".to_owned(),
        };
        for address in &self.bootstrap {
            match self.pool.node(address).await {
                Ok(node) => return Ok(node),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

fn address(host: &str, port: i32) -> Option<HostPort> {
    let port = u16::try_from(port).ok().filter(|port| *port != 0)?;
    let host = host.to_owned();
    (!host.is_empty()).then_some(HostPort { host, port })
}

/// An answer that is an error.
pub(super) fn refused(node: &Node, api: &'static str, error: ErrorCode) -> UpstreamError {
    UpstreamError::Refused {
        address: node.address().to_owned(),
        api,
        error,
        hint: String::new(),
    }
}
