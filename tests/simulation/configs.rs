//! The settings as the coordinator is told of them, and whoever changes them while members are there.

use std::sync::Arc;

use convoke::coordinator::group_config::GroupConfig;
use convoke::coordinator::input::Input;
use convoke::coordinator::record::Record;
use convoke::coordinator::settings::Settings;

use crate::client::Speaker;
use crate::plan::draw_policy;
use crate::world::{Planted, World};

impl World {
    /// What the coordinator is told.
    pub(crate) fn told_settings(&self) -> Arc<Settings> {
        let mut told = Settings::clone(&self.settings);
        match self.planted {
            Planted::EarlyExpiry => told.offsets_retention_ms = 1_000,
            Planted::NoLimit => (told.group_max_size, told.group_consumer_max_size) = (i32::MAX, i32::MAX),
            _ => {}
        }
        Arc::new(told)
    }

    /// A group gets settings of its own or loses them, the migration policy is another, or the rules by which classic groups are
    /// assigned for come or go.
    pub(crate) fn reconfigure(&mut self) -> Result<(), String> {
        if self.plan.rules_change && self.rng.chance(300) {
            self.settings.coordinator_assigned = match self.settings.coordinator_assigned.is_empty() {
                true => self.plan.settings.coordinator_assigned.clone(),
                false => Arc::default(),
            };
        } else if self.rng.chance(200) {
            self.settings.group_consumer_migration_policy = draw_policy(&mut self.rng);
        } else {
            let group_id = self.rng.pick(&self.groups).clone();
            let config = GroupConfig {
                session_timeout_ms: *self.rng.pick(&[None, Some(10_000), Some(45_000)]),
                heartbeat_interval_ms: *self.rng.pick(&[None, Some(3_000)]),
                assignment_interval_ms: *self.rng.pick(&[None, Some(0), Some(15_000)]),
            };
            let configs = Arc::make_mut(&mut self.settings.group_configs);
            match self.rng.chance(800) {
                true => configs.insert(group_id, config),
                false => configs.remove(&group_id),
            };
        }
        let policy = self.settings.group_consumer_migration_policy;
        let rules = self.settings.coordinator_assigned.clone();
        self.note(|| format!("the policy is {policy:?}, classic groups are assigned for by {rules:?}"));
        let told = self.told_settings();
        self.step(Input::Settings(told))
    }

    /// Offsets in use do not go: those of topics that a member of the group is subscribed to.
    pub(crate) fn check_expiry(&self, records: &[Record]) -> Result<(), String> {
        for (group_id, topic) in self.checker.expired(records) {
            let Some(epoch) = self.checker.epochs.of(group_id) else {
                continue;
            };
            for client in &self.clients {
                let Some(Speaker::Consumer(member)) = client.speaker() else {
                    continue;
                };
                let is_in = member.group_id == *group_id
                    && member.epoch == epoch
                    && member.is_settled()
                    && member.has_told_all()
                    && !client.in_flight
                    && !self.checker.epochs.is_removed(&member.member_id);
                if is_in && member.wanted().contains(&topic) {
                    let member_id = &member.member_id;
                    return Err(format!(
                        "{group_id}: the offsets of topic {topic} go, that {member_id} is subscribed to"
                    ));
                }
            }
        }
        Ok(())
    }
}
