//! ConsumerGroupHeartbeat: who it comes from, what it changes, and what its member is told.

use std::sync::Arc;

use super::members::{Member, metadata_bytes};
use super::reconcile::{MustRejoin, Step};
use super::refusal::Refusal;
use super::said::{Said, regex_of};
use super::{ConsumerGroup, epoch, member_epoch};
use crate::coordinator::client_assignor::{Asking, ComputedOutside};
use crate::coordinator::context::Context;
use crate::coordinator::event::EpochReason;
use crate::coordinator::input::Ticket;
use crate::coordinator::partitions::Partitions;
use crate::coordinator::record::{ConsumerGroupRecord, ConsumerMemberValue, MemberState};
use crate::coordinator::request::{
    AssignedBy, ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, ResolvedRegex, Response, Text,
};
use crate::coordinator::settings::Settings;
use crate::coordinator::timer::GroupTimer;
use crate::wire::error_code::ErrorCode;

/// Where a heartbeat's member stands in the group.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    New,
    Known,
    /// It takes the place of the static member with this id.
    Instead(Text),
}

impl ConsumerGroup {
    /// A heartbeat whose form is in order.
    pub(in crate::coordinator) fn on_consumer_heartbeat(
        &mut self,
        ticket: Ticket,
        mut request: ConsumerGroupHeartbeatRequest,
        cx: &mut Context<'_>,
    ) {
        if let Some(names) = &mut request.subscribed_topic_names {
            names.sort_unstable();
            names.dedup();
        }
        let outcome = match request.member_epoch {
            epoch::LEAVE => self.leave_for_good(&request, cx).map(Some),
            epoch::LEAVE_FOR_A_WHILE => self.leave_for_a_while(&request, cx).map(Some),
            _ => self.beat(ticket, request, cx),
        };
        match outcome {
            Ok(Some(response)) => cx.reply(ticket, response),
            Ok(None) => {}
            Err(refusal) => cx.reply(ticket, refusal.response()),
        }
    }

    /// `Ok(None)`: the answer comes with the next target.
    fn beat(
        &mut self,
        ticket: Ticket,
        mut request: ConsumerGroupHeartbeatRequest,
        cx: &mut Context<'_>,
    ) -> Result<Option<Response>, Refusal> {
        if request.member_id.is_empty() && request.member_epoch == epoch::JOIN {
            request.member_id = self.given_id(&request, cx);
        }
        let place = self.place_of(&request, cx)?;
        let before = match &place {
            Place::New => None,
            Place::Known => self.members.get(&request.member_id),
            Place::Instead(old_id) => self.members.get(old_id),
        };
        let said = Said::with(before.map(|member| &member.said), &request);
        self.check_metadata(before, &said, cx)?;
        let old_regex = match said.regex_changed {
            true => regex_of(before),
            false => "".into(),
        };
        if let Some(patterns) = self.patterns_to_resolve(&said, request.resolved.is_some(), cx) {
            return Ok(Some(Response::ResolveRegexes { patterns }));
        }
        let subscription_changed = said.subscription_changed();
        if place != Place::Known || said.is_new || said.asked.is_some() || request.resolved.is_some() {
            let resolved = request.resolved.as_deref().unwrap_or_default();
            self.take_in(&place, &said, &old_regex, &request.member_id, resolved, cx);
        }
        let member_id = &request.member_id;
        self.arm_session(member_id, cx);
        if request.member_epoch == epoch::JOIN && self.is_to_be_parked(member_id, cx) {
            self.park_join(member_id, ticket, cx);
            return Ok(None);
        }
        let owned = request.topic_partitions.as_ref();
        let has_news = self.reconcile(member_id, owned, subscription_changed, cx)?;
        self.tell_settled(cx);
        let tell_assignment = request.member_epoch == epoch::JOIN || is_full(&request) || has_news;
        Ok(Some(self.heartbeat_response(member_id, tell_assignment, cx)))
    }

    /// Whether the answer to a join comes with the next target. Whoever is to compute that one must be told so.
    fn is_to_be_parked(&mut self, member_id: &Text, cx: &mut Context<'_>) -> bool {
        self.lose(member_id, cx);
        self.proceed(cx);
        self.epoch > self.target_epoch && !self.offer(member_id, cx)
    }

    /// What all members say for their assignors is in one answer to whoever computes.
    fn check_metadata(&self, before: Option<&Member>, said: &Said, cx: &Context<'_>) -> Result<(), Refusal> {
        let limit = cx.settings.assignor_metadata_group_max_bytes;
        let (before, now) = (
            before.map_or(0, |before| metadata_bytes(&before.said.client_assignors)),
            metadata_bytes(&said.value.client_assignors),
        );
        let all = self.members.metadata_bytes() - before + now;
        if now <= before || all <= limit {
            return Ok(());
        }
        let message =
            format!("The metadata of all members' assignors is {all} bytes long, at most {limit} are allowed.");
        Err(Refusal::new(ErrorCode::INVALID_REQUEST, message))
    }

    /// The id of a member that does not make its own (v0). A static one that returns has none of its former self's.
    fn given_id(&self, request: &ConsumerGroupHeartbeatRequest, cx: &mut Context<'_>) -> Text {
        cx.member_ids.next(&request.client_id)
    }

    fn place_of(&self, request: &ConsumerGroupHeartbeatRequest, cx: &Context<'_>) -> Result<Place, Refusal> {
        let member_id = &request.member_id;
        let holder = request.group_instance_id.as_ref();
        let holder = holder.and_then(|instance_id| self.members.static_member(instance_id));
        let is_known = self.members.contains(member_id);
        if !is_known && holder.is_none() && self.members.len() >= max_size(cx.settings) {
            let message = format!(
                "The consumer group has reached its maximum capacity of {} members.",
                max_size(cx.settings)
            );
            return Err(Refusal::new(ErrorCode::GROUP_MAX_SIZE_REACHED, message));
        }
        if let Some(instance_id) = &request.group_instance_id {
            return self.place_of_static(request, instance_id, holder);
        }
        let Some(member) = self.members.get(member_id) else {
            return match request.member_epoch {
                epoch::JOIN => Ok(Place::New),
                _ => Err(Refusal::no_member(member_id, &self.id)),
            };
        };
        member_epoch::check(member, request.member_epoch, request.topic_partitions.as_ref())?;
        Ok(Place::Known)
    }

    /// An instance id belongs to one member at a time: another takes it over only after its holder left for a while, or if
    /// that one speaks the classic protocol.
    fn place_of_static(
        &self,
        request: &ConsumerGroupHeartbeatRequest,
        instance_id: &Text,
        holder: Option<&Text>,
    ) -> Result<Place, Refusal> {
        let member_id = &request.member_id;
        let joins = request.member_epoch == epoch::JOIN;
        let Some(holder) = holder.and_then(|holder| self.members.get(holder)) else {
            return match (joins, self.members.contains(member_id)) {
                (true, true) => Ok(Place::Known),
                (true, false) => Ok(Place::New),
                (false, _) => Err(Refusal::no_instance(instance_id)),
            };
        };
        let is_itself = holder.id == *member_id;
        if !joins {
            if !is_itself {
                return Err(Refusal::fenced_instance(member_id, instance_id, &holder.id));
            }
            member_epoch::check(holder, request.member_epoch, request.topic_partitions.as_ref())?;
            return Ok(Place::Known);
        }
        let has_left = holder.current.member_epoch == epoch::LEAVE_FOR_A_WHILE || holder.is_classic();
        match (is_itself, has_left) {
            // It did not hear the answer to its join, or returns with the id it had.
            (true, _) => Ok(Place::Known),
            (false, true) => Ok(Place::Instead(holder.id.clone())),
            (false, false) => Err(Refusal::unreleased_instance(member_id, instance_id, &holder.id)),
        }
    }

    /// Writes what is new of the member and of what patterns stand for, and the epoch of the group if that changes its inputs.
    pub(super) fn take_in(
        &mut self,
        place: &Place,
        said: &Said,
        old_regex: &Text,
        member_id: &Text,
        resolved: &[ResolvedRegex],
        cx: &mut Context<'_>,
    ) {
        let choice = self.choice(cx.settings);
        if let Place::Instead(old_id) = place {
            self.replace(old_id, member_id, &said.value, cx);
        } else if said.is_new {
            self.write_member(member_id, &said.value, cx);
        }
        self.drop_regex(old_regex, cx);
        let is_news = self.take_resolutions(resolved, cx);
        let regex_bumps = said.regex_changed && self.is_resolved(&said.value.subscribed_topic_regex);
        let reason = if said.names_changed || regex_bumps {
            match place {
                Place::New => Some(EpochReason::MemberJoined),
                Place::Known | Place::Instead(_) => Some(EpochReason::SubscriptionChanged),
            }
        } else if is_news {
            Some(EpochReason::RegexResolved)
        } else if said.asked.is_none() && self.choice(cx.settings) != choice {
            Some(EpochReason::AssignorChanged)
        } else if self.fresh_hash(cx.topics) != self.metadata_hash {
            Some(EpochReason::MetadataChanged)
        } else {
            None
        };
        if let Some(reason) = reason {
            self.bump(reason, Some(member_id), cx);
            self.plan_target(cx);
        } else if let Some(reason) = said.asked {
            self.ask_assignment(reason, member_id, cx);
        }
        self.proceed(cx);
    }

    pub(super) fn write_member(&mut self, member_id: &Text, said: &Arc<ConsumerMemberValue>, cx: &mut Context<'_>) {
        self.write(
            ConsumerGroupRecord::Member {
                member_id: member_id.clone(),
                value: Some(said.clone()),
            },
            cx,
        );
    }

    pub(super) fn arm_session(&self, member_id: &Text, cx: &mut Context<'_>) {
        let timeout_ms = cx.settings.consumer_session_timeout_ms(&self.id);
        cx.arm(&self.id, GroupTimer::Session(member_id.clone()), timeout_ms);
    }

    /// Takes the member one step on its way to its target. Says whether it is to be told its assignment: it is to hold other
    /// partitions now, or runs assignors and has a new epoch, since what its assignor says to it may be new though the
    /// partitions are not.
    pub(super) fn reconcile(
        &mut self,
        member_id: &Text,
        owned: Option<&Partitions>,
        subscription_changed: bool,
        cx: &mut Context<'_>,
    ) -> Result<bool, Refusal> {
        let Some(member) = self.members.get(member_id) else {
            return Err(Refusal::no_member(member_id, &self.id));
        };
        if !subscription_changed && member.has_settled(self.target_epoch) {
            return Ok(false);
        }
        let nothing = Partitions::default();
        let target = self.target(member_id).map_or(&nothing, |target| target);
        let step = Step {
            current: &member.current,
            target_epoch: self.target_epoch,
            target,
            owned,
            subscription_changed,
            is_subscribed: &|topic_id| self.is_member_subscribed_to(member, topic_id, cx.topics),
            is_free: &|partition| self.owners.is_free_for(member_id, partition),
        };
        let next = step.run().map_err(|MustRejoin| Refusal::unknown_state())?;
        let Some(next) = next else {
            return Ok(false);
        };
        let takes_part = !member.said.client_assignors.is_empty();
        let has_news = next.assigned.partitions() != member.current.assigned.partitions()
            || (takes_part && next.member_epoch != member.current.member_epoch);
        match next.state {
            MemberState::UnrevokedPartitions if !member.is_classic() => {
                let timeout_ms = member.said.rebalance_timeout_ms;
                cx.arm(&self.id, GroupTimer::Rebalance(member_id.clone()), timeout_ms);
            }
            _ => cx.cancel(&self.id, GroupTimer::Rebalance(member_id.clone())),
        }
        self.write_held(member_id, next, cx);
        Ok(has_news)
    }

    pub(super) fn heartbeat_response(
        &mut self,
        member_id: &Text,
        tell_assignment: bool,
        cx: &mut Context<'_>,
    ) -> Response {
        let should_compute_assignment = self.offer(member_id, cx);
        let member = self.members.get(member_id);
        let assigned = member.map(|member| member.current.assigned.partitions().clone());
        Response::ConsumerGroupHeartbeat(ConsumerGroupHeartbeatResponse {
            error: ErrorCode::NONE,
            error_message: None,
            member_id: Some(member_id.clone()),
            member_epoch: member.map_or(0, |member| member.current.member_epoch),
            heartbeat_interval_ms: cx.settings.consumer_heartbeat_interval_ms(&self.id),
            assigned_by: match tell_assignment {
                true => self.assigned_by(member_id),
                false => AssignedBy::default(),
            },
            assignment: assigned.filter(|_| tell_assignment),
            should_compute_assignment,
            groups_to_compute: None,
        })
    }
}

impl ConsumerGroup {
    /// What the assignor of the last target says to the member.
    fn assigned_by(&self, member_id: &str) -> AssignedBy {
        let target = self.targets.get(member_id);
        AssignedBy {
            error: self.assignor_error,
            metadata_version: target.map_or(0, |target| target.metadata_version),
            metadata: target.map(|target| target.metadata.clone()).unwrap_or_default(),
        }
    }
}

/// `group.consumer.max.size` as a count.
pub(super) fn max_size(settings: &Settings) -> usize {
    usize::try_from(settings.group_consumer_max_size).unwrap_or(0)
}

/// Whether the member says everything, as it does after an error: then it is told everything, too.
fn is_full(request: &ConsumerGroupHeartbeatRequest) -> bool {
    request.rebalance_timeout_ms != -1
        && (request.subscribed_topic_names.is_some() || request.subscribed_topic_regex.is_some())
        && request.topic_partitions.is_some()
}
