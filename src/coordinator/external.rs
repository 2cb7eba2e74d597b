//! External assignors: processes that compute assignments for a group, or for all groups of a pattern, without being in any.
//!
//! Nothing of them is durable. After a restart one is told UNKNOWN_MEMBER_ID and registers again. Its group need not exist.

use std::collections::{BTreeMap, BTreeSet};

use super::input::Ticket;
use super::request::{ClientAssignor, ConsumerGroupHeartbeatRequest, ExternalAssignorView, Text};

/// External assignors that one group, or one pattern, may have.
pub(super) const OF_GROUP_MAX: usize = 64;
/// External assignors that one shard may have.
pub(super) const OF_SHARD_MAX: usize = 4_096;
/// The member epoch of each of them.
pub(super) const EPOCH: i32 = 1;

/// What an external assignor has registered for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scope {
    /// One group.
    Group(Text),
    /// Every group whose id begins as the pattern does, up to the `*` at its end. All shards know of it.
    Pattern(Text),
}

impl Scope {
    /// As it is registered.
    pub(super) const fn text(&self) -> &Text {
        match self {
            Self::Group(text) | Self::Pattern(text) => text,
        }
    }

    pub(super) fn means(&self, group_id: &str) -> bool {
        match self {
            Self::Group(group) => &**group == group_id,
            Self::Pattern(pattern) => group_id.starts_with(pattern.trim_end_matches('*')),
        }
    }
}

#[derive(Debug)]
pub(super) struct External {
    pub(super) client_id: Text,
    pub(super) client_host: Text,
    /// On which it said last what it can run.
    pub(super) connection: u64,
    pub(super) rebalance_timeout_ms: i32,
    /// In its order of preference.
    pub(super) assignors: Vec<ClientAssignor>,
    /// Its heartbeat, while it waits for something to do.
    parked: Option<Ticket>,
    /// When it was last chosen, in the order of choices; 0 for never.
    chosen: u64,
    /// Whether this shard tells people of it: of one of a pattern, which all shards know, a single one does.
    pub(super) is_shown: bool,
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
    /// By what they registered for: those of groups first, and of patterns there are few.
    scopes: BTreeMap<Scope, BTreeMap<Text, External>>,
    count: usize,
    choices: u64,
    /// The groups whose next assignment somebody outside is to compute.
    wanting: BTreeSet<Text>,
}

impl Externals {
    /// The one of this id that has registered for the group, by its name or by a pattern.
    pub(super) fn get(&self, group_id: &Text, member_id: &str) -> Option<&External> {
        self.scopes_of(group_id).find_map(|(_, members)| members.get(member_id))
    }

    pub(super) fn contains(&self, group_id: &Text, member_id: &str) -> bool {
        self.get(group_id, member_id).is_some()
    }

    /// What this one of a group has registered for.
    pub(super) fn scope(&self, group_id: &Text, member_id: &str) -> Option<Scope> {
        let mut scopes = self.scopes_of(group_id);
        let scope = scopes.find(|(_, members)| members.contains_key(member_id));
        scope.map(|(scope, _)| scope.clone())
    }

    /// The one that has registered for exactly this.
    pub(super) fn registered(&self, scope: &Scope, member_id: &str) -> Option<&External> {
        self.scopes.get(scope)?.get(member_id)
    }

    /// Those of a group.
    pub(super) fn of(&self, group_id: &Text) -> impl Iterator<Item = (&Text, &External)> {
        self.scopes_of(group_id).flat_map(|(_, members)| members)
    }

    /// Whether anybody can run this assignor for the group.
    pub(super) fn offer(&self, group_id: &Text, name: &str) -> bool {
        self.of(group_id).any(|(_, external)| external.assignor(name).is_some())
    }

    /// Whether one more has room. One that is there takes no more.
    pub(super) fn have_room(&self, scope: &Scope, member_id: &str) -> bool {
        let members = self.scopes.get(scope);
        let is_known = members.is_some_and(|members| members.contains_key(member_id));
        let count = members.map_or(0, BTreeMap::len);
        is_known || (count < OF_GROUP_MAX && self.count < OF_SHARD_MAX)
    }

    /// Takes one in, or what is new of one. What a heartbeat leaves out stays. Gives the heartbeat that it may have had parked.
    pub(super) fn take_in(
        &mut self,
        scope: &Scope,
        request: &ConsumerGroupHeartbeatRequest,
        is_shown: bool,
    ) -> Option<Ticket> {
        let members = self.scopes.entry(scope.clone()).or_default();
        let external = members.entry(request.member_id.clone()).or_insert_with(|| {
            self.count += 1;
            External {
                client_id: "".into(),
                client_host: "".into(),
                connection: 0,
                rebalance_timeout_ms: 0,
                assignors: Vec::new(),
                parked: None,
                chosen: 0,
                is_shown,
            }
        });
        external.client_id.clone_from(&request.client_id);
        external.client_host.clone_from(&request.client_host);
        // Those of a connection that end with it are noted there by the same words.
        if request.client_assignors.is_some() && request.subscribed_topic_names.is_some() {
            external.connection = request.connection;
        }
        if request.rebalance_timeout_ms != -1 {
            external.rebalance_timeout_ms = request.rebalance_timeout_ms;
        }
        if let Some(assignors) = &request.client_assignors {
            external.assignors.clone_from(assignors);
        }
        external.parked.take()
    }

    pub(super) fn remove(&mut self, scope: &Scope, member_id: &str) -> Option<External> {
        let members = self.scopes.get_mut(scope)?;
        let external = members.remove(member_id)?;
        self.count -= 1;
        if members.is_empty() {
            self.scopes.remove(scope);
        }
        Some(external)
    }

    pub(super) fn park(&mut self, scope: &Scope, member_id: &str, ticket: Ticket) {
        if let Some(external) = self.registered_mut(scope, member_id) {
            external.parked = Some(ticket);
        }
    }

    /// Takes the parked heartbeat, to answer it.
    pub(super) fn unpark(&mut self, scope: &Scope, member_id: &str) -> Option<Ticket> {
        self.registered_mut(scope, member_id)?.parked.take()
    }

    /// Of those that wait for something to do and pass, the one that was chosen longest ago.
    pub(super) fn next_parked(&self, group_id: &Text, passes: impl Fn(&Text, &External) -> bool) -> Option<&Text> {
        let parked = self.of(group_id).filter(|(_, external)| external.parked.is_some());
        parked
            .filter(|(id, external)| passes(id, external))
            .min_by_key(|(_, external)| external.chosen)
            .map(|(id, _)| id)
    }

    /// Notes that it has its turn.
    pub(super) fn chose(&mut self, group_id: &Text, member_id: &str) {
        self.choices += 1;
        let choice = self.choices;
        if let Some(scope) = self.scope(group_id, member_id)
            && let Some(external) = self.registered_mut(&scope, member_id)
        {
            external.chosen = choice;
        }
    }

    /// The group's next assignment is to be computed outside.
    pub(super) fn want(&mut self, group_id: &Text) {
        self.wanting.insert(group_id.clone());
    }

    /// It is there, or the group is gone.
    pub(super) fn unwant(&mut self, group_id: &Text) {
        self.wanting.remove(group_id);
    }

    /// The groups of those that it has registered for whose next assignment is to be computed outside.
    pub(super) fn wanting(&self, scope: &Scope) -> Vec<Text> {
        let meant = self.wanting.iter().filter(|group_id| scope.means(group_id));
        meant.cloned().collect()
    }

    /// Every heartbeat that waits.
    pub(super) fn parked(&self) -> impl Iterator<Item = Ticket> {
        let all = self.scopes.values().flat_map(BTreeMap::values);
        all.filter_map(|external| external.parked)
    }

    pub(super) fn view(&self) -> Vec<ExternalAssignorView> {
        let scopes = self.scopes.iter();
        let all = scopes.flat_map(|(scope, members)| members.iter().map(move |(id, external)| (scope, id, external)));
        let shown = all.filter(|(_, _, external)| external.is_shown);
        shown
            .map(|(scope, member_id, external)| ExternalAssignorView {
                group_id: scope.text().clone(),
                member_id: member_id.clone(),
                client_id: external.client_id.clone(),
                client_host: external.client_host.clone(),
                rebalance_timeout_ms: external.rebalance_timeout_ms,
                assignors: external.assignors.clone(),
                parked: external.parked.is_some(),
            })
            .collect()
    }

    fn scopes_of(&self, group_id: &Text) -> impl Iterator<Item = (&Scope, &BTreeMap<Text, External>)> {
        let own = self.scopes.get_key_value(&Scope::Group(group_id.clone()));
        let patterns = self.scopes.range(Scope::Pattern("".into())..);
        own.into_iter()
            .chain(patterns.filter(move |(scope, _)| scope.means(group_id)))
    }

    fn registered_mut(&mut self, scope: &Scope, member_id: &str) -> Option<&mut External> {
        self.scopes.get_mut(scope)?.get_mut(member_id)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_means_what_begins_as_it_does() {
        let means = |pattern: &str, group: &str| Scope::Pattern(pattern.into()).means(group);
        assert!(means("orders-*", "orders-eu") && means("orders-*", "orders-") && means("*", ""));
        assert!(!means("orders-*", "orders") && !means("orders-*", "my-orders-eu"));
        let group = Scope::Group("orders-*".into());
        assert!(group.means("orders-*") && !group.means("orders-eu"));
    }
}
