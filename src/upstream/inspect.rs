//! Who runs a group at the upstream, and what offsets it has committed there.
//!
//! Both answers come from the group's coordinator. ListGroups shows only what the node it is asked at coordinates, and
//! does not say when a group is another node's; OffsetFetch does. So it goes before and after:
//!
//! ```text
//! coordinator ── OffsetFetch of nothing (is it yours?) ── ListGroups (who is in it?) ── OffsetFetch of all (still yours?)
//! ```
//! A group that the listing does not have is vacant only because both fetches were answered. What our user may not see
//! would look vacant too, so missing rights are failures. An offset that a transaction is about to commit is waited for.

mod answers;
mod describing;
mod listing;
mod transactions;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kafka_protocol::messages::offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use kafka_protocol::messages::offset_fetch_response::OffsetFetchResponseGroup;
use kafka_protocol::messages::{FindCoordinatorRequest, GroupId, OffsetFetchRequest};
use kafka_protocol::protocol::StrBytes;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};

use super::backoff::Backoff;
use super::cluster::ClusterWatch;
use super::node::Node;
use crate::coordinator::input::{ImportedOffset, InspectFailure, Presence, UpstreamGroup};
use crate::coordinator::request::Text;
use crate::runtime::shard_of;
use crate::wire::error_code::ErrorCode;

use answers::{Failure, failure_of, nobody_there, read_offsets, refused};
use listing::Listings;

/// How long one inspection goes on trying.
const DEADLINE: Duration = Duration::from_secs(5);
/// How long one waits for its turn.
const TURN: Duration = Duration::from_secs(10);
/// Inspections under way at a time.
const CONCURRENT: usize = 256;
const FIRST_DELAY: Duration = Duration::from_millis(50);
const MAX_DELAY: Duration = Duration::from_millis(800);
/// How long the proof counts that our user may see every topic.
const RIGHTS_REMEMBERED: Duration = Duration::from_secs(60);

/// FindCoordinator takes a list of keys, and OffsetFetch a list of groups, from these versions on (KIP-699, KIP-709).
const FIND_COORDINATOR_LEAST: i16 = 4;
const OFFSET_FETCH_LEAST: i16 = 8;
/// The key type of a group in FindCoordinator.
const GROUP_KEY: i8 = 0;

/// Inspects groups. Clones share what they ask.
#[derive(Debug, Clone)]
pub struct Inspector {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    cluster: ClusterWatch,
    listings: Arc<Listings>,
    turns: Semaphore,
    /// When a node last showed that our user may see every topic.
    sees_every_topic: Mutex<Option<Instant>>,
}

/// Where the coordinator is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The leaders of `__consumer_offsets` in the picture of the cluster.
    Picture,
    /// FindCoordinator, which also makes a broker create the topic.
    Upstream,
}

impl Inspector {
    #[must_use]
    pub fn new(cluster: ClusterWatch) -> Self {
        Self {
            inner: Arc::new(Inner {
                cluster,
                listings: Arc::default(),
                turns: Semaphore::new(CONCURRENT),
                sees_every_topic: Mutex::new(None),
            }),
        }
    }

    /// Asks until the answer is certain, for about five seconds while there is somebody to ask.
    ///
    /// # Errors
    /// What kept it from being certain.
    pub async fn inspect(&self, group_id: &str) -> Result<UpstreamGroup, InspectFailure> {
        let Ok(Ok(_turn)) = timeout(TURN, self.inner.turns.acquire()).await else {
            return Err(InspectFailure {
                reason: format!("{CONCURRENT} other groups are being looked up at the upstream"),
            });
        };
        let mut last = None;
        match timeout(DEADLINE, self.inner.until_certain(&Text::from(group_id), &mut last)).await {
            Ok(result) => result.map_err(|reason| InspectFailure { reason }),
            Err(_) => Err(InspectFailure {
                reason: last.unwrap_or_else(|| format!("no answer within {} s", DEADLINE.as_secs())),
            }),
        }
    }
}

impl Inner {
    async fn until_certain(&self, group_id: &Text, last: &mut Option<String>) -> Result<UpstreamGroup, String> {
        let mut backoff = Backoff::new(FIRST_DELAY, MAX_DELAY);
        let mut source = Source::Picture;
        loop {
            match self.attempt(group_id, source).await {
                Ok(group) => return Ok(group),
                Err(Failure::Final(reason)) => return Err(reason),
                Err(Failure::Retry(reason)) => *last = Some(reason),
                Err(Failure::Moved(reason)) => {
                    source = Source::Upstream;
                    self.cluster.request_refresh();
                    *last = Some(reason);
                }
            }
            sleep(backoff.delay()).await;
        }
    }

    async fn attempt(&self, group_id: &Text, source: Source) -> Result<UpstreamGroup, Failure> {
        let id = self.coordinator(group_id, source).await?;
        let node = self.cluster.node(id).await.map_err(failure_of)?;
        fetch(&node, group_id, Fetch::Named(Vec::new())).await?;
        let presence = self.listings.presence(id, &node, group_id).await?;
        let mut offsets = Vec::new();
        if presence == Presence::Vacant {
            self.prove_topics_visible(&node).await?;
            transactions::prove_none_open(&self.cluster, &node, group_id).await?;
            let group = fetch(&node, group_id, Fetch::All).await?;
            offsets = read_offsets(&group)?;
            self.add_topic_ids(&mut offsets).await?;
        }
        Ok(UpstreamGroup { presence, offsets })
    }

    async fn coordinator(&self, group_id: &Text, source: Source) -> Result<i32, Failure> {
        let leaders = &self.cluster.snapshot().coordinators;
        if source == Source::Picture && !leaders.is_empty() {
            let shard = shard_of(group_id, u32::try_from(leaders.len()).unwrap_or(u32::MAX));
            let leader = usize::try_from(shard.0).ok().and_then(|shard| leaders.get(shard));
            if let Some(leader) = leader.filter(|leader| **leader >= 0) {
                return Ok(*leader);
            }
        }
        let node = self.cluster.any_node().await.map_err(nobody_there)?;
        let request = FindCoordinatorRequest::default()
            .with_key_type(GROUP_KEY)
            .with_coordinator_keys(vec![StrBytes::from_string(group_id.to_string())]);
        let answer = node.call(FIND_COORDINATOR_LEAST, &request).await.map_err(failure_of)?;
        let Some(coordinator) = answer.coordinators.first() else {
            return Err(Failure::Retry("FindCoordinator was answered with nothing".to_owned()));
        };
        let error = ErrorCode(coordinator.error_code);
        if !error.is_none() {
            return Err(refused(node.address(), "FindCoordinator", error));
        }
        Ok(coordinator.node_id.0)
    }

    /// "All topics" of OffsetFetch leaves out, without a word, the topics that our user may not see. Whoever gets
    /// UNKNOWN_TOPIC_OR_PARTITION rather than an authorization error for a name that nobody uses may see every topic.
    async fn prove_topics_visible(&self, node: &Arc<Node>) -> Result<(), Failure> {
        let proven = *self.sees_every_topic.lock().unwrap_or_else(PoisonError::into_inner);
        if proven.is_some_and(|at| at.elapsed() < RIGHTS_REMEMBERED) {
            return Ok(());
        }
        if !node.sees_every_topic().await.map_err(failure_of)? {
            return Err(Failure::Final(format!(
                "{} hides topics from Convoke's own user, and with them committed offsets; grant it Describe on every topic",
                node.address()
            )));
        }
        *self.sees_every_topic.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        Ok(())
    }

    /// An offset of a topic that is gone keeps the nil id.
    async fn add_topic_ids(&self, offsets: &mut [ImportedOffset]) -> Result<(), Failure> {
        for offsets in offsets.chunk_by_mut(|a, b| a.topic == b.topic) {
            let Some(first) = offsets.first() else { continue };
            let topic = self.cluster.find_topic(&first.topic).await.map_err(failure_of)?;
            let id = topic.map(|topic| topic.id).unwrap_or_default();
            for offset in offsets {
                offset.topic_id = id;
            }
        }
        Ok(())
    }
}

#[derive(Debug)]
enum Fetch {
    /// These; with none only whether the node coordinates the group, and whether we may ask.
    Named(Vec<OffsetFetchRequestTopics>),
    /// Every partition that has an offset.
    All,
}

async fn fetch(node: &Arc<Node>, group_id: &Text, fetch: Fetch) -> Result<OffsetFetchResponseGroup, Failure> {
    let topics = match fetch {
        Fetch::Named(topics) => Some(topics),
        Fetch::All => None,
    };
    let group = OffsetFetchRequestGroup::default()
        .with_group_id(GroupId(StrBytes::from_string(group_id.to_string())))
        .with_member_epoch(-1)
        .with_topics(topics);
    let request = OffsetFetchRequest::default()
        .with_groups(vec![group])
        .with_require_stable(true);
    let answer = node.call(OFFSET_FETCH_LEAST, &request).await.map_err(failure_of)?;
    let group = answer
        .groups
        .into_iter()
        .find(|group| group.group_id.as_str() == &**group_id);
    let Some(group) = group else {
        return Err(Failure::Retry(format!(
            "{} answered OffsetFetch for another group",
            node.address()
        )));
    };
    match ErrorCode(group.error_code) {
        ErrorCode::NONE => Ok(group),
        error => Err(refused(node.address(), "OffsetFetch", error)),
    }
}

#[cfg(test)]
mod tests;
