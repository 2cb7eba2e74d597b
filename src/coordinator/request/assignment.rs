//! Client-side assignors: what members and external assignors say of theirs, and the two requests by which a target is
//! computed outside (KIP-848, ConsumerGroupPrepareAssignment and ConsumerGroupInstallAssignment, which no broker ships).

use std::sync::Arc;

use bytes::Bytes;
use uuid::Uuid;

use super::Text;
use crate::coordinator::partitions::{Partitions, TopicPartition};
use crate::wire::error_code::ErrorCode;

/// An assignor that a member, or an external assignor, can run. What it says of its metadata is for the assignor alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientAssignor {
    pub name: Text,
    /// The versions of other members' metadata that it can read.
    pub minimum_version: i16,
    pub maximum_version: i16,
    /// Other than 0: a new assignment is asked for, the number says why in the assignor's own terms.
    pub reason: i8,
    pub metadata_version: i16,
    pub metadata: Bytes,
}

impl ClientAssignor {
    /// The one of this name among those that somebody lists.
    #[must_use]
    pub fn find<'a>(listed: &'a [Self], name: &str) -> Option<&'a Self> {
        listed.iter().find(|assignor| &*assignor.name == name)
    }
}

/// What the assignor of a target says to a member beside its partitions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AssignedBy {
    /// The assignor's own error code; then the target was computed by another.
    pub error: i8,
    pub metadata_version: i16,
    pub metadata: Bytes,
}

/// ConsumerGroupPrepareAssignment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrepareAssignmentRequest {
    pub group_id: Text,
    pub member_id: Text,
    pub member_epoch: i32,
}

/// What an assignment is computed from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrepareAssignmentResponse {
    pub error: ErrorCode,
    /// What is wrong, for people.
    pub error_message: Option<Text>,
    /// The epoch that the assignment is for; 0 with an error.
    pub group_epoch: i32,
    /// The assignor to run; empty with an error.
    pub assignor_name: Text,
    /// By id.
    pub members: Vec<PreparedMember>,
    /// Every topic that exists and that a member is subscribed to, by id.
    pub topics: Vec<PreparedTopic>,
}

impl PrepareAssignmentResponse {
    #[must_use]
    pub fn refusal(error: ErrorCode, error_message: Option<Text>) -> Self {
        Self {
            error,
            error_message,
            group_epoch: 0,
            assignor_name: "".into(),
            members: Vec::new(),
            topics: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedMember {
    pub member_id: Text,
    pub member_epoch: i32,
    pub group_instance_id: Option<Text>,
    pub rack_id: Option<Text>,
    /// Ascending; patterns are resolved. Members with the same subscription share it.
    pub topic_ids: Arc<[Uuid]>,
    /// What the member says for this assignor; 0 and nothing of a member that only asks for it by its name.
    pub reason: i8,
    pub metadata_version: i16,
    pub metadata: Bytes,
    /// The present target.
    pub target: Arc<Partitions>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedTopic {
    pub topic_id: Uuid,
    pub name: Text,
    pub partitions: i32,
}

/// ConsumerGroupInstallAssignment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstallAssignmentRequest {
    pub group_id: Text,
    pub member_id: Text,
    pub member_epoch: i32,
    /// The one of the snapshot that it was computed from.
    pub group_epoch: i32,
    /// 0, or the assignor's own code for why there is no assignment.
    pub error: i8,
    pub members: Vec<InstalledMember>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledMember {
    pub member_id: Text,
    /// As they came: in any order, and by mistake more than once.
    pub partitions: Vec<TopicPartition>,
    pub metadata_version: i16,
    pub metadata: Bytes,
}
