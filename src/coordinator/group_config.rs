//! What single groups were given for themselves (resource GROUP of IncrementalAlterConfigs): the settings that there are, and
//! those that are kept here because the upstream is too old to have them.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::record::{GroupConfigValue, Record};
use super::request::{AlterGroupConfigRequest, AlterGroupConfigResponse, DescribeGroupConfigResponse, Text};
use super::settings::Settings;

/// One of the settings that a group may have for itself (Kafka's `GroupConfig`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupSetting {
    SessionTimeout,
    HeartbeatInterval,
    AssignmentInterval,
}

impl GroupSetting {
    /// All there are, in the order in which Kafka 4.4 reads their values.
    pub const ALL: [Self; 3] = [Self::SessionTimeout, Self::HeartbeatInterval, Self::AssignmentInterval];
    /// In the order in which Kafka 4.4 holds them against the broker's bounds.
    const BOUNDED: [Self; 3] = [Self::HeartbeatInterval, Self::SessionTimeout, Self::AssignmentInterval];

    /// As a group has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SessionTimeout => "consumer.session.timeout.ms",
            Self::HeartbeatInterval => "consumer.heartbeat.interval.ms",
            Self::AssignmentInterval => "consumer.assignment.interval.ms",
        }
    }

    /// The broker's setting, which holds for groups that have none of their own.
    #[must_use]
    pub const fn broker_name(self) -> &'static str {
        match self {
            Self::SessionTimeout => "group.consumer.session.timeout.ms",
            Self::HeartbeatInterval => "group.consumer.heartbeat.interval.ms",
            Self::AssignmentInterval => "group.consumer.assignment.interval.ms",
        }
    }

    /// What no bound of a broker can allow less than.
    #[must_use]
    pub const fn least(self) -> i32 {
        match self {
            Self::SessionTimeout | Self::HeartbeatInterval => 1,
            Self::AssignmentInterval => 0,
        }
    }

    /// What groups have where nobody has set anything, in milliseconds: Kafka's defaults, but for the least time between two
    /// assignments, where Kafka has a second. This is enough to place members together that join together.
    #[must_use]
    pub const fn default_value(self) -> i32 {
        match self {
            Self::SessionTimeout => 45_000,
            Self::HeartbeatInterval => 5_000,
            Self::AssignmentInterval => 100,
        }
    }

    /// The setting of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|setting| setting.name() == name)
    }
}

/// A group's own settings; `None`: as the broker has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GroupConfig {
    /// `consumer.session.timeout.ms`
    pub session_timeout_ms: Option<i32>,
    /// `consumer.heartbeat.interval.ms`
    pub heartbeat_interval_ms: Option<i32>,
    /// `consumer.assignment.interval.ms`
    pub assignment_interval_ms: Option<i32>,
}

impl GroupConfig {
    #[must_use]
    pub const fn get(&self, setting: GroupSetting) -> Option<i32> {
        match setting {
            GroupSetting::SessionTimeout => self.session_timeout_ms,
            GroupSetting::HeartbeatInterval => self.heartbeat_interval_ms,
            GroupSetting::AssignmentInterval => self.assignment_interval_ms,
        }
    }

    pub const fn set(&mut self, setting: GroupSetting, value: Option<i32>) {
        match setting {
            GroupSetting::SessionTimeout => self.session_timeout_ms = value,
            GroupSetting::HeartbeatInterval => self.heartbeat_interval_ms = value,
            GroupSetting::AssignmentInterval => self.assignment_interval_ms = value,
        }
    }

    /// Whether the group has the broker's settings in everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The first setting that a broker would not take, with its bounds.
    fn out_of_bounds(&self, settings: &Settings) -> Option<(GroupSetting, RangeInclusive<i32>)> {
        GroupSetting::BOUNDED.into_iter().find_map(|setting| {
            let bounds = settings.bounds(setting);
            let value = self.get(setting)?;
            (!bounds.contains(&value)).then_some((setting, bounds))
        })
    }
}

/// The settings of a shard's groups that are kept here.
#[derive(Debug, Default)]
pub(super) struct GroupConfigs {
    kept: BTreeMap<Text, GroupConfig>,
    changed: bool,
}

impl GroupConfigs {
    /// Takes a record in, new or loaded.
    pub(super) fn apply(&mut self, record: &Record) {
        if let Record::GroupConfig { group_id, value } = record {
            match value {
                Some(value) => self.kept.insert(group_id.clone(), value.config),
                None => self.kept.remove(group_id),
            };
            self.changed = true;
        }
    }

    /// How many groups were given something.
    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }

    /// The settings to work with, where they are others than before: what was told, and what is kept here if that is to count.
    pub(super) fn take_over(&mut self, told: &Arc<Settings>) -> Option<Arc<Settings>> {
        std::mem::take(&mut self.changed).then(|| self.over(told))
    }

    /// What was told, and what is kept here if that is to count.
    pub(super) fn over(&self, told: &Arc<Settings>) -> Arc<Settings> {
        if !told.keeps_group_configs || self.kept.is_empty() {
            return Arc::clone(told);
        }
        let mut group_configs = BTreeMap::clone(&told.group_configs);
        group_configs.extend(self.kept.iter().map(|(group_id, config)| (group_id.clone(), *config)));
        Arc::new(Settings {
            group_configs: Arc::new(group_configs),
            ..Settings::clone(told)
        })
    }

    /// Changes a group's settings, or says what is wrong with them; the record is to be written.
    pub(super) fn alter(
        &self,
        request: &AlterGroupConfigRequest,
        settings: &Settings,
    ) -> (Option<Record>, AlterGroupConfigResponse) {
        let before = self.of(&request.group_id);
        let mut config = if request.replaces {
            GroupConfig::default()
        } else {
            before
        };
        for (setting, value) in &request.changes {
            config.set(*setting, *value);
        }
        if let Some((setting, bounds)) = config.out_of_bounds(settings) {
            return (None, AlterGroupConfigResponse::OutOfBounds { setting, bounds });
        }
        let record = (config != before && !request.validate_only).then(|| Record::GroupConfig {
            group_id: request.group_id.clone(),
            value: (!config.is_empty()).then_some(GroupConfigValue { config }),
        });
        (record, AlterGroupConfigResponse::Done)
    }

    /// A group's settings, and those that it has in their stead where it has none.
    pub(super) fn describe(&self, group_id: &str, settings: &Settings) -> DescribeGroupConfigResponse {
        let mut of_brokers = GroupConfig::default();
        for setting in GroupSetting::ALL {
            of_brokers.set(setting, settings.of_brokers(setting));
        }
        DescribeGroupConfigResponse {
            own: self.of(group_id),
            of_brokers,
        }
    }

    fn of(&self, group_id: &str) -> GroupConfig {
        self.kept.get(group_id).copied().unwrap_or_default()
    }
}
