//! ListGroups shared: it costs a broker work for each of its groups, so questions to one node take at most a tenth of the
//! time, and one answer serves everybody who waited when the question went out. Nobody gets the answer to an earlier question.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kafka_protocol::messages::ListGroupsRequest;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tracing::warn;

use super::answers::{Failure, failure_of, presence, refused};
use super::describing::describe;
use crate::coordinator::input::Presence;
use crate::coordinator::request::Text;
use crate::telemetry::log_limit::LogLimit;
use crate::upstream::UpstreamError;
use crate::upstream::node::Node;
use crate::wire::error_code::ErrorCode;

/// The pause after a question, in times that it took: a node with few groups is asked often, one with many seldom.
const PAUSE: u32 = 9;
/// However long a question took, so that the groups that wait do not wait much longer than for the answer itself.
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// How often it is told that a node cannot list its groups.
const TOLD_AGAIN: Duration = Duration::from_secs(60);
/// The first version that shows states (KIP-518); v5 shows types (KIP-848).
const LEAST: i16 = 4;

/// The groups that were wanted and are listed.
type Listed = Result<Arc<HashMap<Text, Presence>>, Failure>;

/// The questions that are being gathered, by node.
#[derive(Debug)]
pub struct Listings {
    nodes: Mutex<HashMap<i32, NodeListing>>,
    complaints: LogLimit,
}

impl Default for Listings {
    fn default() -> Self {
        Self {
            nodes: Mutex::default(),
            complaints: LogLimit::new(TOLD_AGAIN),
        }
    }
}

#[derive(Debug, Default)]
struct NodeListing {
    /// When the next question may go out.
    due: Option<Instant>,
    /// The question that has not gone out yet.
    next: Option<Question>,
}

#[derive(Debug)]
struct Question {
    wanted: HashSet<Text>,
    answer: watch::Receiver<Option<Listed>>,
}

impl Listings {
    /// What the node lists of the group; vacant if nothing.
    ///
    /// # Errors
    /// Why the node did not list its groups.
    pub async fn presence(self: &Arc<Self>, id: i32, node: &Arc<Node>, group_id: &Text) -> Result<Presence, Failure> {
        let mut answer = self.join(id, node, group_id);
        let listed = match answer.wait_for(Option::is_some).await {
            Ok(listed) => listed.clone(),
            Err(_) => None,
        };
        let listed = listed.unwrap_or_else(|| Err(Failure::Retry("ListGroups was given up".to_owned())))?;
        Ok(listed.get(group_id).cloned().unwrap_or(Presence::Vacant))
    }

    /// Joins the question that has not gone out, or starts one.
    fn join(self: &Arc<Self>, id: i32, node: &Arc<Node>, group_id: &Text) -> watch::Receiver<Option<Listed>> {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        let listing = nodes.entry(id).or_default();
        if let Some(question) = &mut listing.next {
            question.wanted.insert(group_id.clone());
            return question.answer.clone();
        }
        let (answer, receiver) = watch::channel(None);
        listing.next = Some(Question {
            wanted: HashSet::from([group_id.clone()]),
            answer: receiver.clone(),
        });
        tokio::spawn(Arc::clone(self).ask(id, Arc::clone(node), listing.due, answer));
        receiver
    }

    async fn ask(
        self: Arc<Self>,
        id: i32,
        node: Arc<Node>,
        due: Option<Instant>,
        answer: watch::Sender<Option<Listed>>,
    ) {
        if let Some(due) = due {
            sleep_until(due).await;
        }
        let wanted = self.close(id);
        let asked = Instant::now();
        let listed = match list(&node, &wanted).await {
            Err(Unlisted::ByNobody(reason)) => self.describe(&node, &wanted, &reason).await,
            Err(Unlisted::Failed(failure)) => Err(failure),
            Ok(listed) => Ok(listed),
        };
        let listed = listed.map(Arc::new);
        self.pause(id, asked.elapsed());
        answer.send_replace(Some(listed));
    }

    /// For a node that cannot list its groups, whoever asks.
    async fn describe(
        &self,
        node: &Arc<Node>,
        wanted: &HashSet<Text>,
        reason: &str,
    ) -> Result<HashMap<Text, Presence>, Failure> {
        if self.complaints.may_say() {
            warn!(
                "{} cannot list its groups ({reason}), so they are asked about one by one; a broker before Kafka 4 that has met a group \
                 id of bytes that are no text cannot until it is restarted",
                node.address()
            );
        }
        describe(node, wanted).await
    }

    fn pause(&self, id: i32, took: Duration) {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        let pause = (took * PAUSE).min(PAUSE_MAX);
        nodes.entry(id).or_default().due = Some(Instant::now() + pause);
    }

    /// From here on others start a new question.
    fn close(&self, id: i32) -> HashSet<Text> {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        let listing = nodes.entry(id).or_default();
        listing.next.take().map(|question| question.wanted).unwrap_or_default()
    }
}

/// Why a node did not list its groups.
enum Unlisted {
    /// It lists them to nobody.
    ByNobody(String),
    Failed(Failure),
}

async fn list(node: &Arc<Node>, wanted: &HashSet<Text>) -> Result<HashMap<Text, Presence>, Unlisted> {
    let answer = match node.call(LEAST, &ListGroupsRequest::default()).await {
        Ok(answer) => answer,
        Err(UpstreamError::Malformed { reason, .. }) => return Err(Unlisted::ByNobody(reason)),
        Err(error) => return Err(Unlisted::Failed(failure_of(error))),
    };
    let error = ErrorCode(answer.error_code);
    if error == ErrorCode::UNKNOWN_SERVER_ERROR {
        return Err(Unlisted::ByNobody(error.to_string()));
    }
    if !error.is_none() {
        return Err(Unlisted::Failed(refused(node.address(), "ListGroups", error)));
    }
    let listed = answer.groups.iter().filter_map(|group| {
        let id = wanted.get(group.group_id.as_str())?;
        Some((id.clone(), presence(group)))
    });
    Ok(listed.collect())
}
