//! Whoever computes assignments, as the tests mean them: members of the group "g" that run the assignor "lag", and external
//! assignors that do. See `consumer_client` for the rest.

use bytes::Bytes;

use super::consumer_client::{beat_of, join_of};
use super::group_test::GroupTest;
use crate::coordinator::event::{Event, FallBackReason, PassedOverReason};
use crate::coordinator::input::Ticket;
use crate::coordinator::partitions::{Partitions, TopicPartition};
use crate::coordinator::request::{
    ClientAssignor, ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, ConsumerGroupView,
    InstallAssignmentRequest, InstalledMember, PrepareAssignmentRequest, PrepareAssignmentResponse, Request, Response,
    Text,
};
use crate::wire::error_code::ErrorCode;

/// How long nobody has to be heard until a server assignor computes.
pub(super) const UNHEARD_MS: u64 = 6_000;
/// How long an external assignor may take, by what it says.
pub(super) const EXTERNAL_TIMEOUT_MS: u64 = 30_000;

pub(super) fn assignor(name: &str) -> ClientAssignor {
    ClientAssignor {
        name: name.into(),
        minimum_version: 0,
        maximum_version: 0,
        reason: 0,
        metadata_version: 0,
        metadata: Bytes::new(),
    }
}

/// Can read the metadata of these versions, and has its own in the last of them.
pub(super) fn of_versions(minimum_version: i16, maximum_version: i16) -> ClientAssignor {
    ClientAssignor {
        minimum_version,
        maximum_version,
        metadata_version: maximum_version,
        ..assignor("lag")
    }
}

/// A member that runs these assignors.
pub(super) fn running(member_id: &str, assignors: &[ClientAssignor]) -> ConsumerGroupHeartbeatRequest {
    ConsumerGroupHeartbeatRequest {
        client_assignors: Some(assignors.to_vec()),
        ..join_of(member_id)
    }
}

/// A stock member that asks for an assignor by its name.
pub(super) fn asking(member_id: &str, assignor: &str) -> ConsumerGroupHeartbeatRequest {
    ConsumerGroupHeartbeatRequest {
        server_assignor: Some(assignor.into()),
        ..join_of(member_id)
    }
}

/// The first heartbeat of an external assignor.
pub(super) fn registration(member_id: &str) -> ConsumerGroupHeartbeatRequest {
    ConsumerGroupHeartbeatRequest {
        rebalance_timeout_ms: EXTERNAL_TIMEOUT_MS as i32,
        subscribed_topic_names: Some(Vec::new()),
        client_assignors: Some(vec![assignor("lag")]),
        topic_partitions: Some(Partitions::default()),
        ..beat_of(member_id, 0)
    }
}

pub(super) fn prepare_of(member_id: &str, member_epoch: i32) -> PrepareAssignmentRequest {
    PrepareAssignmentRequest {
        group_id: "g".into(),
        member_id: member_id.into(),
        member_epoch,
    }
}

/// Everything to the member of this place in what was prepared.
pub(super) fn all_to(prepared: &PrepareAssignmentResponse, place: usize) -> Vec<InstalledMember> {
    let partitions = prepared.topics.iter().flat_map(|topic| {
        (0..topic.partitions).map(|partition| TopicPartition {
            topic_id: topic.topic_id,
            partition,
        })
    });
    vec![InstalledMember {
        member_id: prepared.members[place].member_id.clone(),
        partitions: partitions.collect(),
        metadata_version: 0,
        metadata: Bytes::new(),
    }]
}

pub(super) fn install_of(
    member_id: &str,
    member_epoch: i32,
    prepared: &PrepareAssignmentResponse,
    members: Vec<InstalledMember>,
) -> InstallAssignmentRequest {
    InstallAssignmentRequest {
        group_id: "g".into(),
        member_id: member_id.into(),
        member_epoch,
        group_epoch: prepared.group_epoch,
        error: 0,
        members,
    }
}

impl GroupTest {
    /// An external assignor registers.
    pub(super) fn register(&mut self, member_id: &str) -> ConsumerGroupHeartbeatResponse {
        let response = self.beat(registration(member_id));
        assert_eq!((response.error, response.member_epoch), (ErrorCode::NONE, 1));
        response
    }

    /// The next heartbeat of an external assignor.
    pub(super) fn poll(&mut self, member_id: &str) -> Ticket {
        self.send_beat(beat_of(member_id, 1))
    }

    pub(super) fn try_prepare(&mut self, member_id: &str, member_epoch: i32) -> PrepareAssignmentResponse {
        match self.call(Request::PrepareAssignment(prepare_of(member_id, member_epoch))) {
            Response::PrepareAssignment(response) => response,
            other => panic!("not what was prepared: {other:?}"),
        }
    }

    pub(super) fn prepare(&mut self, member_id: &str, member_epoch: i32) -> PrepareAssignmentResponse {
        let prepared = self.try_prepare(member_id, member_epoch);
        assert_eq!(prepared.error, ErrorCode::NONE, "{prepared:?}");
        prepared
    }

    pub(super) fn install(&mut self, request: InstallAssignmentRequest) -> (ErrorCode, Option<Text>) {
        match self.call(Request::InstallAssignment(request)) {
            Response::InstallAssignment { error, error_message } => (error, error_message),
            other => panic!("not the answer to an install: {other:?}"),
        }
    }

    /// Asks, and gives everything to the member of this place.
    pub(super) fn give_all_to(&mut self, place: usize, member_id: &str, member_epoch: i32) {
        let prepared = self.prepare(member_id, member_epoch);
        let install = install_of(member_id, member_epoch, &prepared, all_to(&prepared, place));
        assert_eq!(self.install(install), (ErrorCode::NONE, None));
    }

    pub(super) fn consumer_view(&mut self) -> ConsumerGroupView {
        let group = self.view().groups.into_iter().next().expect("a group");
        group.consumer.expect("a consumer group")
    }

    /// The assignor that computed the last target.
    pub(super) fn computed_by(&mut self) -> Option<Text> {
        self.consumer_view().computed_by
    }

    /// Who is to compute the next target.
    pub(super) fn computing(&mut self) -> Option<Text> {
        self.consumer_view().computation?.member_id
    }

    pub(super) fn passed_over(&self) -> Vec<(Text, PassedOverReason)> {
        let passed_over = |event: &Event| match event {
            Event::ComputationPassedOver { member_id, reason, .. } => Some((member_id.clone(), *reason)),
            _ => None,
        };
        self.events.iter().filter_map(passed_over).collect()
    }

    pub(super) fn fell_back(&self) -> Vec<FallBackReason> {
        let fell_back = |event: &Event| match event {
            Event::ComputationFellBack { reason, .. } => Some(*reason),
            _ => None,
        };
        self.events.iter().filter_map(fell_back).collect()
    }
}
