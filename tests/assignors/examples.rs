//! The assignors of `config/assignors/`, asked as `convoke assignor` asks them.
//!
//! Whatever group they are asked for, they give each partition to one member that subscribes to it, and on their own result
//! they change nothing; beside that each keeps its own promise.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use convoke::external_assignor::command::{CommandConfig, UserCommand};
use convoke::external_assignor::document::{Answer, Assigned, Question};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use uuid::Uuid;

use crate::groups::{any_group, even_group};

const LIMIT: Duration = Duration::from_secs(60);
/// How many groups each is asked for.
const GROUPS: usize = 150;

/// An example and its arguments.
fn example(script: &str, arguments: &[&str], is_stream: bool) -> UserCommand {
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("config/assignors")
        .join(script);
    let arguments = arguments.iter().map(Into::into);
    UserCommand::new(CommandConfig {
        program: "python3".into(),
        // Nothing is written beside the examples.
        arguments: ["-B".into(), script.into_os_string()]
            .into_iter()
            .chain(arguments)
            .collect(),
        is_stream,
        time_limit: LIMIT,
        parallel: 1,
    })
}

/// Who is to have what, by member.
type Assignment = BTreeMap<String, BTreeMap<String, Vec<i32>>>;

async fn ask(command: &UserCommand, question: &Question) -> Assignment {
    let written = serde_json::to_vec(question).expect("a question can be written");
    let answer = command
        .ask(&question.group, written)
        .await
        .expect("the example answers");
    let assigned = match question.read_answer(&answer).expect("the answer is understood") {
        Answer::Assigned(assigned) => assigned,
        Answer::Failed(reason) => panic!("no assignment: {reason}"),
    };
    let names: BTreeMap<Uuid, &str> = question.topics.iter().map(|topic| (topic.id, &*topic.name)).collect();
    let by_name = |Assigned {
                       member_id, partitions, ..
                   }: Assigned| {
        let partitions = partitions
            .into_iter()
            .map(|(id, numbers)| (names[&id].to_owned(), numbers));
        (member_id, partitions.collect())
    };
    assigned.into_iter().map(by_name).collect()
}

fn assert_sound(question: &Question, assignment: &Assignment) {
    let mut owners = BTreeMap::new();
    for (member_id, topics) in assignment {
        let member = question.members.iter().find(|member| member.id == *member_id);
        let member = member.unwrap_or_else(|| panic!("{member_id} is no member"));
        for (topic, numbers) in topics {
            assert!(
                member.topics.contains(topic),
                "{member_id} does not subscribe to {topic}"
            );
            for number in numbers {
                assert_eq!(
                    owners.insert((topic, *number), member_id),
                    None,
                    "{topic}-{number} has two owners"
                );
            }
        }
    }
    for topic in &question.topics {
        let is_wanted = question
            .members
            .iter()
            .any(|member| member.topics.contains(&topic.name));
        for number in (0..topic.partitions).filter(|_| is_wanted) {
            assert!(
                owners.contains_key(&(&topic.name, number)),
                "nobody has {}-{number}",
                topic.name
            );
        }
    }
}

/// The same group after the assignment was installed.
fn installed(question: &Question, assignment: &Assignment) -> Question {
    let mut question = question.clone();
    for member in &mut question.members {
        member.target = assignment.get(&member.id).cloned().unwrap_or_default();
    }
    question
}

fn without_nothing(assignment: &Assignment) -> Assignment {
    let mut assignment = assignment.clone();
    assignment.retain(|_, topics| !topics.is_empty());
    assignment
}

/// Groups of any kind, the same in each run.
fn questions() -> Vec<Question> {
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    (0..GROUPS).map(|_| any_group(&mut runner)).collect()
}

async fn assert_sound_and_settled(command: &UserCommand) {
    for question in questions() {
        let assignment = ask(command, &question).await;
        assert_sound(&question, &assignment);
        let again = ask(command, &installed(&question, &assignment)).await;
        assert_eq!(without_nothing(&again), without_nothing(&assignment), "{question:?}");
    }
}

/// How many partitions each member has.
fn counts(assignment: &Assignment) -> BTreeMap<&str, usize> {
    let count = |topics: &BTreeMap<String, Vec<i32>>| topics.values().map(Vec::len).sum();
    assignment
        .iter()
        .map(|(member_id, topics)| (&**member_id, count(topics)))
        .collect()
}

#[tokio::test]
async fn lag_balanced_is_sound_and_comes_to_rest() {
    assert_sound_and_settled(&example("lag_balanced.py", &[], true)).await;
}

#[tokio::test]
async fn capacity_weighted_is_sound_and_comes_to_rest() {
    assert_sound_and_settled(&example("capacity_weighted.py", &["--capacity", "big-*=4"], true)).await;
}

#[tokio::test]
async fn zone_affine_is_sound_and_comes_to_rest() {
    assert_sound_and_settled(&example("zone_affine.py", &[], true)).await;
}

#[tokio::test]
async fn lag_balanced_parts_the_lag_and_not_the_number_of_partitions() {
    let mut question = even_group(2, 5);
    question.topics[0].lag = vec![Some(8_000), Some(2_000), Some(2_000), Some(2_000), Some(2_000)];
    let assignment = ask(&example("lag_balanced.py", &[], false), &question).await;
    let sizes: Vec<usize> = counts(&assignment).into_values().collect();
    assert!(sizes == [1, 4] || sizes == [4, 1], "{assignment:?}");
}

#[tokio::test]
async fn lag_balanced_moves_nothing_for_a_little_more_lag() {
    let mut question = even_group(2, 4);
    question.topics[0].lag = vec![Some(1_100), Some(1_000), Some(1_000), Some(1_000)];
    question.members[0].target = BTreeMap::from([("topic".to_owned(), vec![0, 1])]);
    question.members[1].target = BTreeMap::from([("topic".to_owned(), vec![2, 3])]);
    let assignment = ask(&example("lag_balanced.py", &[], false), &question).await;
    assert_eq!(installed(&question, &assignment), question);
}

#[tokio::test]
async fn capacity_weighted_gives_four_times_as_much_to_who_can_do_four_times_as_much() {
    let mut question = even_group(3, 12);
    question.members[0].instance_id = Some("big-1".to_owned());
    let command = example("capacity_weighted.py", &["--capacity", "big-*=4"], false);
    let assignment = ask(&command, &question).await;
    assert_eq!(
        counts(&assignment),
        BTreeMap::from([("m-0", 8), ("m-1", 2), ("m-2", 2)])
    );
    // What a client says of itself counts before what the flags say.
    question.members[1].metadata.data = br#"{"capacity": 4}"#.to_vec();
    question.members[0].metadata.data = br#"{"capacity": 1}"#.to_vec();
    let assignment = ask(&command, &question).await;
    assert_eq!(
        counts(&assignment),
        BTreeMap::from([("m-0", 2), ("m-1", 8), ("m-2", 2)])
    );
}

#[tokio::test]
async fn zone_affine_lets_members_read_from_their_zone_and_stays_balanced() {
    let mut question = even_group(3, 9);
    let zones = ["a", "b", "c"].map(str::to_owned);
    for (member, zone) in question.members.iter_mut().zip(&zones) {
        member.rack = Some(zone.clone());
    }
    question.topics[0].racks = (0..9).map(|number| vec![zones[number % 3].clone()]).collect();
    // As an assignor that knows of no zones left it.
    for (member, first) in question.members.iter_mut().zip([0, 3, 6]) {
        member.target = BTreeMap::from([("topic".to_owned(), (first..first + 3).collect())]);
    }
    let assignment = ask(&example("zone_affine.py", &[], false), &question).await;
    for (number, member) in question.members.iter().enumerate() {
        let first = i32::try_from(number).expect("few members");
        assert_eq!(assignment[&member.id]["topic"], [first, first + 3, first + 6]);
    }
}

#[tokio::test]
async fn each_example_explains_itself() {
    for script in ["lag_balanced.py", "capacity_weighted.py", "zone_affine.py"] {
        let help = example(script, &["--help"], false)
            .ask("g", Vec::new())
            .await
            .expect("help");
        let help = String::from_utf8(help).expect("text");
        assert!(
            help.contains("convoke assignor --bootstrap") && help.contains(script),
            "{help}"
        );
    }
}

#[tokio::test]
async fn a_wrong_capacity_is_refused_with_how_to_write_it() {
    let command = example("capacity_weighted.py", &["--capacity", "big"], false);
    let error = command.ask("g", b"{}".to_vec()).await.expect_err("it does not start");
    assert_eq!(error.to_string(), "ended with exit status: 2");
}
