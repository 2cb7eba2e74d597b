//! Groups to be assigned.

use std::collections::BTreeMap;

use convoke::external_assignor::document::{Member, Metadata, Question, Topic};
use proptest::prelude::*;
use proptest::sample::subsequence;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use uuid::Uuid;

const ZONES: [&str; 3] = ["a", "b", "c"];
const TOPICS: usize = 4;

/// Members `m-0…` that all subscribe to one topic and have nothing.
pub fn even_group(members: usize, partitions: i32) -> Question {
    let topic = topic(
        "topic",
        &vec![(None, Vec::new()); usize::try_from(partitions).expect("a count")],
    );
    let members = (0..members).map(|number| member(number, vec!["topic".to_owned()], None, None));
    question(members.collect(), vec![topic])
}

/// A group of up to 8 members and 4 topics, of which not everybody subscribes to everything.
pub fn any_group(runner: &mut TestRunner) -> Question {
    groups().new_tree(runner).expect("a group").current()
}

fn groups() -> impl Strategy<Value = Question> {
    let lag = prop_oneof![Just(None), Just(Some(0)), (0_i64..10_000).prop_map(Some)];
    let racks = subsequence(ZONES.to_vec(), 0..=2);
    let partitions = proptest::collection::vec((lag, racks), 0..12);
    let topics = proptest::collection::vec(partitions, 1..=TOPICS);
    let zone = proptest::option::of(proptest::sample::select(ZONES.to_vec()));
    let said = (proptest::collection::vec(any::<bool>(), TOPICS), any::<bool>(), zone);
    let members = proptest::collection::vec(said, 1..8);
    let owners = proptest::collection::vec(proptest::option::of(any::<proptest::sample::Index>()), TOPICS * 12);
    (topics, members, owners).prop_map(|(topics, members, owners)| {
        let topics: Vec<Topic> = topics
            .iter()
            .enumerate()
            .map(|(n, of)| topic(&format!("t{n}"), of))
            .collect();
        let members = members
            .into_iter()
            .enumerate()
            .map(|(number, (subscribes, is_big, zone))| {
                let names = topics.iter().zip(subscribes).filter(|(_, subscribes)| *subscribes);
                let names = names.map(|(topic, _)| topic.name.clone()).collect();
                member(number, names, is_big.then(|| format!("big-{number}")), zone)
            });
        let mut members: Vec<Member> = members.collect();
        // What was decided when perhaps other members were there and subscribed to other things.
        let partitions = topics
            .iter()
            .flat_map(|topic| (0..topic.partitions).map(|number| (&topic.name, number)));
        for ((topic, number), owner) in partitions.zip(owners) {
            if let Some(owner) = owner {
                let target = &mut owner.get_mut(&mut members).target;
                target.entry(topic.clone()).or_default().push(number);
            }
        }
        question(members, topics)
    })
}

fn question(members: Vec<Member>, topics: Vec<Topic>) -> Question {
    Question::new("group".to_owned(), 1, "assignor".to_owned(), members, topics)
}

fn member(number: usize, topics: Vec<String>, instance_id: Option<String>, zone: Option<&str>) -> Member {
    Member {
        id: format!("m-{number}"),
        instance_id,
        rack: zone.map(str::to_owned),
        topics,
        metadata: Metadata::default(),
        target: BTreeMap::new(),
    }
}

fn topic(name: &str, partitions: &[(Option<i64>, Vec<&str>)]) -> Topic {
    let owned = |racks: &Vec<&str>| racks.iter().map(|rack| (*rack).to_owned()).collect();
    Topic {
        name: name.to_owned(),
        id: Uuid::from_u128(name.bytes().fold(1, |id, byte| id * 256 + u128::from(byte))),
        partitions: i32::try_from(partitions.len()).expect("few partitions"),
        lag: partitions.iter().map(|(lag, _)| *lag).collect(),
        racks: partitions.iter().map(|(_, racks)| owned(racks)).collect(),
    }
}
