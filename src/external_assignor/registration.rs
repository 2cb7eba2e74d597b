//! One group's registration: it tells Convoke that an assignor is here, and computes when it is asked to.
//!
//! A heartbeat waits at Convoke until there is something to compute or its interval is over, so a registration has a
//! connection of its own. While the command computes, heartbeats go on.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use kafka_protocol::messages::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, GroupId};
use kafka_protocol::protocol::StrBytes;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::Assignor;
use super::computation::{Computation, Running};
use crate::upstream::UpstreamError;
use crate::upstream::backoff::Backoff;
use crate::upstream::node::Node;
use crate::wire::api;
use crate::wire::assignment::heartbeat::{self, ClientAssignor};
use crate::wire::error_code::ErrorCode;

pub(super) const JOIN: i32 = 0;
pub(super) const LEAVE: i32 = -1;
/// In a heartbeat's assignors: the lag has moved, or whatever else the command looks at.
const ASKED_AGAIN: i8 = 1;
pub(super) const FIRST_DELAY: Duration = Duration::from_millis(100);
pub(super) const LONGEST_DELAY: Duration = Duration::from_secs(10);
/// Heartbeats that are answered at once do not follow each other faster.
pub(super) const SHORTEST_GAP: Duration = Duration::from_millis(100);
/// So often a heartbeat asks whether what is computed is still wanted.
const WHILE_COMPUTING: Duration = Duration::from_secs(2);
/// For the last heartbeat, which says that we go.
pub(super) const LEAVE_LIMIT: Duration = Duration::from_secs(2);
/// Beyond the command's own limit, for the questions around it.
const MARGIN: Duration = Duration::from_secs(5);

/// Registers for the group until it is stopped.
pub(super) async fn run(assignor: Arc<Assignor>, group: String, member_id: StrBytes, stop: CancellationToken) {
    let registration = Arc::new(Registration {
        assignor,
        group,
        member_id,
    });
    let mut backoff = Backoff::new(FIRST_DELAY, LONGEST_DELAY);
    let mut said = String::new();
    loop {
        let ended = tokio::select! {
            ended = registration.serve(&mut backoff, &mut said) => ended,
            () = stop.cancelled() => return registration.leave().await,
        };
        let problem = ended.to_string();
        if problem != said {
            tracing::warn!(group = registration.group, "not registered, and tried again: {problem}");
            said = problem;
        }
        tokio::select! {
            () = sleep(backoff.delay()) => {}
            () = stop.cancelled() => return,
        }
    }
}

/// When a new assignment is asked for though nothing in the group has changed.
pub(super) struct Wish {
    every: Option<Duration>,
    at: Option<Instant>,
}

impl Wish {
    /// Never without a duration, else for the first time when it is over.
    pub(super) fn every(every: Option<Duration>) -> Self {
        let at = every.map(|every| Instant::now() + every);
        Self { every, at }
    }

    /// Whether it is time; if so, the next time is that much later.
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        let is_due = self.at.is_some_and(|at| now >= at);
        if is_due {
            self.at = self.every.map(|every| now + every);
        }
        is_due
    }
}

struct Registration {
    assignor: Arc<Assignor>,
    group: String,
    member_id: StrBytes,
}

impl Registration {
    /// Ends with what went wrong.
    async fn serve(self: &Arc<Self>, backoff: &mut Backoff, said: &mut String) -> UpstreamError {
        let Err(error) = self.try_serve(backoff, said).await;
        error
    }

    async fn try_serve(
        self: &Arc<Self>,
        backoff: &mut Backoff,
        said: &mut String,
    ) -> Result<std::convert::Infallible, UpstreamError> {
        let address = self.assignor.cluster.coordinator(&self.group).await?;
        let node = self.assignor.cluster.dial(&address).await?;
        expect_convoke(&node)?;
        let mut epoch = JOIN;
        let mut computation: Option<Running> = None;
        let mut wish = Wish::every(self.assignor.every);
        loop {
            let sent = Instant::now();
            let asks_again = wish.is_due(sent);
            let answer = node
                .call(heartbeat::VERSION, &self.heartbeat(epoch, asks_again)?)
                .await?;
            match ErrorCode(answer.error_code) {
                ErrorCode::NONE => {}
                // It did not hear us for a while, or has been started anew.
                ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::FENCED_MEMBER_EPOCH | ErrorCode::GROUP_ID_NOT_FOUND
                    if epoch != JOIN =>
                {
                    tracing::info!(group = self.group, "registers again");
                    computation = None;
                    epoch = JOIN;
                    continue;
                }
                error => return Err(refused(&node, error, &answer)),
            }
            if epoch == JOIN {
                tracing::info!(group = self.group, coordinator = node.address(), "registered");
                said.clear();
            }
            backoff.reset();
            epoch = answer.member_epoch;
            if heartbeat::should_compute_assignment(&answer).unwrap_or(false)
                && computation.as_ref().is_none_or(|running| running.is_outdated(sent))
            {
                computation = Some(self.compute(&node, epoch));
            }
            match computation.as_mut().filter(|running| !running.task.is_finished()) {
                Some(running) => {
                    // Its end is followed by a heartbeat that waits.
                    let _ = timeout(WHILE_COMPUTING, &mut running.task).await;
                }
                None => sleep_until(sent + SHORTEST_GAP).await,
            }
        }
    }

    fn compute(self: &Arc<Self>, node: &Arc<Node>, epoch: i32) -> Running {
        let computation = Computation {
            assignor: Arc::clone(&self.assignor),
            node: Arc::clone(node),
            group: self.group.clone(),
            member_id: self.member_id.clone(),
            epoch,
        };
        Running::start(ready(Some(computation)))
    }

    fn heartbeat(&self, epoch: i32, asks_again: bool) -> Result<ConsumerGroupHeartbeatRequest, UpstreamError> {
        let request = bare_heartbeat(&self.group, &self.member_id, epoch);
        match epoch == JOIN || asks_again {
            true => with_registration(request, &self.assignor, asks_again),
            false => Ok(request),
        }
    }

    /// On another connection: on the old one a heartbeat may be waiting.
    async fn leave(&self) {
        let leave = async {
            let address = self.assignor.cluster.coordinator(&self.group).await?;
            let node = self.assignor.cluster.dial(&address).await?;
            node.call(heartbeat::VERSION, &self.heartbeat(LEAVE, false)?).await
        };
        match timeout(LEAVE_LIMIT, leave).await {
            Ok(Ok(_)) => tracing::info!(group = self.group, "left"),
            _ => tracing::info!(
                group = self.group,
                "could not say that it leaves; Convoke notices by the session timeout"
            ),
        }
    }
}

/// A heartbeat that says nothing new.
pub(super) fn bare_heartbeat(group: &str, member_id: &StrBytes, epoch: i32) -> ConsumerGroupHeartbeatRequest {
    ConsumerGroupHeartbeatRequest::default()
        .with_group_id(GroupId(StrBytes::from_string(group.to_owned())))
        .with_member_id(member_id.clone())
        .with_member_epoch(epoch)
}

/// The same with all that an external assignor says of itself.
pub(super) fn with_registration(
    request: ConsumerGroupHeartbeatRequest,
    assignor: &Assignor,
    asks_again: bool,
) -> Result<ConsumerGroupHeartbeatRequest, UpstreamError> {
    let limit = assignor.command.time_limit() + MARGIN;
    let is_join = request.member_epoch == JOIN;
    let mut request = request
        .with_rebalance_timeout_ms(i32::try_from(limit.as_millis()).unwrap_or(i32::MAX))
        .with_subscribed_topic_names(Some(Vec::new()))
        .with_topic_partitions(is_join.then(Vec::new));
    let assignors: Vec<_> = assignor
        .names
        .iter()
        .map(|name| client_assignor(name, asks_again))
        .collect();
    let set = heartbeat::set_client_assignors(&mut request, &assignors);
    set.map_err(|error| UpstreamError::Malformed {
        address: request.group_id.to_string(),
        reason: error.to_string(),
    })?;
    Ok(request)
}

pub(super) fn refused(node: &Node, error: ErrorCode, answer: &ConsumerGroupHeartbeatResponse) -> UpstreamError {
    let said = answer.error_message.as_ref().map(|message| format!(": {message}"));
    UpstreamError::Refused {
        address: node.address().to_owned(),
        api: "ConsumerGroupHeartbeat",
        error,
        hint: said.unwrap_or_default(),
    }
}

/// Any version of metadata may be read: what it means is between the command and the clients.
fn client_assignor(name: &StrBytes, asks_again: bool) -> ClientAssignor {
    ClientAssignor {
        name: name.clone(),
        minimum_version: 0,
        maximum_version: i16::MAX,
        reason: if asks_again { ASKED_AGAIN } else { 0 },
        ..ClientAssignor::default()
    }
}

/// A broker would take the registration for a consumer that subscribes to nothing.
pub(super) fn expect_convoke(node: &Node) -> Result<(), UpstreamError> {
    let key = api::CONSUMER_GROUP_PREPARE_ASSIGNMENT;
    match node.versions().apis.contains_key(&key) {
        true => Ok(()),
        false => Err(UpstreamError::Refused {
            hint: "; it is no Convoke, or one that has no assignors: give --bootstrap the address at which clients reach Convoke"
                .to_owned(),
            address: node.address().to_owned(),
            api: "ApiVersions",
            error: ErrorCode::UNSUPPORTED_VERSION,
        }),
    }
}
