//! An external assignor "x" with moods, which places every time in another way.

use proptest::prelude::*;

use super::computing_client::{assignor, install_of, registration};
use super::consumer_client::beat_of;
use super::group_test::GroupTest;
use crate::coordinator::input::Ticket;
use crate::coordinator::partitions::TopicPartition;
use crate::coordinator::request::{
    ClientAssignor, ConsumerGroupHeartbeatRequest, InstallAssignmentRequest, InstalledMember, PrepareAssignmentResponse,
};
use crate::wire::error_code::ErrorCode;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mood {
    Prompt,
    /// It installs when its mood is better.
    Late,
    Wrong,
    Declines,
    /// Nothing is heard of it.
    Dead,
}

pub(super) fn mood() -> impl Strategy<Value = Mood> {
    prop_oneof![
        4 => Just(Mood::Prompt),
        2 => Just(Mood::Late),
        1 => Just(Mood::Wrong),
        1 => Just(Mood::Declines),
        1 => Just(Mood::Dead),
    ]
}

#[derive(Debug)]
pub(super) struct MoodyAssignor {
    pub(super) mood: Mood,
    heartbeat: Option<Ticket>,
    prepared: Option<PrepareAssignmentResponse>,
    /// How often it has placed.
    placed: usize,
}

impl MoodyAssignor {
    pub(super) const fn new() -> Self {
        Self {
            mood: Mood::Prompt,
            heartbeat: None,
            prepared: None,
            placed: 0,
        }
    }

    /// The shard was loaded anew: what it had asked for will not be answered.
    pub(super) fn forget(&mut self) {
        self.heartbeat = None;
    }

    /// It wants a new assignment.
    pub(super) fn ask(&mut self, test: &mut GroupTest) {
        let asks = ClientAssignor {
            reason: 1,
            ..assignor("lag")
        };
        self.heartbeat = Some(test.send_beat(ConsumerGroupHeartbeatRequest {
            client_assignors: Some(vec![asks]),
            ..beat_of("x", 1)
        }));
    }

    /// Does what is due.
    pub(super) fn pass(&mut self, test: &mut GroupTest) {
        if self.mood == Mood::Dead {
            return;
        }
        if self.mood == Mood::Prompt
            && let Some(prepared) = self.prepared.take()
        {
            self.install(test, &prepared);
        }
        let heartbeat = *self.heartbeat.get_or_insert_with(|| test.poll("x"));
        if !test.is_answered(heartbeat) {
            return;
        }
        self.heartbeat = None;
        let told = test.beat_reply(heartbeat);
        match told.error {
            ErrorCode::NONE if told.should_compute_assignment => self.compute(test),
            ErrorCode::NONE => {}
            _ => self.heartbeat = Some(test.send_beat(registration("x"))),
        }
    }

    fn compute(&mut self, test: &mut GroupTest) {
        let prepared = test.try_prepare("x", 1);
        if !prepared.error.is_none() {
            return;
        }
        match self.mood {
            Mood::Late => self.prepared = Some(prepared),
            _ => self.install(test, &prepared),
        }
    }

    fn install(&mut self, test: &mut GroupTest, prepared: &PrepareAssignmentResponse) {
        self.placed += 1;
        let install = install_of("x", 1, prepared, self.place(prepared));
        test.install(match self.mood {
            Mood::Declines => InstallAssignmentRequest {
                error: 1,
                members: Vec::new(),
                ..install
            },
            Mood::Wrong => InstallAssignmentRequest {
                members: Vec::new(),
                ..install
            },
            _ => install,
        });
    }

    fn place(&self, prepared: &PrepareAssignmentResponse) -> Vec<InstalledMember> {
        let member = |member_id| InstalledMember {
            member_id,
            partitions: Vec::new(),
            metadata_version: 0,
            metadata: bytes::Bytes::new(),
        };
        let ids = prepared.members.iter().map(|member| member.member_id.clone());
        let mut members: Vec<InstalledMember> = ids.map(member).collect();
        for topic in &prepared.topics {
            let topic_id = topic.topic_id;
            for partition in 0..topic.partitions {
                let number = usize::try_from(partition).expect("a count") * self.placed + self.placed;
                let place = number % members.len();
                members[place].partitions.push(TopicPartition { topic_id, partition });
            }
        }
        members
    }
}
