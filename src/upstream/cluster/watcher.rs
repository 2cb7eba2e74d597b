//! Keeps the picture: asks for everything now and then, and when somebody wants it fresh; follows the nodes with a keeper
//! each; confirms deletions; says once when the upstream goes and once when it comes back.

use std::collections::BTreeMap;
use std::mem::Discriminant;
use std::sync::Arc;
use std::time::Duration;

use kafka_protocol::messages::MetadataResponse;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::deletions::Deletions;
use super::metadata::{TopicAnswer, ask_all, ask_ids, picture, topic_answer};
use super::shared::{Shared, Transition};
use super::{Cluster, keeper};
use crate::config::HostPort;
use crate::coordinator::input::DeletedTopic;
use crate::upstream::UpstreamError;
use crate::upstream::backoff::Backoff;

/// Refreshes are at least so far apart, however many are asked for; further where they take long, as in a large cluster.
const SPACING: Duration = Duration::from_millis(250);
/// Of the time, refreshes that are asked for take one part in so many at most.
const SHARE: u32 = 10;
const FIRST_DELAY: Duration = Duration::from_millis(250);
const MAX_DELAY: Duration = Duration::from_secs(3);
/// Refreshes that nobody asks for take one part in so many of the time at most, unless that made them rarer than
/// [`RARER`] times.
const SHARE_UNASKED: u32 = 100;
const RARER: u32 = 12;
/// A broker may hear of a change a little after the one that made it: the picture is looked at again so long after.
const SECOND_LOOK: Duration = Duration::from_secs(1);
/// While the upstream is out of reach the log says so again this often.
const REMINDER: Duration = Duration::from_secs(60);

pub fn spawn(
    shared: Arc<Shared>,
    refresh: Duration,
    deleted: mpsc::Sender<Vec<DeletedTopic>>,
    shutdown: CancellationToken,
) {
    let watcher = Watcher {
        shared,
        refresh,
        deleted,
        deletions: Deletions::default(),
        keepers: BTreeMap::new(),
        turn: 0,
        second_look: None,
        last_line: None,
    };
    tokio::spawn(async move { shutdown.run_until_cancelled(watcher.run()).await });
}

struct Watcher {
    shared: Arc<Shared>,
    refresh: Duration,
    deleted: mpsc::Sender<Vec<DeletedTopic>>,
    deletions: Deletions,
    keepers: BTreeMap<i32, Keeper>,
    /// Which live node is asked first; goes round.
    turn: usize,
    /// When the picture is to be looked at again because topics were changed.
    second_look: Option<Instant>,
    /// When what kind of failure was told last.
    last_line: Option<(Instant, Discriminant<UpstreamError>)>,
}

/// A keeper's task; it ends with this handle.
struct Keeper {
    address: HostPort,
    task: AbortHandle,
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Watcher {
    async fn run(mut self) {
        let mut backoff = Backoff::new(FIRST_DELAY, MAX_DELAY);
        loop {
            let started = Instant::now();
            if self.shared.take_second_look() {
                self.second_look = Some(started + SECOND_LOOK);
            } else if self.second_look.is_some_and(|due| due <= started) {
                self.second_look = None;
            }
            let outcome = self.look().await;
            self.report(outcome.as_ref().err());
            match outcome {
                Ok(()) => {
                    backoff.reset();
                    self.confirm_deletions().await;
                    self.rest(started).await;
                }
                Err(_) => tokio::time::sleep(backoff.delay()).await,
            }
        }
    }

    /// Until the picture is to be refreshed: because of its age, a request, or a deletion to confirm.
    async fn rest(&self, started: Instant) {
        let spacing = SPACING.max(started.elapsed() * SHARE).min(self.refresh.max(SPACING));
        let pause = started.elapsed() * SHARE_UNASKED;
        let mut due = started + pause.max(self.refresh).min(self.refresh * RARER);
        if let Some(second_look) = self.second_look {
            due = due.min(second_look.max(started + spacing));
        }
        if let Some(question) = self.deletions.next_question() {
            due = due.min(question.max(started + spacing));
        }
        tokio::select! {
            () = sleep_until(due) => {}
            () = self.shared.refresh_requested() => sleep_until(started + spacing).await,
        }
    }

    async fn look(&mut self) -> Result<(), UpstreamError> {
        let answer = self.ask().await?;
        let (before, after) = self.shared.update(|cluster| *cluster = picture(&answer, cluster));
        if before.topics.have_ids() && !after.topics.have_ids() {
            warn!(
                "the upstream gives its topics no ids, as before Kafka 2.8: clients that ask for group.protocol=consumer are \
                 refused, and classic groups work; upgrade the upstream's inter.broker.protocol.version for both"
            );
        }
        self.deletions.look_for(self.shared.take_missing());
        self.deletions.compare(&before.topics, &after.topics);
        self.shared.tell(Some(&self.deletions));
        self.follow_nodes(&after);
        Ok(())
    }

    /// Asks each address in turn until one answers for the right cluster.
    async fn ask(&mut self) -> Result<MetadataResponse, UpstreamError> {
        self.turn = self.turn.wrapping_add(1);
        let known = self.shared.snapshot().cluster_id.clone();
        let mut last = None;
        for address in self.shared.addresses(self.turn) {
            let asked = match self.shared.pool.node(&address).await {
                Ok(node) => ask_all(&node).await,
                Err(error) => Err(error),
            };
            match asked {
                Ok(answer) => match (&known, &answer.cluster_id) {
                    (Some(known), Some(found)) if known.as_ref() != found.as_str() => {
                        last = Some(UpstreamError::OtherCluster {
                            address: address.to_string(),
                            expected: known.to_string(),
                            found: found.to_string(),
                        });
                    }
                    _ => return Ok(answer),
                },
                Err(error) => {
                    self.shared.pool.count_failure();
                    last = Some(error);
                }
            }
        }
        Err(last.unwrap_or_else(|| UpstreamError::Unreachable {
            address: "the upstream".to_owned(),
            reason: "no address is known; set upstream.bootstrap".to_owned(),
        }))
    }

    fn follow_nodes(&mut self, cluster: &Cluster) {
        self.keepers
            .retain(|id, keeper| cluster.nodes.get(id) == Some(&keeper.address));
        for (id, address) in &cluster.nodes {
            self.keepers.entry(*id).or_insert_with(|| {
                let keeping = keeper::keep(Arc::clone(&self.shared), *id, address.clone(), self.refresh);
                Keeper {
                    address: address.clone(),
                    task: tokio::spawn(keeping).abort_handle(),
                }
            });
        }
        self.shared.forget_other_addresses();
    }

    /// Asks for topics that vanished, and hands over those that are certainly gone.
    async fn confirm_deletions(&mut self) {
        let cluster = self.shared.snapshot();
        let ids: Vec<i32> = cluster.nodes.keys().copied().collect();
        for step in 0..ids.len() {
            let node = ids[(self.turn.wrapping_add(step)) % ids.len()];
            let questions = self.deletions.questions(node, &cluster, Instant::now());
            if !questions.is_empty() {
                // A node that does not answer says nothing about the topics.
                let _ = self.question(node, &questions).await;
            }
        }
        let confirmed = self.deletions.confirmed();
        if confirmed.is_empty() {
            return;
        }
        self.shared.tell(Some(&self.deletions));
        // Full: they stay confirmed and are offered again after the next refresh.
        if self.deleted.try_send(confirmed.clone()).is_ok() {
            for topic in &confirmed {
                info!(topic = %topic.name, id = %topic.id, "topic was deleted upstream");
            }
            self.deletions.handed_over();
        }
    }

    async fn question(&mut self, id: i32, topics: &[uuid::Uuid]) -> Result<(), UpstreamError> {
        let node = self.shared.node(id).await?;
        let answer = ask_ids(&node, topics).await?;
        let now = Instant::now();
        let racks = self.shared.snapshot().racks.learn(&answer.brokers);
        let mut found = Vec::new();
        for topic in &answer.topics {
            let said = topic_answer(topic, &racks);
            self.deletions.answered(topic.topic_id, id, &said, now);
            if let TopicAnswer::Found(topic) = said {
                found.push(topic);
            }
        }
        if !found.is_empty() {
            self.shared.add_topics(found);
        }
        Ok(())
    }

    fn report(&mut self, failure: Option<&UpstreamError>) {
        let transition = self.shared.report(failure.map_or(Ok(()), Err));
        let now = Instant::now();
        match (transition, failure) {
            (Transition::Came(lasted), _) => {
                let cluster = self.shared.snapshot();
                let (nodes, topics) = (cluster.nodes.len(), cluster.topics.by_name.len());
                let cluster_id = cluster.cluster_id.as_deref().unwrap_or("unknown");
                let after = lasted.as_secs_f64();
                info!(cluster_id, nodes, topics, "upstream answers, after {after:.1} s");
                self.last_line = None;
            }
            (_, Some(failure)) => {
                let kind = std::mem::discriminant(failure);
                if self
                    .last_line
                    .is_some_and(|(at, last)| last == kind && now < at + REMINDER)
                {
                    return;
                }
                self.last_line = Some((now, kind));
                if matches!(
                    failure,
                    UpstreamError::OtherCluster { .. }
                        | UpstreamError::Authentication { .. }
                        | UpstreamError::Unusable { .. }
                ) {
                    error!("upstream cannot be used: {failure}; trying on");
                } else {
                    warn!("upstream is out of reach: {failure}; trying on");
                }
            }
            _ => {}
        }
    }
}
