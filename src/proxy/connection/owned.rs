//! Requests that end here. One at a time: a broker, too, reads a connection's next request after it has answered the last.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{timeout, timeout_at};

use super::end::End;
use super::requests::{Request, Requests};
use super::slot::{Local, Slot};
use crate::coordinator::request::Text;
use crate::handler::{self, Answer, Caller};
use crate::proxy::api_versions::{self, Answering, Offer, TopicIds};
use crate::proxy::listeners::Target;
use crate::proxy::owned_memory::Taken;
use crate::proxy::sasl::Admission;
use crate::telemetry::close_reason::CloseReason;
use crate::upstream::cluster::Cluster;
use crate::wire::api;
use crate::wire::error_code::ErrorCode;
use crate::wire::frame::{LENGTH_SIZE, RequestHead, response_head};

/// The longest ApiVersions request: its strings name a client and a cluster.
const API_VERSIONS_SIZE_MAX: usize = 8 * 1024;
/// How long a request may take to arrive once there is memory for it: so long, and as much again for each MiB as follows.
const ARRIVAL_GRACE: Duration = Duration::from_secs(5);
const ARRIVAL_TIME_A_MIB: Duration = Duration::from_secs(1);
/// How long a client of a node that the cluster does not list waits for it.
const UNLISTED_PATIENCE: Duration = Duration::from_secs(1);

impl Requests<'_> {
    /// Has the request answered by its handler.
    pub(super) async fn own(&mut self, request: Request) -> Result<(), End> {
        let limit = self.ctx.services.limits.owned_request_max;
        self.check_size(&request, limit, "limits.owned_request_max")?;
        self.admit(Authentication::AsUpstream, request.received).await?;
        let gathered = self.gather_in_turn(request.size).await?;
        let caller = self.caller(&request.head, &gathered.frame);
        let body = body_of(&request.head, &gathered.frame);
        self.upstream.gathered = Some(gathered);
        self.upstream.waited = Duration::ZERO;
        self.ctx.progress.begun();
        let services = &self.ctx.services.handlers;
        let answer = handler::handle(
            &request.head,
            body,
            &caller,
            services,
            &mut self.decisions,
            &mut self.upstream,
        )
        .await;
        self.ctx.progress.answered();
        let gathered = self.upstream.gathered.take();
        self.upstream.check_answered()?;
        match answer {
            Answer::Reply(body, error) => {
                drop(gathered);
                self.reply(&request, &body, error).await?;
                self.upstream.check_user()
            }
            Answer::Forward => {
                let Some(Gathered { frame, _memory }) = gathered else {
                    return Err(End::new(
                        CloseReason::Refused,
                        "the request is to go upstream and was let go of",
                    ));
                };
                self.forward_gathered(request, &frame).await
            }
            Answer::Close(why) => Err(End::new(CloseReason::Refused, why)),
        }
    }

    /// Takes the request out of the stream, a long one when there is memory for it; what fits the connection's own buffer needs
    /// no turn.
    async fn gather_in_turn(&mut self, size: usize) -> Result<Gathered, End> {
        if size <= self.ctx.services.limits.buffer {
            let frame = self.gather(size).await?;
            return Ok(Gathered { frame, _memory: None });
        }
        Box::pin(self.gather_long(size)).await
    }

    /// A client that has its turn and does not send is not waited for, since others wait for the memory.
    async fn gather_long(&mut self, size: usize) -> Result<Gathered, End> {
        self.flush().await?;
        // While it waits it is the client who waits: that is no idle connection.
        self.ctx.progress.begun();
        let memory = self.ctx.services.owned_memory.take(size).await;
        self.ctx.progress.answered();
        let memory = memory.ok_or_else(End::client_closed)?;
        let patience = ARRIVAL_GRACE + ARRIVAL_TIME_A_MIB * u32::try_from(size >> 20).unwrap_or(u32::MAX);
        match timeout(patience, self.gather(size)).await {
            Ok(frame) => Ok(Gathered {
                frame: frame?,
                _memory: Some(memory),
            }),
            Err(_) => Err(End::new(
                CloseReason::ClientStalled,
                format!("a request of {size} bytes did not arrive within {patience:?}"),
            )),
        }
    }

    /// Answers ApiVersions from what is known of the node.
    pub(super) async fn answer_api_versions(&mut self, request: Request) -> Result<(), End> {
        self.check_size(&request, API_VERSIONS_SIZE_MAX, "its fields need no more")?;
        self.admit(Authentication::NotYet, request.received).await?;
        self.upstream.waited = Duration::ZERO;
        let frame = self.gather(request.size).await?;
        let body = body_of(&request.head, &frame);
        let (cluster, offer) = self.offer().await?;
        let answering = self.answering(&cluster);
        let answer = api_versions::answer(request.head.api_version, body, &offer, answering)
            .map_err(|error| End::client_misbehaved(&error))?;
        self.reply(&request, &answer.body, answer.error).await
    }

    /// Before authentication a broker does not compare the ids that a client means with its own.
    fn answering<'c>(&self, cluster: &'c Cluster) -> Answering<'c> {
        if self.ctx.services.upstream.sasl.is_some() && !self.ctx.sasl().is_authenticated() {
            return Answering::Anyone;
        }
        match self.ctx.target.node_id() {
            None => Answering::Bootstrap,
            Some(node_id) => Answering::Node {
                cluster_id: cluster.cluster_id.as_deref(),
                node_id,
            },
        }
    }

    fn check_size(&self, request: &Request, limit: usize, name: &str) -> Result<(), End> {
        let len = request.size - LENGTH_SIZE;
        if len <= limit {
            return Ok(());
        }
        let api = api::find(request.head.api_key).map_or("unknown", |api| api.name);
        let detail = format!("{api} request of {len} bytes, at most {limit} are taken ({name})");
        Err(End::new(CloseReason::RequestTooLong, detail))
    }

    /// Waits until all SASL frames are answered, and lets in whom a broker would let in.
    async fn admit(&mut self, authentication: Authentication, received: Instant) -> Result<(), End> {
        let required = authentication == Authentication::AsUpstream && self.ctx.services.upstream.sasl.is_some();
        let received_ms = self.ctx.services.ms_at(received);
        loop {
            let admission = self.ctx.sasl().admits(required, received_ms);
            match admission {
                Admission::Admitted => return Ok(()),
                Admission::Refused(why) => return Err(End::new(CloseReason::IllegalSaslState, why)),
                Admission::Wait => {
                    self.flush().await?;
                    self.ctx.sasl_answered.notified().await;
                }
            }
        }
    }

    /// Who sent the frame. A client seldom changes its id.
    fn caller(&mut self, head: &RequestHead, frame: &[u8]) -> Caller {
        let client_id = head.client_id(frame.get(LENGTH_SIZE..).unwrap_or_default());
        let known = &mut self.upstream.client_id;
        if known.as_deref() != client_id.as_deref() {
            *known = client_id.map(Text::from);
        }
        Caller {
            client_id: known.clone().unwrap_or_default(),
            client_host: Arc::clone(&self.ctx.client_host),
            node_id: self.ctx.target.node_id(),
        }
    }

    /// Queues an answer, once the client has taken enough of those before it.
    async fn reply(&mut self, request: &Request, body: &[u8], error: ErrorCode) -> Result<(), End> {
        let RequestHead {
            api_key,
            api_version,
            correlation_id,
            ..
        } = request.head;
        let metrics = self.ctx.services.metrics.api(api_key);
        metrics.error(error.0);
        let mut frame = BytesMut::with_capacity(LENGTH_SIZE + 8 + body.len());
        frame.put_i32(0);
        response_head(api_key, api_version, correlation_id, &mut frame);
        frame.put_slice(body);
        let Ok(len) = i32::try_from(frame.len() - LENGTH_SIZE) else {
            return Err(End::new(CloseReason::Refused, "an answer of 2 GiB or more"));
        };
        frame[..LENGTH_SIZE].copy_from_slice(&len.to_be_bytes());
        metrics.response_bytes.inc_by(frame.len() as u64);
        let budget = self.answer_budget(frame.len()).await?;
        let local = Local {
            api_key,
            frame,
            received: request.received,
            upstream: self.upstream.waited,
            _budget: budget,
        };
        self.upstream.push(Slot::Local(Box::new(local))).await;
        Ok(())
    }

    async fn answer_budget(&self, len: usize) -> Result<OwnedSemaphorePermit, End> {
        let share = len.min(self.ctx.services.limits.buffer);
        let share = u32::try_from(share).unwrap_or(u32::MAX);
        let budget = Arc::clone(&self.ctx.answer_budget);
        budget.acquire_many_owned(share).await.map_err(|_| End::client_closed())
    }

    /// What clients of this connection's node are offered; waits if the upstream has not been asked yet. For a node that the
    /// cluster does not list it does so for a moment only: one that is new is listed by then, and to one that is gone clients are
    /// not to be connected for longer than a broker that is down would let them.
    async fn offer(&self) -> Result<(Arc<Cluster>, Offer), End> {
        let cluster = &self.ctx.services.cluster;
        let mut changes = cluster.subscribe();
        let began = tokio::time::Instant::now();
        loop {
            changes.borrow_and_update();
            let snapshot = cluster.snapshot();
            if let Some(offer) = offer_of(&snapshot, &self.ctx.target) {
                return Ok((snapshot, offer));
            }
            cluster.request_refresh();
            let patience = if is_listed(&snapshot, &self.ctx.target) {
                self.ctx.services.upstream.request_timeout
            } else {
                UNLISTED_PATIENCE.min(self.ctx.services.upstream.request_timeout)
            };
            let changed = timeout_at(began + patience, changes.changed()).await;
            if !matches!(changed, Ok(Ok(()))) {
                return Err(unknown_versions(&snapshot, &self.ctx.target, patience));
            }
        }
    }
}

/// A request that was taken out of the stream.
pub(super) struct Gathered {
    frame: Bytes,
    /// What it takes of the memory for long ones.
    _memory: Option<Taken>,
}

/// Who may ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Authentication {
    /// Whoever the upstream lets in.
    AsUpstream,
    /// Also a client that has not authenticated yet.
    NotYet,
}

fn body_of(head: &RequestHead, frame: &Bytes) -> Bytes {
    frame.slice((LENGTH_SIZE + head.body_offset).min(frame.len())..)
}

/// Whether the node that the connection stands for is one of the cluster's now.
fn is_listed(cluster: &Cluster, target: &Target) -> bool {
    match target {
        Target::Bootstrap => true,
        Target::Node(node) => cluster.nodes.contains_key(&node.node_id),
    }
}

fn unknown_versions(cluster: &Cluster, target: &Target, patience: Duration) -> End {
    let whose = match target {
        Target::Bootstrap => "any upstream node's".to_owned(),
        Target::Node(node) if !is_listed(cluster, target) => {
            let detail = format!("the cluster does not list node {} now", node.node_id);
            return End::new(CloseReason::UpstreamUnreachable, detail);
        }
        Target::Node(node) => format!("node {}'s", node.node_id),
    };
    End::new(
        CloseReason::VersionsUnknown,
        format!("{whose} api versions were not learnt within {patience:?}"),
    )
}

/// From the versions of the node, or, for a bootstrap connection, from those that every known node speaks.
fn offer_of(cluster: &Cluster, target: &Target) -> Option<Offer> {
    let topic_ids = if cluster.topics.have_ids() {
        TopicIds::Given
    } else {
        TopicIds::Missing
    };
    match target {
        Target::Node(node) => {
            let versions = cluster.versions.get(&node.node_id);
            versions.map(|versions| Offer::of(versions, topic_ids))
        }
        Target::Bootstrap => {
            let nodes = cluster.versions.values().map(|versions| &**versions);
            api_versions::intersection(nodes).map(|common| Offer::of(&common, topic_ids))
        }
    }
}
