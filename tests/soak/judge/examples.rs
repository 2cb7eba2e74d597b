//! Stories that the judge has to find wrong, and such that it must not: told before each run, since a judge that finds nothing
//! proves nothing.

use std::collections::BTreeMap;

use super::{Judge, Time, Told};

/// What happens at which second, what the coordinator says at the end, and what has to be found.
struct Story {
    name: &'static str,
    told: Vec<(Time, Told)>,
    kept: i64,
    finds: &'static [&'static str],
}

/// Tells every story.
///
/// # Errors
/// Names the story whose judgement is wrong.
pub fn tell() -> Result<usize, String> {
    let stories = stories();
    for story in &stories {
        let mut judge = Judge::new(["g"]);
        for (second, told) in &story.told {
            judge.hear(second * 1_000_000, told.clone());
        }
        let kept = [("g".to_owned(), BTreeMap::from([("t-0".to_owned(), story.kept)]))];
        judge.finish(1_000_000_000, &kept.into_iter().collect());
        let found: Vec<_> = judge.take_broken().into_iter().map(|(_, what)| what).collect();
        let as_told =
            found.len() == story.finds.len() && found.iter().zip(story.finds).all(|(found, part)| found.contains(part));
        if !as_told {
            return Err(format!("{}: wanted {:?}, found {found:?}", story.name, story.finds));
        }
    }
    Ok(stories.len())
}

fn sent(offset: i64) -> Told {
    let partition = "t-0".to_owned();
    Told::Sent { partition, offset }
}

fn assigned(member: &str) -> Told {
    Told::Assigned {
        member: format!("g.{member}"),
        partitions: ["t-0".to_owned()].into(),
    }
}

fn revoked(member: &str, lost: bool) -> Told {
    Told::Revoked {
        member: format!("g.{member}"),
        partitions: ["t-0".to_owned()].into(),
        lost,
    }
}

fn read(member: &str, offset: i64) -> Told {
    Told::Read {
        member: format!("g.{member}"),
        partition: "t-0".to_owned(),
        offset,
    }
}

/// A commit that began at that second.
fn committed(member: &str, began: Time, offset: i64) -> Told {
    Told::Committed {
        member: format!("g.{member}"),
        began: began * 1_000_000,
        offsets: [("t-0".to_owned(), offset)].into(),
    }
}

fn removed(member: &str) -> Told {
    let member = format!("g.{member}");
    Told::Removed { member }
}

fn ended(member: &str) -> Told {
    let member = format!("g.{member}");
    Told::Ended { member }
}

/// `a` reads two records and commits the first; what comes then is the story.
fn story(name: &'static str, rest: Vec<(Time, Told)>, kept: i64, finds: &'static [&'static str]) -> Story {
    let mut told = vec![
        (1, sent(0)),
        (1, sent(1)),
        (2, assigned("a")),
        (3, read("a", 0)),
        (4, read("a", 1)),
        (6, committed("a", 5, 1)),
    ];
    told.extend(rest);
    Story {
        name,
        told,
        kept,
        finds,
    }
}

fn stories() -> Vec<Story> {
    let handed_over = |end: Told| {
        vec![
            (10, end),
            (11, assigned("b")),
            (12, read("b", 1)),
            (14, committed("b", 13, 2)),
        ]
    };
    let zombie = |rest: Vec<(Time, Told)>| {
        let mut told = vec![
            (9, removed("a")),
            (10, assigned("b")),
            (11, read("b", 1)),
            (13, committed("b", 12, 2)),
        ];
        told.extend(rest);
        told
    };
    vec![
        story("all is well", vec![(8, committed("a", 7, 2))], 2, &[]),
        story("a partition is handed over", handed_over(revoked("a", false)), 2, &[]),
        story("a member is killed", handed_over(ended("a")), 2, &[]),
        story(
            "a commit is lost at the end",
            vec![(8, committed("a", 7, 2))],
            1,
            &["2 was acknowledged"],
        ),
        story(
            "a commit is lost when the next one begins",
            vec![
                (10, revoked("a", false)),
                (11, assigned("b")),
                (12, read("b", 0)),
                (14, committed("b", 13, 2)),
            ],
            2,
            &["began to read t-0 at 0, and 1 was acknowledged"],
        ),
        story(
            "a commit goes back",
            vec![(8, committed("a", 7, 2)), (10, committed("a", 9, 1))],
            2,
            &["after 2"],
        ),
        story(
            "a record is skipped",
            vec![
                (7, sent(2)),
                (8, sent(3)),
                (9, read("a", 3)),
                (11, committed("a", 10, 4)),
            ],
            4,
            &["nobody has read 2", "1 records of t-0 were read by nobody"],
        ),
        story(
            "a record is not read",
            vec![(8, sent(2))],
            1,
            &["1 records of t-0 were read by nobody, the first is 2"],
        ),
        story(
            "two own it, one gives it up",
            vec![(10, assigned("b")), (12, revoked("a", false))],
            1,
            &["for 2000 ms"],
        ),
        story(
            "two own it to the end",
            vec![(10, assigned("b"))],
            1,
            &["owned by g.a and g.b"],
        ),
        story(
            "a member that was taken out hears of it late",
            zombie(vec![(20, revoked("a", true))]),
            2,
            &[],
        ),
        story(
            "one that was taken out gives up what it had",
            zombie(vec![(20, revoked("a", false))]),
            2,
            &[],
        ),
        story(
            "one that was taken out commits",
            zombie(vec![(16, committed("a", 15, 2)), (20, revoked("a", true))]),
            2,
            &["g.a was acknowledged a commit for t-0 2000 ms after another"],
        ),
        story(
            "a commit is answered late",
            zombie(vec![(15, committed("a", 8, 2)), (20, revoked("a", true))]),
            2,
            &[],
        ),
    ]
}
