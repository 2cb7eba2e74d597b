//! Who may do what with a group that is coordinated here: whoever the upstream would let.
//!
//! The upstream authenticates the user of a connection and keeps the ACLs; neither is known here. So it is asked on the
//! client's own authenticated connection, in the middle of which no SASL exchange is open when a handler runs, and what it
//! says is remembered for moments ([`decisions`]). No answer is a retriable error, never a yes.
//!
//! Nothing is asked of a node without an authorizer: it refuses nobody anything. The node itself has told so, and
//! `authorizer.class.name` cannot change before it restarts; while it is away there is nobody to ask, and groups go on. One
//! that comes back with an authorizer is noticed within seconds, as changed ACLs are. On a bootstrap connection, which may
//! end at any node, all of them have to have told so.

mod decisions;
mod probe;

use std::collections::{BTreeMap, BTreeSet};

use tokio::time::Instant;

pub use self::decisions::Decisions;
pub(super) use self::decisions::Operation;
use self::decisions::Told;
use self::probe::Said;
use super::ClientUpstream;
use super::call::Call;
use super::registrations::Registrations;
use crate::coordinator::request::{Request, Response, Text};
use crate::runtime::Submitted;
use crate::telemetry::metrics::AccessMetrics;
use crate::wire::error_code::ErrorCode;

/// Groups or topics that one question is about, at most.
const AT_ONCE: usize = 500;
/// Groups of one request that may not be described and are asked about one by one; the others of such a request are
/// denied what a user could have who may read or delete a group but not describe it.
const HIDDEN_MAX: usize = 32;

/// What may be done with settings, by Kafka's codes of `AclOperation`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConfigOperation {
    Describe = 10,
    Alter = 11,
}

/// The rights of one request's user.
pub(super) struct Access<'a, U> {
    call: &'a Call<'a>,
    decisions: &'a mut Decisions,
    pub(super) upstream: &'a mut U,
    /// Whether the upstream refuses anybody anything.
    checks: bool,
}

impl<'a, U: ClientUpstream> Access<'a, U> {
    pub(super) fn new(call: &'a Call<'a>, decisions: &'a mut Decisions, upstream: &'a mut U) -> Self {
        Self {
            checks: call.services.cluster.look().checks_access(call.caller.node_id),
            call,
            decisions,
            upstream,
        }
    }

    /// The external assignors that are heard on this connection.
    pub(super) const fn registrations(&mut self) -> &mut Registrations {
        &mut self.decisions.registrations
    }

    /// Asks the coordinator for a join or a sync, and lets go of the frame once it is certain that the answer is made here.
    pub(super) async fn submit(&mut self, group_id: &str, request: Request) -> Response {
        match self.call.services.coordinator.submit(group_id, request).await {
            Submitted::Answered(response) => response,
            Submitted::Admitted(admitted) => {
                self.upstream.let_go_of_request();
                admitted.answer().await
            }
        }
    }

    fn metrics(&self) -> &'a AccessMetrics {
        &self.call.services.metrics.access
    }

    /// Whether the user may do it with the group.
    ///
    /// # Errors
    /// What the client is answered: `GROUP_AUTHORIZATION_FAILED`, or a retriable error where that is not known.
    pub(super) async fn group(&mut self, group_id: &str, operation: Operation) -> Result<(), ErrorCode> {
        if !self.checks {
            return Ok(());
        }
        if self.decisions.groups.of(group_id, operation, Instant::now()) == Some(true) {
            self.metrics().remembered.inc();
            return Ok(());
        }
        let group_ids = [Text::from(group_id)];
        let refused = self.groups(&group_ids, operation).await;
        refused.into_values().next().map_or(Ok(()), Err)
    }

    /// The groups with which the user may not do it, or of which that is not known, each with what it is answered:
    /// as [`Self::group`].
    pub(super) async fn groups(&mut self, group_ids: &[Text], operation: Operation) -> BTreeMap<Text, ErrorCode> {
        let mut refused = BTreeMap::new();
        if !self.checks {
            return refused;
        }
        let now = Instant::now();
        let mut open = Vec::new();
        for group_id in group_ids {
            match self.decisions.groups.of(group_id, operation, now) {
                Some(true) => {}
                Some(false) => drop(refused.insert(group_id.clone(), ErrorCode::GROUP_AUTHORIZATION_FAILED)),
                None => open.push(group_id.clone()),
            }
        }
        self.metrics().remembered.inc_by((group_ids.len() - open.len()) as u64);
        let mut hidden = 0;
        for open in open.chunks(AT_ONCE) {
            let said = self.ask_groups(open).await;
            for group_id in open {
                let said = match &said {
                    Ok(said) => said.get(group_id).copied().ok_or(ErrorCode::COORDINATOR_NOT_AVAILABLE),
                    Err(error) => Err(*error),
                };
                let may = self.may(group_id, operation, said, &mut hidden).await;
                if let Err(error) = may {
                    refused.insert(group_id.clone(), error);
                }
            }
        }
        let denied = |error: &&ErrorCode| **error == ErrorCode::GROUP_AUTHORIZATION_FAILED;
        self.count_denied(refused.values().filter(denied).count());
        refused
    }

    /// What the node says about the groups, which is remembered.
    async fn ask_groups(&mut self, group_ids: &[Text]) -> Result<BTreeMap<Text, Said>, ErrorCode> {
        self.metrics().probes.inc();
        let said = probe::groups(self.call, self.upstream, group_ids).await?;
        let now = Instant::now();
        self.decisions.forget_old(now);
        for (group_id, said) in &said {
            if let Said::Told(told) = said {
                self.decisions.groups.learn(group_id, *told, now);
            }
        }
        Ok(said.into_iter().collect())
    }

    /// Decides by what was said about a group, asking once more where it is hidden from the user.
    async fn may(
        &mut self,
        group_id: &Text,
        operation: Operation,
        said: Result<Said, ErrorCode>,
        hidden: &mut usize,
    ) -> Result<(), ErrorCode> {
        let mut said = said?;
        if matches!(said, Said::Told(told) if told.of(operation).is_none()) {
            *hidden += 1;
            said = if *hidden <= HIDDEN_MAX {
                self.metrics().probes.inc();
                probe::hidden_group(self.call, self.upstream, group_id, operation).await?
            } else {
                Said::Told(Told::only(operation, false))
            };
            if let Said::Told(told) = said {
                self.decisions.groups.learn(group_id, told, Instant::now());
            }
        }
        match said {
            Said::Told(told) if told.of(operation) == Some(true) => Ok(()),
            Said::Told(_) => Err(ErrorCode::GROUP_AUTHORIZATION_FAILED),
            Said::Elsewhere(error) => Err(error),
        }
    }

    /// The topics with which the user may not do it.
    ///
    /// # Errors
    /// A retriable one where that is not known of all.
    pub(super) async fn topics(
        &mut self,
        names: impl IntoIterator<Item = Text>,
        operation: Operation,
    ) -> Result<BTreeSet<Text>, ErrorCode> {
        let mut denied = BTreeSet::new();
        if !self.checks {
            return Ok(denied);
        }
        let names: BTreeSet<Text> = names.into_iter().collect();
        let asked_for = names.len();
        let now = Instant::now();
        let mut open = Vec::new();
        for name in names {
            match self.decisions.topics.of(&name, operation, now) {
                Some(true) => {}
                Some(false) => drop(denied.insert(name)),
                None => open.push(name),
            }
        }
        self.metrics().remembered.inc_by((asked_for - open.len()) as u64);
        for open in open.chunks(AT_ONCE) {
            self.metrics().probes.inc();
            let told = probe::topics(self.call, self.upstream, open, operation).await?;
            let now = Instant::now();
            self.decisions.forget_old(now);
            let told: BTreeMap<Text, Told> = told.into_iter().collect();
            for name in open {
                let told = told.get(name).ok_or(ErrorCode::COORDINATOR_NOT_AVAILABLE)?;
                self.decisions.topics.learn(name, *told, now);
                if told.of(operation) != Some(true) {
                    denied.insert(name.clone());
                }
            }
        }
        self.count_denied(denied.len());
        Ok(denied)
    }

    /// The operations that the user may do with each group, as answers carry them where a client asks for them.
    ///
    /// # Errors
    /// A retriable one where that is not known.
    pub(super) async fn operations(&mut self, group_ids: &[Text]) -> Result<BTreeMap<Text, i32>, ErrorCode> {
        let mut told = BTreeMap::new();
        for group_ids in group_ids.chunks(AT_ONCE) {
            self.metrics().probes.inc();
            told.extend(probe::operations(self.call, self.upstream, group_ids).await?);
        }
        Ok(told)
    }

    /// The groups that the user may not see in a list. One that may be described is seen wherever it is coordinated.
    ///
    /// # Errors
    /// A retriable one where that is not known of all.
    pub(super) async fn unlisted(&mut self, group_ids: &[Text]) -> Result<BTreeSet<Text>, ErrorCode> {
        if !self.checks || group_ids.is_empty() || self.describes_cluster().await? {
            return Ok(BTreeSet::new());
        }
        self.undescribed(group_ids).await
    }

    /// The groups that the user may not describe, wherever they are coordinated.
    async fn undescribed(&mut self, group_ids: &[Text]) -> Result<BTreeSet<Text>, ErrorCode> {
        let mut undescribed = BTreeSet::new();
        for group_ids in group_ids.chunks(AT_ONCE) {
            let said = self.ask_groups(group_ids).await?;
            for group_id in group_ids {
                match said.get(group_id).ok_or(ErrorCode::COORDINATOR_NOT_AVAILABLE)? {
                    Said::Told(told) if told.of(Operation::Describe) != Some(true) => {
                        undescribed.insert(group_id.clone());
                    }
                    Said::Told(_) | Said::Elsewhere(_) => {}
                }
            }
        }
        Ok(undescribed)
    }

    /// The groups whose settings the user may not see or change, where an upstream that is too old for them cannot say: it has to
    /// be allowed with those of the cluster, and to describe the group.
    ///
    /// # Errors
    /// A retriable one where that is not known of all.
    pub(super) async fn group_configs(
        &mut self,
        group_ids: &BTreeSet<Text>,
        operation: ConfigOperation,
    ) -> Result<BTreeSet<Text>, ErrorCode> {
        if !self.checks || group_ids.is_empty() {
            return Ok(BTreeSet::new());
        }
        self.metrics().probes.inc();
        let operations = probe::cluster_operations(self.call, self.upstream).await?;
        let denied = if operations & (1 << operation as i32) == 0 {
            group_ids.clone()
        } else {
            let named = group_ids.iter().filter(|group_id| !group_id.is_empty());
            let named: Vec<Text> = named.cloned().collect();
            self.undescribed(&named).await?
        };
        self.count_denied(denied.len());
        Ok(denied)
    }

    async fn describes_cluster(&mut self) -> Result<bool, ErrorCode> {
        if let Some(allowed) = self.decisions.cluster.of(Operation::Describe, Instant::now()) {
            self.metrics().remembered.inc();
            return Ok(allowed);
        }
        self.metrics().probes.inc();
        let told = Told::set(probe::cluster_operations(self.call, self.upstream).await?);
        self.decisions.cluster.learn(told, Instant::now());
        Ok(told.of(Operation::Describe) == Some(true))
    }

    fn count_denied(&self, denied: usize) {
        self.call
            .services
            .metrics
            .api(self.call.api_key)
            .denied
            .inc_by(denied as u64);
    }
}
