//! The topics that a consumer group's pattern stands for (KIP-848's `SubscribedTopicRegex`).
//!
//! A pattern comes from a client, so nothing about it is trusted: it is compiled to a machine of bounded size, matched in linear
//! time and for a bounded time on threads of its own, and only so many at once. What was found holds until the topics change,
//! for every connection.
//!
//! | part | its one job |
//! |---|---|
//! | [`resolve`] | the patterns of one request, for its user |
//! | [`TopicPatterns`] | what has been found, and who may look for more |
//! | `search` | one pattern against all names |
//! | `re2`, `class` | RE2/J's syntax, which Kafka's brokers read, for the `regex` crate |

mod class;
mod re2;
mod search;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Semaphore;

use self::search::Failure;
use super::ClientUpstream;
use super::access::{Access, Operation};
use super::call::Call;
use crate::coordinator::request::{ResolvedRegex, Text};
use crate::coordinator::topics::Topics;
use crate::telemetry::pattern_metrics::PatternMetrics;
use crate::wire::error_code::ErrorCode;

/// Patterns that are matched at a time.
const AT_ONCE: usize = 2;
/// What is kept, in bytes of patterns and names of topics: a full table is emptied.
const KEPT_MAX: usize = 8 << 20;
/// What a name in a list costs.
const NAME_SIZE: usize = size_of::<Text>();

/// Why patterns were not resolved, as the client is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) error: ErrorCode,
    /// For people.
    pub(super) message: Option<Text>,
}

/// What patterns stand for, for all connections.
#[derive(Debug)]
pub struct TopicPatterns {
    known: Mutex<Known>,
    permits: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct Known {
    /// The topics that the patterns were matched with.
    topics: Arc<Topics>,
    found: HashMap<Text, Arc<[Text]>>,
    size: usize,
}

impl Default for TopicPatterns {
    fn default() -> Self {
        Self {
            known: Mutex::default(),
            permits: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }
}

/// The topics that each pattern stands for and that the call's user may describe, out of those that the coordinator is told of.
///
/// # Errors
/// `INVALID_REGULAR_EXPRESSION` with what is wrong with a pattern, or a retriable error where nobody could say what the user may
/// see.
pub(super) async fn resolve<U: ClientUpstream>(
    call: &Call<'_>,
    patterns: &[Text],
    access: &mut Access<'_, U>,
) -> Result<Vec<ResolvedRegex>, Refusal> {
    let services = call.services;
    let topics = services.cluster.told_topics();
    let mut resolved = Vec::with_capacity(patterns.len());
    for pattern in patterns {
        let found = services
            .patterns
            .find(pattern, &topics, &services.metrics.patterns)
            .await?;
        let denied = access.topics(found.iter().cloned(), Operation::Describe).await;
        let denied = denied.map_err(|error| Refusal { error, message: None })?;
        let seen = found.iter().filter(|name| !denied.contains(*name));
        resolved.push(ResolvedRegex {
            pattern: pattern.clone(),
            topics: seen.cloned().collect(),
        });
    }
    Ok(resolved)
}

impl TopicPatterns {
    /// The names that the pattern matches, ordered.
    async fn find(
        &self,
        pattern: &Text,
        topics: &Arc<Topics>,
        metrics: &PatternMetrics,
    ) -> Result<Arc<[Text]>, Refusal> {
        if let Some(found) = self.recall(pattern, topics) {
            metrics.remembered.inc();
            return Ok(found);
        }
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        // Somebody else may have had the same question meanwhile.
        if let Some(found) = self.recall(pattern, topics) {
            metrics.remembered.inc();
            return Ok(found);
        }
        let (wanted, names) = (pattern.clone(), Arc::clone(topics));
        let timer = metrics.seconds.start_timer();
        let searched = tokio::task::spawn_blocking(move || {
            // Kept until the work is done, also when the client does not wait for it.
            let _permit = permit;
            search::search(&wanted, &names)
        });
        // It ends early only with the process.
        let found = searched.await.unwrap_or(Err(Failure::Ended));
        timer.observe_duration();
        match found {
            Ok(found) => {
                let found = Arc::from(found);
                self.learn(pattern, topics, &found);
                Ok(found)
            }
            Err(failure) => {
                metrics.refused.inc();
                Err(refused(pattern, &failure))
            }
        }
    }

    fn recall(&self, pattern: &str, topics: &Arc<Topics>) -> Option<Arc<[Text]>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.found.get(pattern).filter(|_| Arc::ptr_eq(&known.topics, topics));
        found.map(Arc::clone)
    }

    fn learn(&self, pattern: &Text, topics: &Arc<Topics>, found: &Arc<[Text]>) {
        let size = pattern.len() + found.len() * NAME_SIZE;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if !Arc::ptr_eq(&known.topics, topics) || known.size + size > KEPT_MAX {
            *known = Known {
                topics: Arc::clone(topics),
                ..Known::default()
            };
        }
        if size <= KEPT_MAX {
            known.size += size;
            known.found.insert(pattern.clone(), Arc::clone(found));
        }
    }
}

fn refused(pattern: &str, failure: &Failure) -> Refusal {
    let error = match failure {
        Failure::Invalid(_) | Failure::TooSlow => ErrorCode::INVALID_REGULAR_EXPRESSION,
        Failure::Ended => ErrorCode::COORDINATOR_NOT_AVAILABLE,
    };
    // A pattern may be as long as a request.
    let shown: String = pattern.chars().take(100).collect();
    let message = format!("SubscribedTopicRegex `{shown}` is not a valid regular expression: {failure}.");
    Refusal {
        error,
        message: Some(Text::from(message)),
    }
}
