//! External assignors: processes that compute assignments for a group without being in it, by group.
//!
//! Nothing of them is durable. After a restart one is told UNKNOWN_MEMBER_ID and registers again. Its group need not exist.

use std::collections::BTreeMap;

use super::input::Ticket;
use super::request::{ClientAssignor, ConsumerGroupHeartbeatRequest, ExternalAssignorView, Text};

/// External assignors that one group may have.
pub(super) const OF_GROUP_MAX: usize = 64;
/// External assignors that one shard may have.
pub(super) const OF_SHARD_MAX: usize = 4_096;
/// The member epoch of each of them.
pub(super) const EPOCH: i32 = 1;

#[derive(Debug)]
pub(super) struct External {
    pub(super) client_id: Text,
    pub(super) client_host: Text,
    pub(super) rebalance_timeout_ms: i32,
    /// In its order of preference.
    pub(super) assignors: Vec<ClientAssignor>,
    /// Its heartbeat, while it waits for something to do.
    parked: Option<Ticket>,
    /// When it was last chosen, in the order of choices; 0 for never.
    chosen: u64,
}

impl External {
    /// The assignor of this name, if it can run it.
    pub(super) fn assignor(&self, name: &str) -> Option<&ClientAssignor> {
        ClientAssignor::find(&self.assignors, name)
    }
}

/// Those of a shard.
#[derive(Debug, Default)]
pub(super) struct Externals {
    groups: BTreeMap<Text, BTreeMap<Text, External>>,
    count: usize,
    choices: u64,
}

impl Externals {
    pub(super) fn get(&self, group_id: &str, member_id: &str) -> Option<&External> {
        self.groups.get(group_id)?.get(member_id)
    }

    pub(super) fn contains(&self, group_id: &str, member_id: &str) -> bool {
        self.get(group_id, member_id).is_some()
    }

    /// Those of a group, by id.
    pub(super) fn of(&self, group_id: &str) -> impl Iterator<Item = (&Text, &External)> {
        self.groups.get(group_id).into_iter().flatten()
    }

    /// Whether anybody can run this assignor for the group.
    pub(super) fn offer(&self, group_id: &str, name: &str) -> bool {
        self.of(group_id).any(|(_, external)| external.assignor(name).is_some())
    }

    /// Whether one more has room. One that is there takes no more.
    pub(super) fn have_room(&self, group_id: &str, member_id: &str) -> bool {
        let of_group = self.groups.get(group_id);
        let is_known = of_group.is_some_and(|group| group.contains_key(member_id));
        let count = of_group.map_or(0, BTreeMap::len);
        is_known || (count < OF_GROUP_MAX && self.count < OF_SHARD_MAX)
    }

    /// Takes one in, or what is new of one. What a heartbeat leaves out stays. Gives the heartbeat that it may have had parked.
    pub(super) fn take_in(&mut self, request: &ConsumerGroupHeartbeatRequest) -> Option<Ticket> {
        let group = self.groups.entry(request.group_id.clone()).or_default();
        let external = group.entry(request.member_id.clone()).or_insert_with(|| {
            self.count += 1;
            External {
                client_id: "".into(),
                client_host: "".into(),
                rebalance_timeout_ms: 0,
                assignors: Vec::new(),
                parked: None,
                chosen: 0,
            }
        });
        external.client_id.clone_from(&request.client_id);
        external.client_host.clone_from(&request.client_host);
        if request.rebalance_timeout_ms != -1 {
            external.rebalance_timeout_ms = request.rebalance_timeout_ms;
        }
        if let Some(assignors) = &request.client_assignors {
            external.assignors.clone_from(assignors);
        }
        external.parked.take()
    }

    pub(super) fn remove(&mut self, group_id: &str, member_id: &str) -> Option<External> {
        let group = self.groups.get_mut(group_id)?;
        let external = group.remove(member_id)?;
        self.count -= 1;
        if group.is_empty() {
            self.groups.remove(group_id);
        }
        Some(external)
    }

    pub(super) fn park(&mut self, group_id: &str, member_id: &str, ticket: Ticket) {
        if let Some(external) = self.get_mut(group_id, member_id) {
            external.parked = Some(ticket);
        }
    }

    /// Takes the parked heartbeat, to answer it.
    pub(super) fn unpark(&mut self, group_id: &str, member_id: &str) -> Option<Ticket> {
        self.get_mut(group_id, member_id)?.parked.take()
    }

    /// Of those that wait for something to do and pass, the one that was chosen longest ago.
    pub(super) fn next_parked(&self, group_id: &str, passes: impl Fn(&Text, &External) -> bool) -> Option<&Text> {
        let parked = self.of(group_id).filter(|(_, external)| external.parked.is_some());
        parked
            .filter(|(id, external)| passes(id, external))
            .min_by_key(|(_, external)| external.chosen)
            .map(|(id, _)| id)
    }

    /// Notes that it has its turn.
    pub(super) fn chose(&mut self, group_id: &str, member_id: &str) {
        self.choices += 1;
        let choice = self.choices;
        if let Some(external) = self.get_mut(group_id, member_id) {
            external.chosen = choice;
        }
    }

    /// Every heartbeat that waits.
    pub(super) fn parked(&self) -> impl Iterator<Item = Ticket> {
        let all = self.groups.values().flat_map(BTreeMap::values);
        all.filter_map(|external| external.parked)
    }

    pub(super) fn view(&self) -> Vec<ExternalAssignorView> {
        let groups = self.groups.iter();
        let all = groups.flat_map(|(group_id, group)| group.iter().map(move |(id, external)| (group_id, id, external)));
        all.map(|(group_id, member_id, external)| ExternalAssignorView {
            group_id: group_id.clone(),
            member_id: member_id.clone(),
            client_id: external.client_id.clone(),
            client_host: external.client_host.clone(),
            rebalance_timeout_ms: external.rebalance_timeout_ms,
            assignors: external.assignors.clone(),
            parked: external.parked.is_some(),
        })
        .collect()
    }

    fn get_mut(&mut self, group_id: &str, member_id: &str) -> Option<&mut External> {
        self.groups.get_mut(group_id)?.get_mut(member_id)
    }
}

impl ConsumerGroupHeartbeatRequest {
    /// Whether it is one of a process that is in no group and offers assignors to one: it has those, and is subscribed to
    /// nothing.
    pub(super) fn is_of_an_external(&self) -> bool {
        let offers = self.client_assignors.as_ref().is_some_and(|listed| !listed.is_empty());
        offers && !self.subscribes() && (self.is_join() || self.subscribed_topic_names.is_some())
    }

    /// Whether it subscribes to topics, by name or by a pattern.
    pub(super) fn subscribes(&self) -> bool {
        let names = self.subscribed_topic_names.as_ref();
        let regex = self.subscribed_topic_regex.as_ref();
        names.is_some_and(|names| !names.is_empty()) || regex.is_some_and(|regex| !regex.is_empty())
    }
}
