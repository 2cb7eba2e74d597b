//! Commits, deletions, expiry and members in any order: what a restart shows is what was shown before it.

use proptest::prelude::*;

use super::group_test::GroupTest;
use super::requests::{commit_of, commit_topic, fetch_of, old_join};
use crate::coordinator::input::{DeletedTopic, Input};
use crate::coordinator::request::{
    OffsetCommitPartition, OffsetCommitRequest, OffsetDeleteRequest, OffsetFetchRequest, OffsetFetchResponse, Request,
    Response, Text,
};
use crate::coordinator::settings::Settings;
use crate::wire::error_code::ErrorCode;

const GROUPS: [&str; 2] = ["g", "h"];
const TOPICS: [&str; 2] = ["t", "u"];
const MINUTE_MS: u64 = 60_000;

#[derive(Debug, Clone)]
enum Act {
    /// Group, topic, the topic's incarnation (0: unknown), partition, offset, and the retention if it names one, in minutes.
    Commit(usize, usize, u128, i32, i64, Option<i64>),
    DeleteOffsets(usize, usize, i32),
    DeleteGroup(usize),
    DeleteTopic(usize, u128),
    Join,
    Leave,
    Pass(u64),
}

fn act() -> impl Strategy<Value = Act> {
    let (group, topic) = (0..GROUPS.len(), 0..TOPICS.len());
    let retention = prop_oneof![3 => Just(None), 1 => (0..90_i64).prop_map(Some)];
    prop_oneof![
        8 => (group.clone(), topic.clone(), 0..3_u128, 0..3_i32, 0..1_000_i64, retention)
            .prop_map(|(group, topic, id, partition, offset, retention)| {
                Act::Commit(group, topic, id, partition, offset, retention)
            }),
        2 => (group.clone(), topic.clone(), 0..3_i32).prop_map(|(group, topic, partition)| {
            Act::DeleteOffsets(group, topic, partition)
        }),
        1 => group.prop_map(Act::DeleteGroup),
        1 => (topic, 1..3_u128).prop_map(|(topic, id)| Act::DeleteTopic(topic, id)),
        1 => Just(Act::Join),
        1 => Just(Act::Leave),
        3 => (1..40_u64).prop_map(Act::Pass),
    ]
}

struct World {
    test: GroupTest,
    /// The member of the group "g", if it has one.
    member: Option<Text>,
}

impl World {
    fn new() -> Self {
        Self {
            test: GroupTest::with_settings(Settings {
                offsets_retention_ms: 3_600_000,
                offsets_retention_check_interval_ms: 600_000,
                group_initial_rebalance_delay_ms: 0,
                ..Settings::default()
            }),
            member: None,
        }
    }

    fn do_one(&mut self, act: Act) {
        match act {
            Act::Commit(group, topic, id, partition, offset, retention) => {
                let mut topic = commit_topic(TOPICS[topic], offset);
                topic.topic_id = uuid::Uuid::from_u128(id);
                topic.partitions = vec![OffsetCommitPartition {
                    partition,
                    leader_epoch: i32::try_from(offset).expect("small"),
                    ..topic.partitions[0].clone()
                }];
                self.test.send(Request::OffsetCommit(OffsetCommitRequest {
                    group_id: GROUPS[group].into(),
                    retention_time_ms: retention.map(|minutes| minutes * 60_000),
                    topics: vec![topic],
                    ..commit_of(offset)
                }));
            }
            Act::DeleteOffsets(group, topic, partition) => {
                self.test.send(Request::OffsetDelete(OffsetDeleteRequest {
                    group_id: GROUPS[group].into(),
                    topics: vec![(TOPICS[topic].into(), vec![partition])],
                }));
            }
            Act::DeleteGroup(group) => {
                let group_id = GROUPS[group].into();
                self.test.send(Request::DeleteGroup { group_id });
            }
            Act::DeleteTopic(topic, id) => self.test.input(Input::TopicsDeleted(vec![DeletedTopic {
                name: TOPICS[topic].into(),
                id: uuid::Uuid::from_u128(id),
            }])),
            Act::Join if self.member.is_none() => {
                let ticket = self.test.join(old_join());
                let joined = self.test.joined(ticket);
                let id = joined.member_id;
                self.test.sync_all(std::slice::from_ref(&id), joined.generation_id);
                self.member = Some(id);
            }
            Act::Join => {}
            Act::Leave => {
                if let Some(id) = self.member.take() {
                    self.test.leave_group(&[(&id, None)]);
                }
            }
            Act::Pass(minutes) => {
                // Its session ends meanwhile.
                self.member = None;
                self.test.advance_ms(minutes * MINUTE_MS);
            }
        }
    }
}

/// Every offset of every group.
fn dump(test: &mut GroupTest) -> Vec<OffsetFetchResponse> {
    let all = |group: &str| OffsetFetchRequest {
        group_id: group.into(),
        topics: None,
        ..fetch_of("")
    };
    let requests = GROUPS.map(|group| Request::OffsetFetch(all(group)));
    let answers = requests.map(|request| match test.call(request) {
        Response::OffsetFetch(response) => {
            assert_eq!(response.error, ErrorCode::NONE);
            response
        }
        other => panic!("not the answer to a fetch: {other:?}"),
    });
    answers.into()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_restart_shows_the_offsets_that_were_shown_before_it(acts in proptest::collection::vec(act(), 1..40)) {
        let mut world = World::new();
        for act in acts {
            world.do_one(act);
            let before = dump(&mut world.test);
            prop_assert_eq!(dump(&mut world.test.restarted()), before);
        }
    }
}
