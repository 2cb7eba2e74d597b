//! One registration for all groups of a pattern, where Convoke has the pattern in a rule of `assignors`: its heartbeats name the
//! groups that there is something to compute for, also those that have only just come.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use kafka_protocol::protocol::StrBytes;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::Assignor;
use super::computation::{Computation, Running};
use super::registration::{
    FIRST_DELAY, JOIN, LEAVE, LEAVE_LIMIT, LONGEST_DELAY, SHORTEST_GAP, Wish, bare_heartbeat, expect_convoke, refused,
    with_registration,
};
use crate::upstream::UpstreamError;
use crate::upstream::backoff::Backoff;
use crate::wire::assignment::heartbeat;
use crate::wire::error_code::ErrorCode;

/// How it ended.
pub(super) enum Ended {
    Stopped,
    /// Convoke has no rule with this pattern, or is older than that.
    NotKnown(String),
}

struct Registration {
    assignor: Arc<Assignor>,
    pattern: String,
    member_id: StrBytes,
    computations: BTreeMap<String, Running>,
}

enum Stop {
    NotKnown,
    Failed(UpstreamError),
}

impl From<UpstreamError> for Stop {
    fn from(error: UpstreamError) -> Self {
        Self::Failed(error)
    }
}

/// Registers for the pattern until it is stopped, or told that there is no such thing.
pub(super) async fn run(
    assignor: Arc<Assignor>,
    pattern: String,
    member_id: StrBytes,
    stop: CancellationToken,
) -> Ended {
    let mut registration = Registration {
        assignor,
        pattern,
        member_id,
        computations: BTreeMap::new(),
    };
    let mut backoff = Backoff::new(FIRST_DELAY, LONGEST_DELAY);
    let mut said = String::new();
    loop {
        let ended = tokio::select! {
            ended = registration.serve(&mut backoff, &mut said) => ended,
            () = stop.cancelled() => {
                registration.leave().await;
                return Ended::Stopped;
            }
        };
        let Err(ended) = ended;
        let problem = match ended {
            Stop::NotKnown => {
                // Nobody was told that it is there.
                let _ = timeout(LEAVE_LIMIT, registration.say_goodbye()).await;
                return Ended::NotKnown(registration.pattern);
            }
            Stop::Failed(error) => error.to_string(),
        };
        if problem != said {
            tracing::warn!(
                groups = registration.pattern,
                "not registered, and tried again: {problem}"
            );
            said = problem;
        }
        tokio::select! {
            () = sleep(backoff.delay()) => {}
            () = stop.cancelled() => return Ended::Stopped,
        }
    }
}

impl Registration {
    async fn serve(&mut self, backoff: &mut Backoff, said: &mut String) -> Result<Infallible, Stop> {
        let address = self.assignor.cluster.coordinator(&self.pattern).await?;
        let node = self.assignor.cluster.dial(&address).await?;
        expect_convoke(&node)?;
        let mut epoch = JOIN;
        let mut wish = Wish::every(self.assignor.every);
        loop {
            let sent = Instant::now();
            let asks_again = wish.is_due(sent);
            let request = bare_heartbeat(&self.pattern, &self.member_id, epoch);
            let request = with_registration(request, &self.assignor, asks_again)?;
            let answer = node.call(heartbeat::VERSION, &request).await?;
            match ErrorCode(answer.error_code) {
                ErrorCode::NONE => {}
                ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::FENCED_MEMBER_EPOCH if epoch != JOIN => {
                    tracing::info!(groups = self.pattern, "registers again");
                    epoch = JOIN;
                    continue;
                }
                error => return Err(refused(&node, error, &answer).into()),
            }
            // Who does not know of patterns has taken it for a group of that name.
            let Some(groups) = heartbeat::groups_to_compute(&answer).unwrap_or_default() else {
                return Err(Stop::NotKnown);
            };
            if epoch == JOIN {
                tracing::info!(groups = self.pattern, coordinator = node.address(), "registered");
                said.clear();
            }
            backoff.reset();
            epoch = answer.member_epoch;
            self.computations.retain(|_, running| !running.task.is_finished());
            for group in groups {
                self.compute(group.to_string(), epoch, sent);
            }
            sleep_until(sent + SHORTEST_GAP).await;
        }
    }

    fn compute(&mut self, group: String, epoch: i32, sent: Instant) {
        let running = self.computations.get(&group);
        if running.is_none_or(|running| running.is_outdated(sent)) {
            let (assignor, member_id) = (Arc::clone(&self.assignor), self.member_id.clone());
            let running = Running::start(prepare(assignor, group.clone(), member_id, epoch));
            self.computations.insert(group, running);
        }
    }

    /// On another connection: on the old one a heartbeat may be waiting.
    async fn say_goodbye(&self) -> Result<(), UpstreamError> {
        let address = self.assignor.cluster.coordinator(&self.pattern).await?;
        let node = self.assignor.cluster.dial(&address).await?;
        let request = bare_heartbeat(&self.pattern, &self.member_id, LEAVE);
        let request = with_registration(request, &self.assignor, false)?;
        node.call(heartbeat::VERSION, &request).await.map(drop)
    }

    async fn leave(&self) {
        match timeout(LEAVE_LIMIT, self.say_goodbye()).await {
            Ok(Ok(())) => tracing::info!(groups = self.pattern, "left"),
            _ => tracing::info!(
                groups = self.pattern,
                "could not say that it leaves; Convoke notices by the session timeout"
            ),
        }
    }
}

/// A computation for one of the groups, which its own coordinator is asked about.
async fn prepare(assignor: Arc<Assignor>, group: String, member_id: StrBytes, epoch: i32) -> Option<Computation> {
    let found = async {
        let address = assignor.cluster.coordinator(&group).await?;
        assignor.cluster.shared(&address).await
    };
    match found.await {
        Ok(node) => Some(Computation {
            assignor,
            node,
            group,
            member_id,
            epoch,
        }),
        Err(error) => {
            tracing::warn!(group, "computation given up: {error}");
            None
        }
    }
}
