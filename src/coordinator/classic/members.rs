//! The members of a classic group, in the order in which they came.
//!
//! The counters kept beside them (which protocol is supported by how many, how many are parked in a join) change only here,
//! so they cannot drift from the members they count.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use crate::coordinator::input::Ticket;
use crate::coordinator::record::{GroupMetadataValue, MemberValue};
use crate::coordinator::request::{JoinGroupRequest, Protocol, Text};
use crate::wire::text::java_hash;

/// One member. Its selected protocol's metadata and what [`MemberValue`] names are durable, the rest is not.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) id: Text,
    pub(super) instance_id: Option<Text>,
    pub(super) client_id: Text,
    pub(super) client_host: Text,
    pub(super) rebalance_timeout_ms: i32,
    pub(super) session_timeout_ms: i32,
    pub(super) assignment: Bytes,
    /// Its first join has not been answered yet.
    pub(super) is_new: bool,
    /// It came back under this id, and nothing was heard of it by that: its join may have been under way for long, and who sent it
    /// may go on under the id before.
    pub(super) is_unheard: bool,
    protocols: Vec<Protocol>,
    parked_join: Option<Ticket>,
    parked_sync: Option<Ticket>,
}

impl Member {
    /// A member as its first join describes it.
    pub(super) fn joining(id: Text, request: JoinGroupRequest) -> Self {
        Self {
            id,
            instance_id: request.group_instance_id,
            client_id: request.client_id,
            client_host: request.client_host,
            rebalance_timeout_ms: request.rebalance_timeout_ms,
            session_timeout_ms: request.session_timeout_ms,
            assignment: Bytes::new(),
            is_new: true,
            is_unheard: false,
            protocols: request.protocols,
            parked_join: None,
            parked_sync: None,
        }
    }

    /// A member as its record describes it: it supports the one protocol that had been selected.
    fn recorded(value: &MemberValue, protocol: &Text) -> Self {
        let mut member = Self {
            id: value.member_id.clone(),
            instance_id: value.group_instance_id.clone(),
            client_id: value.client_id.clone(),
            client_host: value.client_host.clone(),
            rebalance_timeout_ms: -1,
            session_timeout_ms: -1,
            assignment: Bytes::new(),
            is_new: false,
            is_unheard: false,
            protocols: vec![Protocol {
                name: protocol.clone(),
                metadata: value.subscription.clone(),
            }],
            parked_join: None,
            parked_sync: None,
        };
        member.record(value);
        member
    }

    /// Takes over a record of this member. Records without a rebalance timeout (-1) mean the session timeout.
    fn record(&mut self, value: &MemberValue) {
        self.client_id = value.client_id.clone();
        self.client_host = value.client_host.clone();
        self.session_timeout_ms = value.session_timeout_ms;
        self.rebalance_timeout_ms = match value.rebalance_timeout_ms {
            -1 => value.session_timeout_ms,
            timeout_ms => timeout_ms,
        };
        self.assignment = value.assignment.clone();
    }

    fn offers(&self, protocol: &str, metadata: &Bytes) -> bool {
        let is_it = |offered: &Protocol| &*offered.name == protocol && offered.metadata == *metadata;
        self.protocols.iter().any(is_it)
    }

    pub(super) fn is_static(&self) -> bool {
        self.instance_id.is_some()
    }

    /// Whether these are its protocols: the same names and bytes in the same order.
    pub(super) fn has_protocols(&self, protocols: &[Protocol]) -> bool {
        self.protocols == protocols
    }

    /// In its order of preference.
    pub(super) fn protocols(&self) -> &[Protocol] {
        &self.protocols
    }

    /// What the member said about this protocol; empty if nothing.
    pub(super) fn metadata(&self, protocol: &str) -> Bytes {
        let supported = self.protocols.iter().find(|supported| &*supported.name == protocol);
        supported
            .map(|supported| supported.metadata.clone())
            .unwrap_or_default()
    }

    pub(super) fn is_parked_in_join(&self) -> bool {
        self.parked_join.is_some()
    }

    pub(super) fn is_parked_in_sync(&self) -> bool {
        self.parked_sync.is_some()
    }

    pub(super) fn to_value(&self, protocol: &str) -> MemberValue {
        MemberValue {
            member_id: self.id.clone(),
            group_instance_id: self.instance_id.clone(),
            client_id: self.client_id.clone(),
            client_host: self.client_host.clone(),
            rebalance_timeout_ms: self.rebalance_timeout_ms,
            session_timeout_ms: self.session_timeout_ms,
            subscription: self.metadata(protocol),
            assignment: self.assignment.clone(),
        }
    }
}

/// A member that was taken out, with the requests it had parked.
#[derive(Debug)]
pub(super) struct Removed {
    pub(super) member: Member,
    pub(super) join: Option<Ticket>,
    pub(super) sync: Option<Ticket>,
}

#[derive(Debug, Default)]
pub(super) struct Members {
    by_arrival: BTreeMap<u64, Member>,
    arrivals: BTreeMap<Text, u64>,
    arrived: u64,
    /// Instance id to member id.
    statics: BTreeMap<Text, Text>,
    /// How many members support a protocol.
    supporters: BTreeMap<Text, usize>,
    parked_joins: usize,
}

impl Members {
    pub(super) fn len(&self) -> usize {
        self.by_arrival.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_arrival.is_empty()
    }

    pub(super) fn contains(&self, id: &str) -> bool {
        self.arrivals.contains_key(id)
    }

    pub(super) fn get(&self, id: &str) -> Option<&Member> {
        self.by_arrival.get(self.arrivals.get(id)?)
    }

    pub(super) fn get_mut(&mut self, id: &str) -> Option<&mut Member> {
        self.by_arrival.get_mut(self.arrivals.get(id)?)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Member> {
        self.by_arrival.values()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Member> {
        self.by_arrival.values_mut()
    }

    pub(super) fn ids(&self) -> Vec<Text> {
        self.iter().map(|member| member.id.clone()).collect()
    }

    /// The member that has this instance id now.
    pub(super) fn static_member(&self, instance_id: &str) -> Option<&Text> {
        self.statics.get(instance_id)
    }

    pub(super) fn parked_joins(&self) -> usize {
        self.parked_joins
    }

    pub(super) fn insert(&mut self, member: Member) {
        self.count_protocols(&member.protocols);
        if let Some(instance_id) = &member.instance_id {
            self.statics.insert(instance_id.clone(), member.id.clone());
        }
        self.arrivals.insert(member.id.clone(), self.arrived);
        self.by_arrival.insert(self.arrived, member);
        self.arrived += 1;
    }

    pub(super) fn remove(&mut self, id: &str) -> Option<Removed> {
        let join = self.take_join(id);
        let mut member = self.by_arrival.remove(&self.arrivals.remove(id)?)?;
        self.discount_protocols(&member.protocols);
        if let Some(instance_id) = &member.instance_id {
            self.statics.remove(instance_id);
        }
        let sync = member.parked_sync.take();
        Some(Removed { member, join, sync })
    }

    /// Gives a static member its new id; its place, protocols and assignment stay. Answers with what it had parked.
    pub(super) fn rename(&mut self, old_id: &str, new_id: &Text) -> (Option<Ticket>, Option<Ticket>) {
        let join = self.take_join(old_id);
        let sync = self.take_sync(old_id);
        if let Some(arrival) = self.arrivals.remove(old_id)
            && let Some(member) = self.by_arrival.get_mut(&arrival)
        {
            member.id = new_id.clone();
            member.is_new = false;
            member.is_unheard = true;
            if let Some(instance_id) = &member.instance_id {
                self.statics.insert(instance_id.clone(), new_id.clone());
            }
            self.arrivals.insert(new_id.clone(), arrival);
        }
        (join, sync)
    }

    /// Takes over what a later join of the member says about it. Its client's id and host stay those of its first, as at brokers.
    pub(super) fn update(&mut self, id: &str, request: JoinGroupRequest) {
        let Some(member) = self.get_mut(id) else {
            return;
        };
        member.rebalance_timeout_ms = request.rebalance_timeout_ms;
        member.session_timeout_ms = request.session_timeout_ms;
        let after = request.protocols.clone();
        let before = std::mem::replace(&mut member.protocols, request.protocols);
        self.count_protocols(&after);
        self.discount_protocols(&before);
    }

    /// Parks a join; answers with the one that it takes the place of.
    pub(super) fn park_join(&mut self, id: &str, ticket: Ticket) -> Option<Ticket> {
        let replaced = self.get_mut(id)?.parked_join.replace(ticket);
        if replaced.is_none() {
            self.parked_joins += 1;
        }
        replaced
    }

    pub(super) fn take_join(&mut self, id: &str) -> Option<Ticket> {
        let taken = self.get_mut(id)?.parked_join.take();
        if taken.is_some() {
            self.parked_joins -= 1;
        }
        taken
    }

    /// Parks a sync; answers with the one that it takes the place of.
    pub(super) fn park_sync(&mut self, id: &str, ticket: Ticket) -> Option<Ticket> {
        self.get_mut(id)?.parked_sync.replace(ticket)
    }

    pub(super) fn take_sync(&mut self, id: &str) -> Option<Ticket> {
        self.get_mut(id)?.parked_sync.take()
    }

    /// Every request that waits in a join or a sync.
    pub(super) fn parked(&self) -> impl Iterator<Item = Ticket> {
        self.iter()
            .flat_map(|member| member.parked_join.into_iter().chain(member.parked_sync))
    }

    /// The longest time any member asked to be waited for, in milliseconds.
    pub(super) fn rebalance_timeout_ms(&self) -> i32 {
        let timeouts = self.iter().map(|member| member.rebalance_timeout_ms);
        timeouts.max().unwrap_or(0)
    }

    /// Whether every member supports the protocol; with nobody there, nobody objects.
    pub(super) fn all_support(&self, protocol: &str) -> bool {
        self.supporters.get(protocol).copied().unwrap_or(0) == self.len()
    }

    /// The protocol for the next generation: each member votes for the first of its own that all support. Of protocols with
    /// equally many votes that one is taken which is first in Java's hash map, so that a group has the same as at a broker.
    pub(super) fn select_protocol(&self) -> Option<Text> {
        let mut votes: BTreeMap<&Text, usize> = BTreeMap::new();
        for member in self.iter() {
            let names = member.protocols.iter().map(|protocol| &protocol.name);
            if let Some(choice) = names.into_iter().find(|name| self.all_support(name)) {
                *votes.entry(choice).or_default() += 1;
            }
        }
        let first_of_the_best = votes
            .into_iter()
            .min_by_key(|(name, votes)| (Reverse(*votes), bucket(name)));
        first_of_the_best.map(|(name, _)| name.clone())
    }

    /// Makes the members those of a record, in its order: what is here already keeps its soft state, what is not comes as
    /// recorded.
    pub(super) fn apply(&mut self, value: &GroupMetadataValue) {
        let recorded: BTreeSet<&Text> = value.members.iter().map(|member| &member.member_id).collect();
        for id in self.ids() {
            if !recorded.contains(&id) {
                self.remove(&id);
            }
        }
        let protocol = value.protocol.clone().unwrap_or_else(|| "".into());
        for recorded in &value.members {
            match self.get_mut(&recorded.member_id) {
                Some(member) if member.offers(&protocol, &recorded.subscription) => {
                    member.record(recorded);
                    self.move_to_the_end(&recorded.member_id);
                }
                _ => {
                    self.remove(&recorded.member_id);
                    self.insert(Member::recorded(recorded, &protocol));
                }
            }
        }
    }

    fn move_to_the_end(&mut self, id: &str) {
        if let Some(arrival) = self.arrivals.get_mut(id)
            && let Some(member) = self.by_arrival.remove(arrival)
        {
            *arrival = self.arrived;
            self.by_arrival.insert(self.arrived, member);
            self.arrived += 1;
        }
    }

    fn count_protocols(&mut self, protocols: &[Protocol]) {
        for protocol in protocols {
            *self.supporters.entry(protocol.name.clone()).or_default() += 1;
        }
    }

    fn discount_protocols(&mut self, protocols: &[Protocol]) {
        for protocol in protocols {
            if let Some(supporters) = self.supporters.get_mut(&protocol.name) {
                *supporters -= 1;
                if *supporters == 0 {
                    self.supporters.remove(&protocol.name);
                }
            }
        }
    }
}

/// The place of a text in a hash map of Java that has not grown.
fn bucket(text: &str) -> i32 {
    let hash = java_hash(text);
    (hash ^ (hash >> 16)) & 15
}
