//! The coordinator's settings under Kafka's own names: which there are, and what they may be.

use std::collections::BTreeMap;

use crate::coordinator::settings::Settings;

/// One setting that Kafka's brokers have under the same name.
#[derive(Debug)]
pub struct Setting {
    pub name: &'static str,
    pub min: i64,
    pub max: i64,
    apply: fn(&mut Settings, i64),
}

const INT_MAX: i64 = i32::MAX as i64;

/// Every setting that may be given, with Kafka's own bounds (GroupCoordinatorConfig, OffsetConfig).
pub static SETTINGS: &[Setting] = &[
    Setting {
        name: "group.initial.rebalance.delay.ms",
        min: 0,
        max: INT_MAX,
        apply: |settings, value| settings.group_initial_rebalance_delay_ms = int(value),
    },
    Setting {
        name: "group.max.session.timeout.ms",
        min: 1,
        max: INT_MAX,
        apply: |settings, value| settings.group_max_session_timeout_ms = int(value),
    },
    Setting {
        name: "group.max.size",
        min: 1,
        max: INT_MAX,
        apply: |settings, value| settings.group_max_size = int(value),
    },
    Setting {
        name: "group.min.session.timeout.ms",
        min: 1,
        max: INT_MAX,
        apply: |settings, value| settings.group_min_session_timeout_ms = int(value),
    },
    Setting {
        name: "offset.metadata.max.bytes",
        min: 0,
        max: INT_MAX,
        apply: |settings, value| settings.offset_metadata_max_bytes = int(value),
    },
    Setting {
        name: "offsets.retention.check.interval.ms",
        min: 1,
        max: i64::MAX,
        apply: |settings, value| settings.offsets_retention_check_interval_ms = value,
    },
    Setting {
        name: "offsets.retention.minutes",
        min: 1,
        max: INT_MAX,
        apply: |settings, value| settings.offsets_retention_ms = value.saturating_mul(60_000),
    },
];

fn int(value: i64) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}

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

/// The settings in force: Kafka's defaults, then what the broker says, then what our configuration says. Values that cannot
/// be read (a broker of the future) are left out; ours were checked when they were loaded.
#[must_use]
pub fn in_force(broker: &BTreeMap<String, String>, ours: &BTreeMap<String, String>) -> Settings {
    let mut settings = Settings::default();
    for setting in SETTINGS {
        let value = ours
            .get(setting.name)
            .or_else(|| broker.get(setting.name))
            .and_then(|text| setting.parse(text).ok());
        if let Some(value) = value {
            (setting.apply)(&mut settings, value);
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn ours_win_over_the_brokers_and_those_over_the_defaults() {
        let broker = map(&[
            ("group.max.size", "7"),
            ("offsets.retention.minutes", "2"),
            ("group.min.session.timeout.ms", "soon"),
            ("log.dirs", "/tmp"),
        ]);
        let settings = in_force(&broker, &map(&[("group.max.size", "9")]));
        let expected = Settings {
            group_max_size: 9,
            offsets_retention_ms: 120_000,
            ..Settings::default()
        };
        assert_eq!(settings, expected);
    }

    #[test]
    fn values_out_of_kafkas_range_are_refused() {
        let size = find("group.max.size").unwrap();
        assert!(size.parse("0").unwrap_err().contains("1 to 2147483647"));
        assert!(size.parse("10s").unwrap_err().contains("not a whole number"));
        assert_eq!(size.parse("200"), Ok(200));
    }
}
