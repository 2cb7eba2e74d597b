//! One request under way: its version, who sent it, and the ways to answer it or to ask the upstream in its stead.

use std::fmt::Display;

use bytes::{Bytes, BytesMut};
use tracing::debug;

use super::{Answer, Caller, ClientUpstream, HandlerServices};
use crate::wire::codec::{self, Encode, GuardedResponse, WireError};
use crate::wire::error_code::ErrorCode;
use crate::wire::frame::RequestHead;

/// Room that every reply begins with: more than that of a heartbeat takes.
const REPLY_SIZE: usize = 128;

/// What a handler gives back: an answer, or why the request cannot be read.
pub(super) type Handled = Result<Answer, WireError>;

/// One request of a client.
pub(super) struct Call<'a> {
    pub(super) api_key: i16,
    pub(super) version: i16,
    pub(super) caller: &'a Caller,
    pub(super) services: &'a HandlerServices,
}

impl<'a> Call<'a> {
    pub(super) const fn new(head: &RequestHead, caller: &'a Caller, services: &'a HandlerServices) -> Self {
        Self {
            api_key: head.api_key,
            version: head.api_version,
            caller,
            services,
        }
    }

    /// Whether a rule leaves the group with the upstream.
    pub(super) fn is_delegated(&self, group_id: &str) -> bool {
        self.services.delegate.matches(group_id)
    }

    /// The answer in the client's version; `error` is the first error in it.
    pub(super) fn reply(&self, response: &impl Encode, error: ErrorCode) -> Handled {
        let mut body = BytesMut::with_capacity(REPLY_SIZE);
        codec::encode(response, self.version, &mut body)?;
        Ok(Answer::Reply(body, error))
    }

    /// Whether the client's own frame can go to its upstream node: the version that a client is offered for a group API is
    /// ours, and the upstream may be older.
    pub(super) fn can_forward(&self) -> bool {
        self.upstream_version(self.version) == self.version
    }

    /// Leaves the request to the client's upstream node, or refuses it where that node does not know the version.
    pub(super) fn pass_on(&self, refuse: impl FnOnce(ErrorCode) -> Handled) -> Handled {
        if self.can_forward() {
            Ok(Answer::Forward)
        } else {
            refuse(ErrorCode::UNSUPPORTED_VERSION)
        }
    }

    /// The version in which the client's upstream node is asked: the newest that it speaks, up to `newest`. What nodes speak
    /// is learnt in the background; until then a node is taken to speak what the client does.
    pub(super) fn upstream_version(&self, newest: i16) -> i16 {
        self.version_of(self.api_key, newest)
    }

    /// The same for another API.
    pub(super) fn version_of(&self, api_key: i16, newest: i16) -> i16 {
        let cluster = self.services.cluster.snapshot();
        let of_node = |node_id: i32| cluster.versions.get(&node_id)?.apis.get(&api_key).copied();
        let range = match self.caller.node_id {
            Some(node_id) => of_node(node_id),
            // A bootstrap connection may end at any node: what all of them speak.
            None => cluster
                .versions
                .keys()
                .filter_map(|node_id| of_node(*node_id))
                .reduce(|(min, max), (other_min, other_max)| (min.max(other_min), max.min(other_max))),
        };
        match range {
            Some((min, max)) => newest.min(max).max(min),
            None => newest,
        }
    }

    /// Asks the upstream in the client's stead, by the same API, on the client's own connection and so with its own rights.
    ///
    /// # Errors
    /// `COORDINATOR_NOT_AVAILABLE`, which is retriable, where no answer came; `UNSUPPORTED_VERSION` where the version cannot
    /// carry the request.
    pub(super) async fn ask<T: GuardedResponse>(
        &self,
        upstream: &mut impl ClientUpstream,
        version: i16,
        request: &impl Encode,
    ) -> Result<T, ErrorCode> {
        self.ask_api(self.api_key, upstream, version, request).await
    }

    /// The same by another API.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub(super) async fn ask_api<T: GuardedResponse>(
        &self,
        api_key: i16,
        upstream: &mut impl ClientUpstream,
        version: i16,
        request: &impl Encode,
    ) -> Result<T, ErrorCode> {
        let mut body = BytesMut::new();
        if codec::encode(request, version, &mut body).is_err() {
            return Err(ErrorCode::UNSUPPORTED_VERSION);
        }
        let answer = self.ask_raw(api_key, upstream, version, body.freeze()).await?;
        codec::decode_response(version, answer).map_err(|error| self.unanswered(api_key, version, &error))
    }

    /// The same with bodies as they are on the wire.
    ///
    /// # Errors
    /// `COORDINATOR_NOT_AVAILABLE` where no answer came.
    pub(super) async fn ask_raw(
        &self,
        api_key: i16,
        upstream: &mut impl ClientUpstream,
        version: i16,
        body: Bytes,
    ) -> Result<Bytes, ErrorCode> {
        let answer = upstream.call(api_key, version, body).await;
        answer.map_err(|error| self.unanswered(api_key, version, &error))
    }

    fn unanswered(&self, api_key: i16, version: i16, failure: &dyn Display) -> ErrorCode {
        self.services.metrics.upstream.failures.inc();
        debug!(
            api_key,
            version, "the upstream did not answer on a client's connection; the client is told to retry: {failure}"
        );
        ErrorCode::COORDINATOR_NOT_AVAILABLE
    }
}
