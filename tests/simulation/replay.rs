//! Memory against the store: with nothing under way, the shard is what a load would make of its records.

use std::collections::BTreeMap;

use convoke::coordinator::assignor::Assignor;
use convoke::coordinator::input::{Input, Output, Ticket};
use convoke::coordinator::request::{GroupView, OffsetFetchRequest, Request, Response, ShardView, Text};

use crate::topics::index_of_name;
use crate::world::World;

impl World {
    pub(crate) fn view(&mut self) -> Result<Option<ShardView>, String> {
        match self.ask(Request::View)? {
            Some(Response::View(view)) => Ok(Some(view)),
            Some(other) => Err(format!("a view is {other:?}")),
            None => Ok(None),
        }
    }

    /// With nothing under way, memory is what a load would make of the store.
    pub(crate) fn check_replay(&mut self) -> Result<(), String> {
        if !self.store.is_idle() || !self.server.is_running() {
            return Ok(());
        }
        // A timer that was due may have begun something.
        let Some(memory) = self.view()? else { return Ok(()) };
        if !self.store.is_idle() {
            return Ok(());
        }
        let mut rebuilt = self.load_shard();
        let mut outputs = Vec::new();
        let request = Request::View;
        let ticket = Ticket(u64::MAX);
        rebuilt.step(self.now(), Input::Request { ticket, request }, &mut outputs);
        let view = outputs.into_iter().find_map(|output| match output {
            Output::Reply {
                response: Response::View(view),
                ..
            } => Some(view),
            _ => None,
        });
        let (mut memory, durable) = (summary(memory), summary(view.unwrap_or_default()));
        memory.retain(|group_id, group| durable.contains_key(group_id) || !is_bare(group));
        if memory.keys().ne(durable.keys()) {
            return Err(format!(
                "memory has {:?}, the store {:?}",
                memory.keys(),
                durable.keys()
            ));
        }
        for (group_id, group) in &memory {
            let stored = &durable[group_id];
            let is_soft = matches!(&*group.state, "PreparingRebalance" | "CompletingRebalance");
            // A target that is due is computed by the first who loads the group.
            let is_soft = is_soft || &*group.state == "Assigning";
            // So is a rebalance of a group that is too large, which silent static members can make of it.
            let is_soft = is_soft || group.members.len() > self.most_members(&group.group_type);
            let same = if is_soft {
                group.offsets == stored.offsets
            } else {
                group == stored
            };
            if !same {
                return Err(format!("memory has {group:?}, the store {stored:?}"));
            }
            self.check_offsets(group_id)?;
        }
        Ok(())
    }

    fn check_offsets(&mut self, group_id: &Text) -> Result<(), String> {
        let request = Request::OffsetFetch(OffsetFetchRequest {
            group_id: group_id.clone(),
            member_id: None,
            member_epoch: -1,
            topics: None,
            require_stable: false,
        });
        let Some(Response::OffsetFetch(response)) = self.ask(request)? else {
            return Err(format!(
                "the offsets of {group_id} are not told though nothing is under way"
            ));
        };
        let mut offsets = BTreeMap::new();
        for (topic, partitions) in &response.topics {
            for fetched in partitions {
                offsets.insert((index_of_name(&topic.name)?, fetched.partition), fetched.offset);
            }
        }
        let durable = self.checker.durable_offsets(group_id);
        match offsets == durable {
            true => Ok(()),
            false => Err(format!("{group_id}: memory has {offsets:?}, the store {durable:?}")),
        }
    }
}

/// A group that an offset alone had made, and whose last offset is gone. Kafka 4 keeps it too, until it restarts.
fn is_bare(group: &GroupView) -> bool {
    group.offsets == 0 && group.generation_id == 0 && group.protocol_type.is_none() && group.members.is_empty()
}

/// What of a view is durable in a group that is Empty or Stable.
fn summary(view: ShardView) -> BTreeMap<Text, GroupView> {
    let durable = |mut group: GroupView| {
        group.pending_members = 0;
        if let Some(consumer) = &mut group.consumer {
            group.state_since_ms = -1;
            consumer.computation = None;
            // Which of the server's own assignors it was knows only who computed.
            consumer.computed_by.take_if(|name| Assignor::by_name(name).is_some());
        }
        if let Some(classic) = &mut group.classic {
            (classic.assignor, classic.partitions_withheld) = (None, 0);
            // Of a group without a leader a load does not know whether somebody else computed.
            if classic.assigned_by == "external" {
                classic.assigned_by = "coordinator";
            }
        }
        group.members.sort_by(|a, b| a.member_id.cmp(&b.member_id));
        for member in &mut group.members {
            member.parked = false;
        }
        (group.group_id.clone(), group)
    };
    view.groups.into_iter().map(durable).collect()
}
