//! Claims, and what is withheld.

use bytes::{BufMut, BytesMut};
use uuid::Uuid;

use super::*;
use crate::coordinator::consumer_protocol::write_assignment;
use crate::coordinator::topics::Topic;

const GOLDEN: &str = include_str!("../../../../tests/golden/classic_assignments.txt");

fn list(text: &str, separator: char) -> impl Iterator<Item = &str> {
    text.split(separator).filter(|item| !item.is_empty() && *item != "-")
}

fn topics(text: &str) -> Topics {
    let mut topics = Topics::default();
    for topic in list(text, ',') {
        let (name, partitions) = topic.split_once('=').expect("a size");
        topics.insert(Topic {
            name: name.into(),
            id: Uuid::nil(),
            partitions: partitions.parse().expect("a number"),
            racks: 0,
        });
    }
    topics
}

fn unhex(text: &str) -> Vec<u8> {
    let bytes = (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16));
    bytes.collect::<Result<_, _>>().expect("hex")
}

/// Partitions as the golden file has them: `t=0+1,u=2`.
fn named(text: &str) -> NamedPartitions {
    let topics = list(text, ',').map(|topic| topic.split_once('=').expect("partitions"));
    topics
        .map(|(name, numbers)| {
            (
                name.into(),
                list(numbers, '+')
                    .map(|number| number.parse().expect("a number"))
                    .collect(),
            )
        })
        .collect()
}

fn put_text(out: &mut BytesMut, text: &str) {
    out.put_i16(i16::try_from(text.len()).expect("short"));
    out.put_slice(text.as_bytes());
}

fn put_partitions(out: &mut BytesMut, partitions: &NamedPartitions) {
    out.put_i32(i32::try_from(partitions.len()).expect("few"));
    for (topic, numbers) in partitions {
        put_text(out, topic);
        out.put_i32(i32::try_from(numbers.len()).expect("few"));
        numbers.iter().for_each(|number| out.put_i32(*number));
    }
}

/// A subscription of v2, or of v0 where it says nothing of what is owned.
fn metadata(topics: &[&str], user_data: &[u8], owned: Option<(&str, i32)>) -> Bytes {
    let mut out = BytesMut::new();
    out.put_i16(if owned.is_some() { 2 } else { 0 });
    out.put_i32(i32::try_from(topics.len()).expect("few"));
    topics.iter().for_each(|topic| put_text(&mut out, topic));
    out.put_i32(i32::try_from(user_data.len()).expect("short"));
    out.put_slice(user_data);
    if let Some((owned, generation)) = owned {
        put_partitions(&mut out, &named(owned));
        out.put_i32(generation);
    }
    out.freeze()
}

fn applicant(id: &str, metadata: Bytes) -> Applicant {
    Applicant {
        id: id.into(),
        instance_id: None,
        metadata,
        last: Bytes::new(),
        has_joined: true,
        has_former: false,
    }
}

/// What everybody is told, as text, and how many partitions are withheld.
fn told(draft: &Draft, assignor: ClassicAssignor) -> (Vec<String>, usize) {
    let targets = assignor.assign(&draft.group).expect("all sizes are known");
    let plan = draft.finish(&targets, |_| false);
    let text = |bytes: &Bytes| {
        let topics = read_assignment(bytes)
            .expect("readable")
            .partitions
            .into_iter()
            .map(|(topic, numbers)| {
                let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
                format!("{topic}={}", numbers.join("+"))
            });
        topics.collect::<Vec<_>>().join(",")
    };
    (plan.assignments.values().map(text).collect(), plan.withheld)
}

const COOPERATIVE: ClassicAssignor = ClassicAssignor::CooperativeSticky;
const STICKY: ClassicAssignor = ClassicAssignor::Sticky;

fn draft(protocol: ClassicAssignor, members: Vec<Applicant>) -> Draft {
    Draft::new(protocol, members, 4, &topics("t=6,u=2")).expect("readable")
}

#[test]
fn as_many_partitions_wait_for_their_owners_as_with_kafkas_own_class() {
    let mut compared = 0;
    for line in GOLDEN.lines().filter(|line| line.starts_with("cooperative-sticky ")) {
        let [_, sizes, members, count] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let members = list(members, ';').map(|member| {
            let [id, subscribed, owned] = member.split(':').collect::<Vec<_>>()[..] else {
                panic!("{line}");
            };
            let subscribed: Vec<&str> = list(subscribed, ',').collect();
            applicant(id, metadata(&subscribed, &[], Some((owned, 4))))
        });
        let draft = Draft::new(COOPERATIVE, members.collect(), 4, &topics(sizes)).expect("readable");
        let targets = COOPERATIVE.assign(&draft.group).expect("all sizes are known");
        let plan = draft.finish(&targets, |_| true);
        assert_eq!(plan.partitions.to_string(), count, "{line}");
        assert_eq!(plan.moved, plan.withheld, "{line}");
        compared += 1;
    }
    assert_eq!(compared, 150);
}

#[test]
fn what_moves_is_nobodys_until_its_owner_has_given_it_up() {
    let first = applicant("a", metadata(&["t"], &[], Some(("t=0+1+2+3+4+5", 4))));
    let newcomer = applicant("b", metadata(&["t"], &[], Some(("", -1))));
    let round_one = draft(COOPERATIVE, vec![newcomer, first]);
    assert_eq!(
        told(&round_one, COOPERATIVE),
        (vec!["t=0+1+2".into(), String::new()], 3)
    );
    let first = applicant("a", metadata(&["t"], &[], Some(("t=0+1+2", 5))));
    let newcomer = applicant("b", metadata(&["t"], &[], Some(("", 5))));
    let round_two = draft(COOPERATIVE, vec![first, newcomer]);
    assert_eq!(
        told(&round_two, COOPERATIVE),
        (vec!["t=0+1+2".into(), "t=3+4+5".into()], 0)
    );
}

#[test]
fn another_assignor_under_a_cooperative_protocol_withholds_as_well() {
    let first = applicant("a", metadata(&["t"], &[], Some(("t=3+4+5", 4))));
    let second = applicant("b", metadata(&["t"], &[], Some(("t=0+1+2", 4))));
    let draft = draft(COOPERATIVE, vec![first, second]);
    assert_eq!(
        told(&draft, ClassicAssignor::Range),
        (vec![String::new(), String::new()], 6)
    );
}

#[test]
fn under_an_eager_protocol_nothing_is_withheld_and_the_coordinators_memory_makes_it_sticky() {
    let remembered = |id: &str, numbers: &[i32]| Applicant {
        last: write_assignment(0, &vec![("t".into(), numbers.to_vec())]),
        ..applicant(id, metadata(&["t"], &[], None))
    };
    let members = vec![remembered("a", &[1, 4]), remembered("b", &[0, 2, 3, 5])];
    let draft = draft(STICKY, members);
    assert_eq!(told(&draft, STICKY), (vec!["t=1+4+5".into(), "t=0+2+3".into()], 0));
}

#[test]
fn a_member_that_is_new_here_keeps_what_its_own_memory_says_unless_the_coordinator_knows_better() {
    let user_data = |owned: &str, generation: i32| {
        let mut out = BytesMut::new();
        put_partitions(&mut out, &named(owned));
        out.put_i32(generation);
        out
    };
    let known = Applicant {
        last: write_assignment(0, &vec![("t".into(), vec![0, 1, 2])]),
        ..applicant("a", metadata(&["t"], &[], None))
    };
    let newcomer = applicant("b", metadata(&["t"], &user_data("t=2+3+5", 3), None));
    let draft = draft(STICKY, vec![known, newcomer]);
    assert_eq!(told(&draft, STICKY), (vec!["t=0+1+2".into(), "t=3+4+5".into()], 0));
}

#[test]
fn a_silent_static_member_holds_what_it_was_given() {
    let silent = Applicant {
        instance_id: Some("i".into()),
        has_joined: false,
        last: write_assignment(2, &vec![("t".into(), vec![0, 1, 2, 3, 4, 5])]),
        ..applicant("a", metadata(&["t"], &[], Some(("", -1))))
    };
    let newcomer = applicant("b", metadata(&["t"], &[], Some(("", -1))));
    let draft = draft(COOPERATIVE, vec![silent, newcomer]);
    assert_eq!(told(&draft, COOPERATIVE), (vec!["t=0+1+2".into(), String::new()], 3));
}

#[test]
fn of_what_two_members_claim_each_has_to_give_up_what_it_does_not_get() {
    let first = applicant("a", metadata(&["t", "u"], &[], Some(("t=0+1+2,u=0", 4))));
    let second = applicant("b", metadata(&["t", "u"], &[], Some(("t=2+3+4+5,u=0+1", 3))));
    let draft = draft(COOPERATIVE, vec![first, second]);
    let (told, withheld) = told(&draft, COOPERATIVE);
    assert_eq!(told, ["t=0+1+2,u=0", "t=3+4+5,u=1"]);
    assert_eq!(withheld, 0);
}

#[test]
fn topics_that_do_not_exist_are_left_out_and_partitions_that_make_no_sense_ignored() {
    let member = applicant("a", metadata(&["t", "gone", "u"], &[], Some(("t=-1+7,gone=0", 4))));
    let draft = draft(COOPERATIVE, vec![member]);
    assert_eq!(told(&draft, COOPERATIVE), (vec!["t=0+1+2+3+4+5,u=0+1".into()], 0));
}

#[test]
fn metadata_that_cannot_be_read_names_its_member() {
    let members = vec![
        applicant("a", metadata(&["t"], &[], None)),
        applicant("b", Bytes::from_static(b"?")),
    ];
    let refused = Draft::new(STICKY, members, 4, &topics("t=6")).expect_err("no subscription");
    assert_eq!(refused, Unreadable("b".into()));
}

#[test]
fn subscriptions_and_user_data_are_read_as_kafkas_clients_write_them() {
    let mut read = 0;
    for line in GOLDEN.lines() {
        let parts: Vec<&str> = line.split(' ').collect();
        match parts[..] {
            ["subscription", version, topics, owned, generation, rack, hex] => {
                let bytes = unhex(hex);
                let said = consumer_protocol::read_subscription(&bytes).expect("readable");
                assert_eq!(said.version.to_string(), version);
                assert_eq!(said.topics, list(topics, ',').map(Text::from).collect::<Vec<_>>());
                assert_eq!(said.user_data, [1, 2, 3]);
                assert_eq!(said.owned, named(owned));
                assert_eq!(said.generation, generation.parse().ok());
                assert_eq!(said.rack_id.as_deref(), Some(rack).filter(|rack| *rack != "-"));
            }
            ["sticky", owned, generation, hex] => {
                let bytes = unhex(hex);
                let (mut previous, told) = read_sticky_user_data(&bytes).expect("readable");
                previous.sort_unstable();
                assert_eq!((previous, told), (named(owned), generation.parse().ok()));
            }
            ["cooperative", _, generation, hex] => {
                let bytes = unhex(hex);
                assert_eq!(read_cooperative_user_data(&bytes), generation.parse().ok());
            }
            _ => continue,
        }
        read += 1;
    }
    assert_eq!(read, 6);
}
