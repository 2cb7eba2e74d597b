//! One computation: the group as it is, the command's answer, and what Convoke says to it.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use kafka_protocol::protocol::StrBytes;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;

use super::Assignor;
use super::command::{CommandError, short};
use super::document::{Answer, Assigned, Member, Metadata, Question, Topic};
use super::facts::Facts;
use crate::upstream::UpstreamError;
use crate::upstream::node::Node;
use crate::wire::api;
use crate::wire::assignment::TopicPartitions;
use crate::wire::assignment::install::{self, InstallAssignmentRequest, InstallAssignmentResponse};
use crate::wire::assignment::prepare::{PrepareAssignmentRequest, PrepareAssignmentResponse};
use crate::wire::error_code::ErrorCode;

/// The only version of both messages.
const VERSION: i16 = 0;

/// Why there is no assignment, as the group is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i8)]
enum Failure {
    Command = 1,
    TimedOut = 2,
    NotUnderstood = 3,
    Declined = 4,
}

/// A computation under way.
pub(super) struct Running {
    pub(super) task: AbortOnDropHandle<()>,
    /// When it had asked what to compute from.
    prepared: Arc<OnceLock<Instant>>,
}

impl Running {
    /// Computes on a task of its own.
    pub(super) fn start(computation: impl Future<Output = Option<Computation>> + Send + 'static) -> Self {
        let prepared = Arc::new(OnceLock::new());
        let noted = Arc::clone(&prepared);
        let run = async move {
            if let Some(computation) = computation.await {
                computation.run(&noted).await;
            }
        };
        Self {
            task: AbortOnDropHandle::new(tokio::spawn(run)),
            prepared,
        }
    }

    /// Whether nobody waits for it any more, where a heartbeat that was sent at this time said that there is something to compute:
    /// whoever has asked what from is not told so again.
    pub(super) fn is_outdated(&self, sent: Instant) -> bool {
        self.task.is_finished() || self.prepared.get().is_some_and(|prepared| sent > *prepared)
    }
}

/// What has to be known to compute once.
pub(super) struct Computation {
    pub(super) assignor: Arc<Assignor>,
    pub(super) node: Arc<Node>,
    pub(super) group: String,
    pub(super) member_id: StrBytes,
    pub(super) epoch: i32,
}

impl Computation {
    /// Ends with a line in the log.
    async fn run(self, prepared: &OnceLock<Instant>) {
        let began = Instant::now();
        let group = self.group.clone();
        match self.compute(prepared).await {
            Ok(Some(epoch)) => {
                let ms = began.elapsed().as_millis();
                tracing::info!(group, group_epoch = epoch, "assignment installed after {ms} ms");
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(group, "computation given up: {error}"),
        }
    }

    /// The epoch that the installed assignment is for; `None` where something else was said about it.
    async fn compute(&self, noted: &OnceLock<Instant>) -> Result<Option<i32>, UpstreamError> {
        let Some(prepared) = self.prepare().await? else {
            return Ok(None);
        };
        noted.get_or_init(Instant::now);
        let group_epoch = prepared.group_epoch;
        let members = match self.ask(prepared).await {
            Ok(members) => members,
            Err((failure, reason)) => {
                tracing::warn!(group = self.group, group_epoch, "no assignment: {reason}");
                self.install(group_epoch, failure as i8, Vec::new()).await?;
                return Ok(None);
            }
        };
        let installed = self.install(group_epoch, 0, members).await?;
        let error = ErrorCode(installed.error_code);
        if error.is_none() {
            return Ok(Some(group_epoch));
        }
        let reason = installed.error_message.as_deref().unwrap_or_default();
        tracing::warn!(
            group = self.group,
            group_epoch,
            "assignment refused with {error}: {reason}"
        );
        if error == ErrorCode::INVALID_ASSIGNMENT {
            // The same would come of the next try, so that others have theirs now.
            self.install(group_epoch, Failure::NotUnderstood as i8, Vec::new())
                .await?;
        }
        Ok(None)
    }

    async fn prepare(&self) -> Result<Option<PrepareAssignmentResponse>, UpstreamError> {
        let request = PrepareAssignmentRequest {
            group_id: StrBytes::from_string(self.group.clone()),
            member_id: self.member_id.clone(),
            member_epoch: self.epoch,
        };
        let key = api::CONSUMER_GROUP_PREPARE_ASSIGNMENT;
        let prepared: PrepareAssignmentResponse = self.node.exchange(key, VERSION, &request).await?;
        let error = ErrorCode(prepared.error_code);
        if error.is_none() {
            return Ok(Some(prepared));
        }
        let reason = prepared.error_message.as_deref().unwrap_or_default();
        tracing::info!(
            group = self.group,
            "the computation is another's by now ({error}) {reason}"
        );
        Ok(None)
    }

    async fn ask(
        &self,
        prepared: PrepareAssignmentResponse,
    ) -> Result<Vec<install::InstalledMember>, (Failure, String)> {
        let facts = Facts::gather(&self.assignor.cluster, &self.node, &self.group, &prepared.topics).await;
        let question = question(&self.group, prepared, &facts);
        let written = serde_json::to_vec(&question).map_err(|error| (Failure::Command, error.to_string()))?;
        let answer = self.assignor.command.ask(&self.group, written).await.map_err(|error| {
            let failure = match error {
                CommandError::TimedOut(_) => Failure::TimedOut,
                CommandError::NotJson { .. } => Failure::NotUnderstood,
                _ => Failure::Command,
            };
            (failure, format!("the command {error}"))
        })?;
        match question.read_answer(&answer) {
            Ok(Answer::Assigned(assigned)) => Ok(assigned.into_iter().map(to_wire).collect()),
            Ok(Answer::Failed(reason)) => Err((Failure::Declined, format!("the command says: {}", short(&reason)))),
            Err(error) => Err((
                Failure::NotUnderstood,
                format!("the command's answer is of no use: {error}"),
            )),
        }
    }

    async fn install(
        &self,
        group_epoch: i32,
        error: i8,
        members: Vec<install::InstalledMember>,
    ) -> Result<InstallAssignmentResponse, UpstreamError> {
        let request = InstallAssignmentRequest {
            group_id: StrBytes::from_string(self.group.clone()),
            member_id: self.member_id.clone(),
            member_epoch: self.epoch,
            group_epoch,
            error,
            members,
        };
        let key = api::CONSUMER_GROUP_INSTALL_ASSIGNMENT;
        self.node.exchange(key, VERSION, &request).await
    }
}

fn question(group: &str, prepared: PrepareAssignmentResponse, facts: &Facts) -> Question {
    let names: BTreeMap<Uuid, StrBytes> = prepared
        .topics
        .iter()
        .map(|topic| (topic.topic_id, topic.topic_name.clone()))
        .collect();
    let name_of = |id: &Uuid| names.get(id).map(ToString::to_string);
    let members = prepared.members.into_iter().map(|member| Member {
        id: member.member_id.to_string(),
        instance_id: member.instance_id.map(|id| id.to_string()),
        rack: member.rack_id.map(|rack| rack.to_string()),
        topics: member.subscribed_topic_ids.iter().filter_map(name_of).collect(),
        metadata: Metadata {
            version: member.assignor.metadata_version,
            data: member.assignor.metadata.to_vec(),
        },
        target: member
            .topic_partitions
            .into_iter()
            // A topic that is gone has no name any more.
            .filter_map(|topic| Some((name_of(&topic.topic_id)?, topic.partitions)))
            .collect(),
    });
    let topics = prepared.topics.iter().map(|topic| Topic {
        name: topic.topic_name.to_string(),
        id: topic.topic_id,
        partitions: topic.num_partitions,
        lag: facts.lag(topic),
        racks: facts.racks(topic),
    });
    Question::new(
        group.to_owned(),
        prepared.group_epoch,
        prepared.assignor_name.to_string(),
        members.collect(),
        topics.collect(),
    )
}

fn to_wire(assigned: Assigned) -> install::InstalledMember {
    let partitions = assigned.partitions.into_iter();
    install::InstalledMember {
        member_id: StrBytes::from_string(assigned.member_id),
        partitions: partitions
            .map(|(topic_id, partitions)| TopicPartitions { topic_id, partitions })
            .collect(),
        metadata_version: assigned.metadata.version,
        metadata: assigned.metadata.data.into(),
    }
}
