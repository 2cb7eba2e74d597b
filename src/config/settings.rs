//! The coordinator's settings under Kafka's own names: which there are, and what they may be.

/// One setting that Kafka's brokers have under the same name.
#[derive(Debug)]
pub struct Setting {
    pub name: &'static str,
    pub min: i64,
    pub max: i64,
}

const INT_MAX: i64 = i32::MAX as i64;

/// Every setting that may be given, with Kafka's own bounds (GroupCoordinatorConfig, OffsetConfig).
pub static SETTINGS: &[Setting] = &[
    Setting {
        name: "group.initial.rebalance.delay.ms",
        min: 0,
        max: INT_MAX,
    },
    Setting {
        name: "group.max.session.timeout.ms",
        min: 1,
        max: INT_MAX,
    },
    Setting {
        name: "group.max.size",
        min: 1,
        max: INT_MAX,
    },
    Setting {
        name: "group.min.session.timeout.ms",
        min: 1,
        max: INT_MAX,
    },
    Setting {
        name: "offset.metadata.max.bytes",
        min: 0,
        max: INT_MAX,
    },
    Setting {
        name: "offsets.retention.check.interval.ms",
        min: 1,
        max: i64::MAX,
    },
    Setting {
        name: "offsets.retention.minutes",
        min: 1,
        max: INT_MAX,
    },
    Setting {
        name: "offsets.topic.num.partitions",
        min: 1,
        max: INT_MAX,
    },
];

/// The setting of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.name == name)
}

impl Setting {
    /// Reads a value.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(&self, text: &str) -> Result<i64, String> {
        let value: i64 = text
            .parse()
            .map_err(|_| format!("`{text}` is not a whole number, and has no unit (Kafka's name carries it)"))?;
        if value < self.min || value > self.max {
            return Err(format!(
                "{value} is out of range; Kafka takes {} to {}",
                self.min, self.max
            ));
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::upstream::settings;

    /// Two tables, one truth: what may be given here is what the coordinator's settings are made of.
    #[test]
    fn what_may_be_given_is_what_the_coordinator_takes() {
        for value in [|setting: &Setting| setting.min, |setting: &Setting| setting.max] {
            let bounds = ["group.min.session.timeout.ms", "group.max.session.timeout.ms"];
            for setting in SETTINGS {
                let mut given = BTreeMap::from([(setting.name.to_owned(), value(setting).to_string())]);
                // The one bound must stay on its side of the other.
                for (name, other) in bounds.iter().zip(bounds.iter().rev()) {
                    if setting.name == *name {
                        given.insert((*other).to_owned(), value(setting).to_string());
                    }
                }
                assert_eq!(settings::build(&BTreeMap::new(), &given).err(), None, "{given:?}");
            }
        }
    }

    #[test]
    fn values_out_of_kafkas_range_are_refused() {
        let size = find("group.max.size").unwrap();
        assert!(size.parse("0").unwrap_err().contains("1 to 2147483647"));
        assert!(size.parse("10s").unwrap_err().contains("not a whole number"));
        assert_eq!(size.parse("200"), Ok(200));
    }
}
