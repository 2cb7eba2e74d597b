//! The coordinator's settings under Kafka's own names: which there are, and what they may be.

use crate::coordinator::assignor::Assignor;
use crate::coordinator::settings::MigrationPolicy;

/// One setting that Kafka's brokers have under the same name.
#[derive(Debug)]
pub struct Setting {
    pub name: &'static str,
    pub takes: Takes,
}

/// What a setting may be.
#[derive(Debug)]
pub enum Takes {
    /// A whole number in this range.
    Number { min: i64, max: i64 },
    /// One of these words, in capitals or not.
    Word(&'static [&'static str]),
    /// Some of these words, with commas between them.
    Words(&'static [&'static str]),
}

const INT_MAX: i64 = i32::MAX as i64;

const fn number(name: &'static str, min: i64, max: i64) -> Setting {
    let takes = Takes::Number { min, max };
    Setting { name, takes }
}

/// Every setting that may be given, with Kafka's own bounds (GroupCoordinatorConfig, OffsetConfig).
pub static SETTINGS: &[Setting] = &[
    Setting {
        name: "group.consumer.assignors",
        takes: Takes::Words(&Assignor::NAMES),
    },
    number("group.consumer.assignment.interval.ms", 0, INT_MAX),
    number("group.consumer.heartbeat.interval.ms", 1, INT_MAX),
    number("group.consumer.max.assignment.interval.ms", 0, INT_MAX),
    number("group.consumer.max.heartbeat.interval.ms", 1, INT_MAX),
    number("group.consumer.max.session.timeout.ms", 1, INT_MAX),
    number("group.consumer.max.size", 1, INT_MAX),
    Setting {
        name: "group.consumer.migration.policy",
        takes: Takes::Word(&MigrationPolicy::NAMES),
    },
    number("group.consumer.min.assignment.interval.ms", 0, INT_MAX),
    number("group.consumer.min.heartbeat.interval.ms", 1, INT_MAX),
    number("group.consumer.min.session.timeout.ms", 1, INT_MAX),
    number("group.consumer.regex.refresh.interval.ms", 10_000, INT_MAX),
    number("group.consumer.session.timeout.ms", 1, INT_MAX),
    Setting {
        name: "group.coordinator.rebalance.protocols",
        takes: Takes::Words(&["classic", "consumer", "share", "streams"]),
    },
    number("group.initial.rebalance.delay.ms", 0, INT_MAX),
    number("group.max.session.timeout.ms", 1, INT_MAX),
    number("group.max.size", 1, INT_MAX),
    number("group.min.session.timeout.ms", 1, INT_MAX),
    number("offset.metadata.max.bytes", 0, INT_MAX),
    number("offsets.commit.timeout.ms", 1, INT_MAX),
    number("offsets.retention.check.interval.ms", 1, i64::MAX),
    number("offsets.retention.minutes", 1, INT_MAX),
    number("offsets.topic.num.partitions", 1, INT_MAX),
];

/// The setting of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.name == name)
}

impl Setting {
    /// Reads a value; gives it as Kafka would write it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(&self, text: &str) -> Result<String, String> {
        match self.takes {
            Takes::Number { min, max } => {
                let value: i64 = text.parse().map_err(|_| {
                    format!("`{text}` is not a whole number, and has no unit (Kafka's name carries it)")
                })?;
                if value < min || value > max {
                    return Err(format!("{value} is out of range; Kafka takes {min} to {max}"));
                }
                Ok(value.to_string())
            }
            Takes::Word(words) => word(text, words).map(str::to_owned),
            Takes::Words(words) => {
                let given = text.split(',').map(|given| word(given.trim(), words));
                Ok(given.collect::<Result<Vec<_>, _>>()?.join(","))
            }
        }
    }
}

fn word(text: &str, words: &[&'static str]) -> Result<&'static str, String> {
    let found = words.iter().find(|word| word.eq_ignore_ascii_case(text));
    found
        .copied()
        .ok_or_else(|| format!("`{text}` is none of {}", words.join(", ")))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::upstream::settings;

    /// What may be given here is what the coordinator's settings are made of.
    #[test]
    fn what_may_be_given_is_what_the_coordinator_takes() {
        for setting in SETTINGS {
            let values = match setting.takes {
                Takes::Number { min, max } => vec![min.to_string(), max.to_string()],
                Takes::Word(words) | Takes::Words(words) => words.iter().map(|word| (*word).to_owned()).collect(),
            };
            for value in values {
                let given = BTreeMap::from([(setting.name.to_owned(), value)]);
                let problems = settings::build(&BTreeMap::new(), &given).err().unwrap_or_default();
                // A bound has to stay on its side of others, whose own values hold here.
                let others: Vec<_> = problems
                    .iter()
                    .filter(|problem| !problem.contains(" is above "))
                    .collect();
                assert!(others.is_empty(), "{given:?}: {others:?}");
            }
        }
    }

    #[test]
    fn values_out_of_kafkas_range_are_refused() {
        let size = find("group.max.size").unwrap();
        assert!(size.parse("0").unwrap_err().contains("1 to 2147483647"));
        assert!(size.parse("10s").unwrap_err().contains("not a whole number"));
        assert_eq!(size.parse("200"), Ok("200".to_owned()));
    }

    #[test]
    fn words_are_those_that_there_are() {
        let assignors = find("group.consumer.assignors").unwrap();
        assert_eq!(assignors.parse("range, UNIFORM"), Ok("range,uniform".to_owned()));
        assert_eq!(
            assignors.parse("range,sticky").unwrap_err(),
            "`sticky` is none of uniform, range"
        );
        assert!(assignors.parse("").is_err());
        let policy = find("group.consumer.migration.policy").unwrap();
        assert_eq!(policy.parse("UPGRADE"), Ok("upgrade".to_owned()));
    }
}
