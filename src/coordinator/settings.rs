//! The coordinator's settings, under Kafka's own names.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::assignor::{Assignor, ClassicAssignor};
use super::group_config::{GroupConfig, GroupSetting};
use super::group_patterns::GroupPatterns;
use super::request::Text;

/// Values of the `group.*` and `offsets.*` broker settings, and the limits of the core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// `group.min.session.timeout.ms`
    pub group_min_session_timeout_ms: i32,
    /// `group.max.session.timeout.ms`
    pub group_max_session_timeout_ms: i32,
    /// `group.initial.rebalance.delay.ms`
    pub group_initial_rebalance_delay_ms: i32,
    /// `group.max.size`
    pub group_max_size: i32,
    /// Whether there are consumer groups: `group.coordinator.rebalance.protocols` names them, or nobody has set it.
    pub consumer_groups: bool,
    /// `group.consumer.session.timeout.ms`
    pub group_consumer_session_timeout_ms: i32,
    /// `group.consumer.min.session.timeout.ms`: what a group's own value may be at least
    pub group_consumer_min_session_timeout_ms: i32,
    /// `group.consumer.max.session.timeout.ms`
    pub group_consumer_max_session_timeout_ms: i32,
    /// `group.consumer.heartbeat.interval.ms`
    pub group_consumer_heartbeat_interval_ms: i32,
    /// `group.consumer.min.heartbeat.interval.ms`
    pub group_consumer_min_heartbeat_interval_ms: i32,
    /// `group.consumer.max.heartbeat.interval.ms`
    pub group_consumer_max_heartbeat_interval_ms: i32,
    /// `group.consumer.max.size`
    pub group_consumer_max_size: i32,
    /// `group.consumer.assignors`, those that there are here; the first is the default. Never empty.
    pub group_consumer_assignors: Vec<Text>,
    /// `group.consumer.migration.policy`
    pub group_consumer_migration_policy: MigrationPolicy,
    /// `group.consumer.regex.refresh.interval.ms`
    pub group_consumer_regex_refresh_interval_ms: i32,
    /// `group.consumer.assignment.interval.ms` (KIP-1263); `None` where nobody has set it.
    pub group_consumer_assignment_interval_ms: Option<i32>,
    /// `group.consumer.min.assignment.interval.ms`
    pub group_consumer_min_assignment_interval_ms: i32,
    /// `group.consumer.max.assignment.interval.ms`
    pub group_consumer_max_assignment_interval_ms: i32,
    /// The rules by which groups may be, or are to be, assigned by a client-side assignor. Ours.
    pub external_assignors: Arc<[ExternalAssignorRule]>,
    /// `limits.assignor_metadata_max`: bytes of metadata that a client-side assignor may have for one member. Ours.
    pub assignor_metadata_max_bytes: usize,
    /// Bytes of metadata that it may have for all members of a group. Ours.
    pub assignor_metadata_group_max_bytes: usize,
    /// The settings of single groups; see the methods for what holds in the end.
    pub group_configs: Arc<BTreeMap<Text, GroupConfig>>,
    /// Classic groups of consumers that are assigned for here; the first rule that means a group holds.
    pub coordinator_assigned: Arc<[ClassicAssignmentRule]>,
    /// Whether the settings of single groups that are kept here count, since the upstream is too old to have any.
    pub keeps_group_configs: bool,
    /// `offset.metadata.max.bytes`, compared with the UTF-16 length as Kafka does
    pub offset_metadata_max_bytes: i32,
    /// `offsets.commit.timeout.ms`: how long any reply waits for the store
    pub offsets_commit_timeout_ms: i32,
    /// `offsets.retention.minutes`, here in milliseconds
    pub offsets_retention_ms: i64,
    /// `offsets.retention.check.interval.ms`
    pub offsets_retention_check_interval_ms: i64,
}

/// One entry of `assignors`: groups for which an assignor's name is known before anybody has registered it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalAssignorRule {
    pub name: Text,
    pub groups: GroupPatterns,
    /// Used for these groups whatever their members ask for.
    pub always: bool,
}

/// Which classic groups of consumers have no client as their leader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassicAssignmentRule {
    pub groups: GroupPatterns,
    /// One of [`ClassicAssignor`], or an external assignor's name; `None`: the one that the members agree on, as their protocol.
    pub assignor: Option<Text>,
    /// Takes the place of an external assignor that does not deliver. `None`: the one that the members agree on.
    pub fallback: Option<ClassicAssignor>,
}

impl ClassicAssignmentRule {
    /// The external assignor that is to assign.
    #[must_use]
    pub fn external(&self) -> Option<&Text> {
        let named = self.assignor.as_ref();
        named.filter(|name| ClassicAssignor::by_name(name).is_none())
    }
}

/// Which groups may change their protocol while they have members (`ConsumerGroupMigrationPolicy`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MigrationPolicy {
    Disabled,
    /// From classic to consumer only.
    Upgrade,
    /// From consumer to classic only.
    Downgrade,
    #[default]
    Bidirectional,
}

impl MigrationPolicy {
    /// All there are.
    pub const ALL: [Self; 4] = [Self::Bidirectional, Self::Upgrade, Self::Downgrade, Self::Disabled];
    /// Their names, in the same order.
    pub const NAMES: [&'static str; 4] = [
        Self::Bidirectional.name(),
        Self::Upgrade.name(),
        Self::Downgrade.name(),
        Self::Disabled.name(),
    ];

    /// In small letters.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Upgrade => "upgrade",
            Self::Downgrade => "downgrade",
            Self::Bidirectional => "bidirectional",
        }
    }

    #[must_use]
    pub const fn allows_upgrade(self) -> bool {
        matches!(self, Self::Upgrade | Self::Bidirectional)
    }

    #[must_use]
    pub const fn allows_downgrade(self) -> bool {
        matches!(self, Self::Downgrade | Self::Bidirectional)
    }
}

impl Settings {
    /// How long a member of this consumer group may be silent.
    #[must_use]
    pub fn consumer_session_timeout_ms(&self, group_id: &str) -> i32 {
        let own = self.own(group_id, GroupSetting::SessionTimeout);
        own.unwrap_or(self.group_consumer_session_timeout_ms)
    }

    /// How often a member of this consumer group is to be heard.
    #[must_use]
    pub fn consumer_heartbeat_interval_ms(&self, group_id: &str) -> i32 {
        let own = self.own(group_id, GroupSetting::HeartbeatInterval);
        own.unwrap_or(self.group_consumer_heartbeat_interval_ms)
    }

    /// The least time between two assignments of this consumer group; `None` where nobody has set any.
    #[must_use]
    pub fn consumer_assignment_interval_ms(&self, group_id: &str) -> Option<i32> {
        let own = self.own(group_id, GroupSetting::AssignmentInterval);
        own.or(self.group_consumer_assignment_interval_ms)
    }

    /// The rule by which a classic group of this name is assigned for here.
    #[must_use]
    pub fn classic_assignment(&self, group_id: &str) -> Option<&ClassicAssignmentRule> {
        self.coordinator_assigned
            .iter()
            .find(|rule| rule.groups.matches(group_id))
    }

    /// What groups have that were not given a value of their own; `None` where nobody has set any.
    #[must_use]
    pub const fn of_brokers(&self, setting: GroupSetting) -> Option<i32> {
        match setting {
            GroupSetting::SessionTimeout => Some(self.group_consumer_session_timeout_ms),
            GroupSetting::HeartbeatInterval => Some(self.group_consumer_heartbeat_interval_ms),
            GroupSetting::AssignmentInterval => self.group_consumer_assignment_interval_ms,
        }
    }

    /// The assignor that a rule says this group always has.
    pub(super) fn assignor_by_rule(&self, group_id: &str) -> Option<&Text> {
        let mut rules = self.external_assignors.iter();
        let rule = rules.find(|rule| rule.always && rule.groups.matches(group_id));
        rule.map(|rule| &rule.name)
    }

    /// Whether members of this group may ask for the assignor before anybody has registered it.
    pub(super) fn names_assignor(&self, group_id: &str, name: &str) -> bool {
        let mut rules = self.external_assignors.iter();
        rules.any(|rule| &*rule.name == name && rule.groups.matches(group_id))
    }

    /// What a group may have for itself.
    #[must_use]
    pub const fn bounds(&self, setting: GroupSetting) -> RangeInclusive<i32> {
        match setting {
            GroupSetting::SessionTimeout => {
                self.group_consumer_min_session_timeout_ms..=self.group_consumer_max_session_timeout_ms
            }
            GroupSetting::HeartbeatInterval => {
                self.group_consumer_min_heartbeat_interval_ms..=self.group_consumer_max_heartbeat_interval_ms
            }
            GroupSetting::AssignmentInterval => {
                self.group_consumer_min_assignment_interval_ms..=self.group_consumer_max_assignment_interval_ms
            }
        }
    }

    /// A group's own value, as far as the broker's bounds, which may have been moved since, let it.
    fn own(&self, group_id: &str, setting: GroupSetting) -> Option<i32> {
        let value = self.group_configs.get(group_id)?.get(setting)?;
        let bounds = self.bounds(setting);
        Some(value.min(*bounds.end()).max(*bounds.start()))
    }
}

impl Default for Settings {
    /// Apache Kafka's defaults.
    fn default() -> Self {
        Self {
            group_min_session_timeout_ms: 6_000,
            group_max_session_timeout_ms: 1_800_000,
            group_initial_rebalance_delay_ms: 3_000,
            group_max_size: i32::MAX,
            consumer_groups: true,
            group_consumer_session_timeout_ms: GroupSetting::SessionTimeout.default_value(),
            group_consumer_min_session_timeout_ms: 45_000,
            group_consumer_max_session_timeout_ms: 60_000,
            group_consumer_heartbeat_interval_ms: GroupSetting::HeartbeatInterval.default_value(),
            group_consumer_min_heartbeat_interval_ms: 5_000,
            group_consumer_max_heartbeat_interval_ms: 15_000,
            group_consumer_max_size: i32::MAX,
            group_consumer_assignors: Assignor::NAMES.map(Text::from).into(),
            group_consumer_migration_policy: MigrationPolicy::default(),
            group_consumer_regex_refresh_interval_ms: 600_000,
            group_consumer_assignment_interval_ms: None,
            group_consumer_min_assignment_interval_ms: 0,
            group_consumer_max_assignment_interval_ms: 15_000,
            external_assignors: Arc::default(),
            assignor_metadata_max_bytes: 64 * 1_024,
            assignor_metadata_group_max_bytes: 4 * 1_024 * 1_024,
            group_configs: Arc::default(),
            coordinator_assigned: Arc::default(),
            keeps_group_configs: true,
            offset_metadata_max_bytes: 4_096,
            offsets_commit_timeout_ms: 5_000,
            offsets_retention_ms: 10_080 * 60_000,
            offsets_retention_check_interval_ms: 600_000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_groups_own_values_hold_within_the_brokers_bounds() {
        let own = GroupConfig {
            session_timeout_ms: Some(50_000),
            heartbeat_interval_ms: Some(1),
            assignment_interval_ms: Some(20_000),
        };
        let settings = Settings {
            group_configs: Arc::new(BTreeMap::from([(Text::from("g"), own)])),
            ..Settings::default()
        };
        assert_eq!(settings.consumer_session_timeout_ms("g"), 50_000);
        assert_eq!(settings.consumer_heartbeat_interval_ms("g"), 5_000);
        assert_eq!(settings.consumer_assignment_interval_ms("g"), Some(15_000));
        assert_eq!(settings.consumer_session_timeout_ms("other"), 45_000);
        assert_eq!(settings.consumer_heartbeat_interval_ms("other"), 5_000);
        assert_eq!(settings.consumer_assignment_interval_ms("other"), None);
    }
}
