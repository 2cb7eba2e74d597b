//! Topics that the picture does not show: asked of the upstream, many at a time, and what was answered remembered for
//! about a second, so that a client that insists on a missing topic costs one question a second.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kafka_protocol::messages::metadata_response::MetadataResponseTopic;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::Racks;
use super::Topic;
use super::metadata::{TopicAnswer, ask_ids, ask_names, topic_answer};
use super::shared::Shared;
use crate::coordinator::request::Text;
use crate::upstream::UpstreamError;
use crate::upstream::node::Node;
use crate::wire::error_code::ErrorCode;

/// How long an answer counts.
const REMEMBERED: Duration = Duration::from_secs(1);
/// Answers that are remembered at most.
const REMEMBERED_MAX: usize = 10_000;
/// Questions that may wait; those who come later wait for room.
const QUEUE: usize = 1_024;
/// Topics in one request.
const BATCH: usize = 256;

/// What is looked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TopicKey {
    Name(Text),
    Id(Uuid),
    /// A topic that the picture shows, with fewer partitions than somebody expects.
    Grown(Text),
}

/// What the upstream says; `None` when there is no such topic.
type Found = Result<Option<Topic>, UpstreamError>;

#[derive(Debug)]
struct Question {
    key: TopicKey,
    reply: oneshot::Sender<Found>,
}

/// A handle on the task that asks.
#[derive(Debug, Clone)]
pub struct Lookup {
    questions: mpsc::Sender<Question>,
    answers: Arc<Answers>,
}

impl Lookup {
    pub fn spawn(shared: Arc<Shared>, limit: Duration, shutdown: CancellationToken) -> Self {
        let (questions, mut queue) = mpsc::channel(QUEUE);
        let answers = Arc::new(Answers::default());
        let remembered = Arc::clone(&answers);
        tokio::spawn(async move {
            let serving = async {
                let mut batch = Vec::new();
                while queue.recv_many(&mut batch, BATCH).await > 0 {
                    answer(&shared, &remembered, std::mem::take(&mut batch), limit).await;
                }
            };
            shutdown.run_until_cancelled(serving).await;
        });
        Self { questions, answers }
    }

    /// Asks without waiting: what is found is in the picture soon. While too many questions wait, this one is not asked.
    pub fn want(&self, key: TopicKey) {
        if self.answers.recall(&key).is_none() {
            let (reply, _) = oneshot::channel();
            let _ = self.questions.try_send(Question { key, reply });
        }
    }

    pub async fn find(&self, key: TopicKey) -> Found {
        if let Some(found) = self.answers.recall(&key) {
            return found;
        }
        let (reply, answer) = oneshot::channel();
        // Either way only when the process ends.
        let ended = |()| UpstreamError::Closed {
            address: "the upstream".to_owned(),
        };
        let question = Question { key, reply };
        self.questions.send(question).await.map_err(|_| ended(()))?;
        answer.await.map_err(|_| ended(()))?
    }
}

/// What was answered lately.
#[derive(Debug, Default)]
struct Answers(Mutex<HashMap<TopicKey, (Found, Instant)>>);

impl Answers {
    fn recall(&self, key: &TopicKey) -> Option<Found> {
        let answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (found, until) = answers.get(key)?;
        (Instant::now() < *until).then(|| found.clone())
    }

    fn remember(&self, key: TopicKey, found: Found) {
        let now = Instant::now();
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.len() >= REMEMBERED_MAX {
            answers.retain(|_, (_, until)| now < *until);
        }
        // Full of fresh answers: this one is not kept, and asked for again.
        if answers.len() < REMEMBERED_MAX {
            answers.insert(key, (found, now + REMEMBERED));
        }
    }
}

/// Answers a batch with one request for names and one for ids.
async fn answer(shared: &Shared, answers: &Answers, batch: Vec<Question>, limit: Duration) {
    let mut open: HashMap<TopicKey, Vec<oneshot::Sender<Found>>> = HashMap::new();
    for Question { key, reply } in batch {
        match answers.recall(&key) {
            // The one who asks may be gone.
            Some(found) => drop(reply.send(found)),
            None => open.entry(key).or_default().push(reply),
        }
    }
    if open.is_empty() {
        return;
    }
    let keys: Vec<TopicKey> = open.keys().cloned().collect();
    let found = match timeout(limit, ask_any(shared, &keys)).await {
        Ok(found) => found,
        Err(_) => Err(UpstreamError::Timeout {
            address: "the upstream".to_owned(),
            timeout_ms: u64::try_from(limit.as_millis()).unwrap_or(u64::MAX),
        }),
    };
    if let Ok(found) = &found {
        add_to_picture(shared, found);
    }
    for (key, waiting) in open {
        let found = match &found {
            Ok(found) => found.get(&key).cloned().unwrap_or(Ok(None)),
            Err(error) => Err(error.clone()),
        };
        for reply in waiting {
            let _ = reply.send(found.clone());
        }
        answers.remember(key, found);
    }
}

async fn ask_any(shared: &Shared, keys: &[TopicKey]) -> Result<HashMap<TopicKey, Found>, UpstreamError> {
    let node = shared.any_node().await?;
    let asked = ask(&node, keys, &shared.snapshot().racks).await;
    if asked.is_err() {
        shared.pool.count_failure();
    }
    asked
}

async fn ask(node: &Arc<Node>, keys: &[TopicKey], racks: &Racks) -> Result<HashMap<TopicKey, Found>, UpstreamError> {
    let mut names = Vec::new();
    let mut ids = Vec::new();
    for key in keys {
        match key {
            TopicKey::Name(name) | TopicKey::Grown(name) => names.push(name.clone()),
            TopicKey::Id(id) => ids.push(*id),
        }
    }
    let mut found = HashMap::new();
    if !names.is_empty() {
        let answer = ask_names(node, &names).await?;
        let racks = racks.learn(&answer.brokers);
        for topic in answer.topics {
            let Some(name) = topic.name.as_ref().map(|name| Text::from(name.as_str())) else {
                continue;
            };
            let answer = outcome(node, &topic, &racks);
            found.insert(TopicKey::Grown(name.clone()), answer.clone());
            found.insert(TopicKey::Name(name), answer);
        }
    }
    if !ids.is_empty() {
        let answer = ask_ids(node, &ids).await?;
        let racks = racks.learn(&answer.brokers);
        for topic in answer.topics {
            found.insert(TopicKey::Id(topic.topic_id), outcome(node, &topic, &racks));
        }
    }
    Ok(found)
}

fn outcome(node: &Node, topic: &MetadataResponseTopic, racks: &Racks) -> Found {
    match topic_answer(topic, racks) {
        TopicAnswer::Found(topic) => Ok(Some(topic)),
        TopicAnswer::Unknown => Ok(None),
        TopicAnswer::Unclear(error) => {
            let hint = if error == ErrorCode::TOPIC_AUTHORIZATION_FAILED {
                "; grant Convoke's own user Describe on every topic"
            } else {
                ""
            };
            Err(UpstreamError::Refused {
                address: node.address().to_owned(),
                api: "Metadata",
                error,
                hint: hint.to_owned(),
            })
        }
    }
}

fn add_to_picture(shared: &Shared, found: &HashMap<TopicKey, Found>) {
    let topics = found
        .values()
        .filter_map(|found| found.as_ref().ok().and_then(Option::as_ref));
    let snapshot = shared.snapshot();
    let news: Vec<Topic> = topics
        .filter(|topic| snapshot.topics.by_name.get(&topic.name) != Some(*topic))
        .cloned()
        .collect();
    if !news.is_empty() {
        shared.add_topics(news);
    }
}
