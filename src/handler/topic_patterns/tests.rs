use std::time::Instant;

use super::search::{Failure, LENGTH_MAX, compile, search};
use super::*;
use crate::coordinator::topics::Topic;

/// Names that tell the patterns of the table apart.
const NAMES: [&str; 17] = [
    "a", "b", "A", "aa", "ab", "a.b", "a-b", "a_b", "1", "orders", "orders-2", "Z", "S", "k", "-", ".", "_",
];

/// What RE2/J 1.8 says, as Kafka 4.4.0 brings and calls it: each line a pattern, a tab, and the names that it matches, or
/// `refused`.
const RE2J: &str = include_str!("re2j.tsv");

fn matches(pattern: &str) -> Result<Vec<&'static str>, Failure> {
    let regex = compile(pattern)?;
    let names = NAMES.iter().copied().filter(|name| regex.is_match(name.as_bytes()));
    Ok(names.collect())
}

#[test]
fn patterns_mean_what_they_mean_to_kafkas_brokers() {
    let mut differ = Vec::new();
    for line in RE2J.lines() {
        let (pattern, expected) = line.split_once('\t').unwrap();
        let found = match matches(pattern) {
            Ok(names) => names.join(" "),
            Err(_) => "refused".to_owned(),
        };
        if found != expected {
            differ.push(format!("{pattern}: {found} instead of {expected}"));
        }
    }
    assert!(differ.is_empty(), "{differ:#?}");
}

#[test]
fn what_is_wrong_with_a_pattern_is_said() {
    for (pattern, problem) in [
        ("orders-*-+", "nothing"),
        ("a**", "nested repetition `*`"),
        ("*", "nothing before the repetition `*`"),
        ("a{2,1}", "repetition `{2,1}`; it counts up, and to 1000 at most"),
        ("(a", "missing closing )"),
        ("a)", "a closing ) too many"),
        ("[a", "missing closing ]"),
        ("[b-a]", "the range `b-a` ends before it begins"),
        ("[[:foo:]]", "there is no class `[:foo:]`"),
        (r"\p{Nope}", "there is no Unicode class `Nope`"),
        (r"\1", r"the escape `\1` is not supported"),
        ("(?=a)", "`(?=` is not supported"),
        ("(?<1-x>a)", "`1-x` is no name for a group"),
        ("a\\", "a backslash at the end"),
        (r"\x{110000}", r"the escape `\x` with `110000`"),
    ] {
        match compile(pattern) {
            Err(Failure::Invalid(said)) => assert_eq!(said, problem, "{pattern}"),
            Ok(_) => assert_eq!(problem, "nothing", "{pattern}"),
            Err(other) => panic!("{pattern}: {other}"),
        }
    }
}

#[test]
fn hostile_patterns_are_refused_before_they_cost_anything() {
    let deep = format!("{}a{}", "(".repeat(5_000), ")".repeat(5_000));
    let long = "a".repeat(LENGTH_MAX + 1);
    let classes = r"[\pL\pN\p{Greek}^-~]".repeat(800);
    let started = Instant::now();
    for pattern in [
        "((((a{100}){100}){100}){100})",
        "(((((((((.*)*)*)*)*)*)*)*){1000}){1000}",
        deep.as_str(),
        long.as_str(),
        "(?i)(?:.{1000}|.{999}){1000}",
    ] {
        let shown: String = pattern.chars().take(40).collect();
        assert!(matches!(compile(pattern), Err(Failure::Invalid(_))), "{shown}");
    }
    for harmless in [
        &*classes,
        "(?:(?:(?:(?:){1000}){1000}){1000}){1000}",
        "(?:(?:(?:a{0}){1000}){1000}){1000}",
    ] {
        assert!(
            compile(harmless).is_ok(),
            "sets stay small, and nothing does however often it is repeated"
        );
    }
    // Even without optimisation, on a busy machine.
    assert!(started.elapsed().as_secs() < 10, "{:?}", started.elapsed());
}

fn many(count: u32) -> Topics {
    let mut topics = Topics::default();
    for number in 0..count {
        let name = format!("team-{}.service.orders-{number:06}", number % 97);
        topics.insert(topic(&name));
    }
    topics
}

#[test]
fn a_hundred_thousand_topics_are_matched_in_order() {
    let topics = many(100_000);
    let found = search(r"team-(?:1|2)\.service\..*7", &topics).unwrap();
    assert_eq!(found.len(), 206);
    assert!(found.is_sorted());
}

#[test]
fn a_pattern_that_takes_too_long_is_given_up() {
    // Names without any order, and a machine that keeps count of all of it: no state comes twice.
    let mut state = 1_u64;
    let mut letter = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        char::from(b'a' + u8::try_from((state >> 33) % 26).unwrap())
    };
    let mut topics = Topics::default();
    for _ in 0..20_000 {
        let name: String = (0..200).map(|_| letter()).collect();
        topics.insert(topic(&name));
    }
    let slow = "(?:.{0,9}[a-m].{0,90}[n-z].{0,80}[e-t]){1,40}[^z].{0,50}[ab][cd][ef][gh][ij]";
    let started = Instant::now();
    assert_eq!(search(slow, &topics), Err(Failure::TooSlow));
    assert!(started.elapsed().as_secs() < 30, "{:?}", started.elapsed());
}

fn topic(name: &str) -> Topic {
    Topic {
        name: Text::from(name),
        id: uuid::Uuid::nil(),
        partitions: 1,
        racks: 0,
    }
}
