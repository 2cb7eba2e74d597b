//! The APIs that end here, one file for each: decode, ask whether the user may, ask the coordinator, encode.
//!
//! A group that is not coordinated here (listed under `groups.delegate`, of a type that never is, or in use at the upstream)
//! is passed on: a request about it alone goes upstream as it came, one about several groups is split and its answers merged.

mod access;
mod alter_configs;
mod call;
mod consumer_group_describe;
mod consumer_group_heartbeat;
mod convert;
mod delete_groups;
mod describe_configs;
mod describe_groups;
mod group_configs;
mod group_memory;
mod heartbeat;
mod incremental_alter_configs;
mod install_assignment;
mod join_group;
mod leave_group;
mod list_groups;
mod merge;
mod offset_commit;
mod offset_delete;
mod offset_fetch;
mod partitions;
mod pattern_heartbeat;
mod prepare_assignment;
mod registrations;
mod sync_group;
#[cfg(test)]
mod tests;
mod topic_patterns;
mod topics;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

pub use access::Decisions;
pub use group_memory::GroupMemory;
pub use topic_patterns::TopicPatterns;

use self::access::Access;
use self::call::Call;
use crate::coordinator::group_patterns::GroupPatterns;
use crate::coordinator::request::Text;
use crate::runtime::Coordinator;
use crate::telemetry::metrics::Metrics;
use crate::upstream::UpstreamError;
use crate::upstream::cluster::{Cluster, ClusterWatch};
use crate::wire::api;
use crate::wire::error_code::ErrorCode;
use crate::wire::frame::RequestHead;

/// What becomes of a request.
#[derive(Debug)]
pub enum Answer {
    /// This body, without a head; the first error in it, for the metrics.
    Reply(BytesMut, ErrorCode),
    /// The client's own frame goes upstream, and what comes back goes to the client.
    Forward,
    /// The connection ends, as a broker ends it over a request that cannot be read.
    Close(String),
}

/// Who asks.
#[derive(Debug, Clone)]
pub struct Caller {
    pub client_id: Text,
    /// As Kafka prints it: `/1.2.3.4`.
    pub client_host: Text,
    /// The upstream node that the connection stands for; `None` on a bootstrap connection.
    pub node_id: Option<i32>,
}

/// The client's own upstream connection, for requests of ours in its name.
pub trait ClientUpstream: Send {
    /// Sends a request in order with the client's own and resolves with the body after the response's head.
    ///
    /// # Errors
    /// The upstream did not answer.
    fn call(
        &mut self,
        api_key: i16,
        version: i16,
        body: Bytes,
    ) -> impl Future<Output = Result<Bytes, UpstreamError>> + Send;

    /// The request under way will not be [`Answer::Forward`]: nobody needs its frame any more, which may have to wait for long.
    fn let_go_of_request(&mut self);
}

/// What every handler uses.
#[derive(Debug, Clone)]
pub struct HandlerServices {
    pub coordinator: Coordinator,
    pub cluster: ClusterWatch,
    /// `groups.delegate`
    pub delegate: GroupPatterns,
    /// Classic groups that the coordinator assigns for.
    pub assign: GroupPatterns,
    /// The groups of each assignor's rule under `assignors`, by its name.
    pub assignors: Arc<BTreeMap<String, GroupPatterns>>,
    pub patterns: Arc<TopicPatterns>,
    pub group_memory: Arc<GroupMemory>,
    pub metrics: Arc<Metrics>,
}

/// Whether a request of an API that is split (see [`api::Route`]) may name what is answered here; else it goes up unread.
#[must_use]
pub fn splits(head: &RequestHead, cluster: &Cluster) -> bool {
    group_configs::may_be_named(head, cluster)
}

/// Answers a request whose API ends here. `decisions` is what is known of the connection's user.
///
/// A parked join or sync resolves when its group says so, which may take minutes. Dropping the future does not take the
/// request back: the coordinator goes on as it does for a client that went away.
pub async fn handle(
    head: &RequestHead,
    body: Bytes,
    caller: &Caller,
    services: &HandlerServices,
    decisions: &mut Decisions,
    upstream: &mut impl ClientUpstream,
) -> Answer {
    let call = Call::new(head, caller, services);
    let mut access = Access::new(&call, decisions, upstream);
    let access = &mut access;
    let answer = match head.api_key {
        api::OFFSET_COMMIT => offset_commit::handle(&call, body, access).await,
        api::OFFSET_FETCH => offset_fetch::handle(&call, body, access).await,
        api::JOIN_GROUP => join_group::handle(&call, body, access).await,
        api::HEARTBEAT => heartbeat::handle(&call, body, access).await,
        api::LEAVE_GROUP => leave_group::handle(&call, body, access).await,
        api::SYNC_GROUP => sync_group::handle(&call, body, access).await,
        api::DESCRIBE_GROUPS => describe_groups::handle(&call, body, access).await,
        api::LIST_GROUPS => list_groups::handle(&call, body, access).await,
        api::DELETE_GROUPS => delete_groups::handle(&call, body, access).await,
        api::OFFSET_DELETE => offset_delete::handle(&call, body, access).await,
        api::CONSUMER_GROUP_HEARTBEAT => consumer_group_heartbeat::handle(&call, body, access).await,
        // Boxed, since they are seldom asked for and large.
        api::DESCRIBE_CONFIGS => Box::pin(describe_configs::handle(&call, body, access)).await,
        api::ALTER_CONFIGS => Box::pin(alter_configs::handle(&call, body, access)).await,
        api::INCREMENTAL_ALTER_CONFIGS => Box::pin(incremental_alter_configs::handle(&call, body, access)).await,
        api::CONSUMER_GROUP_DESCRIBE => Box::pin(consumer_group_describe::handle(&call, body, access)).await,
        api::CONSUMER_GROUP_PREPARE_ASSIGNMENT => Box::pin(prepare_assignment::handle(&call, body, access)).await,
        api::CONSUMER_GROUP_INSTALL_ASSIGNMENT => Box::pin(install_assignment::handle(&call, body, access)).await,
        key => return Answer::Close(format!("api {key} is no group API")),
    };
    answer.unwrap_or_else(|error| {
        let api = api::find(head.api_key).map_or("unknown", |api| api.name);
        let version = head.api_version;
        Answer::Close(format!(
            "{api} v{version} request that cannot be read or answered: {error}"
        ))
    })
}
