//! Members of a consumer group that speak the classic protocol: JoinGroup. What such a member owns it says with its
//! subscription; its generation is its member epoch; nobody leads.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::heartbeat::{Place, max_size};
use super::refusal::Refusal;
use super::said::Said;
use super::{ConsumerGroup, State};
use crate::coordinator::classic::join_refusal;
use crate::coordinator::consumer_protocol::{self, CONSUMER, NamedPartitions, Subscription};
use crate::coordinator::context::Context;
use crate::coordinator::input::Ticket;
use crate::coordinator::partitions::{Partitions, TopicPartition};
use crate::coordinator::record::{ClassicMemberValue, ConsumerMemberValue};
use crate::coordinator::request::{JoinGroupRequest, JoinGroupResponse, Response, Text};
use crate::coordinator::settings::MigrationPolicy;
use crate::coordinator::timer::GroupTimer;
use crate::coordinator::topics::Topics;
use crate::wire::error_code::ErrorCode;

/// What came of a join.
#[derive(Debug)]
pub(in crate::coordinator) enum Joined {
    Answered,
    /// It took the place of the last member that speaks the consumer protocol: the group is to become a classic one, and only
    /// then it is answered.
    LastOfItsKind(Box<Successor>),
}

/// A classic static member that took the place of the last consumer.
#[derive(Debug)]
pub(in crate::coordinator) struct Successor {
    pub(in crate::coordinator) ticket: Ticket,
    /// With the id that the member has now.
    pub(in crate::coordinator) request: JoinGroupRequest,
    /// The id of the consumer, if everybody, the successor too, has all that the newest target gives: then nobody has to join
    /// anew. (Kafka asks only whether the target is the newest, so that what somebody still had to get stays without an owner.)
    pub(in crate::coordinator) settled_after: Option<Text>,
    /// What it is answered where everybody has to join anew, which a sync or a heartbeat then tells it.
    pub(in crate::coordinator) answer: Response,
}

impl ConsumerGroup {
    /// JoinGroup in a group that somebody is in.
    pub(in crate::coordinator) fn on_classic_join(
        &mut self,
        ticket: Ticket,
        mut request: JoinGroupRequest,
        cx: &mut Context<'_>,
    ) -> Joined {
        let mut seen = BTreeSet::new();
        request.protocols.retain(|protocol| seen.insert(protocol.name.clone()));
        match self.classic_join(&mut request, cx) {
            Ok(place) if self.is_to_be_classic(cx.settings) => {
                let settled_after = match place {
                    Place::Instead(old_id) if self.state() == State::Stable => Some(old_id),
                    _ => None,
                };
                return Joined::LastOfItsKind(Box::new(Successor {
                    ticket,
                    answer: self.join_response(&request),
                    request,
                    settled_after,
                }));
            }
            Ok(_) => cx.reply(ticket, self.join_response(&request)),
            Err(refusal) => {
                // A refusal names no member, but for the id to come back with.
                let member_id = match refusal.error {
                    ErrorCode::MEMBER_ID_REQUIRED => request.member_id,
                    _ => "".into(),
                };
                cx.reply(ticket, join_refusal(refusal.error, member_id));
            }
        }
        Joined::Answered
    }

    fn classic_join(&mut self, request: &mut JoinGroupRequest, cx: &mut Context<'_>) -> Result<Place, Refusal> {
        self.check_classic_join(request, cx)?;
        let place = self.place_of_classic(request, cx)?;
        let first = request.protocols.first();
        let subscription = first.and_then(|protocol| consumer_protocol::read_subscription(&protocol.metadata));
        let subscription = subscription.ok_or(ErrorCode::INCONSISTENT_GROUP_PROTOCOL)?;
        if place == Place::New && !subscription.owned.is_empty() {
            // It was taken out, and is to know that what it had may be others' before it goes on. Kafka lets it in.
            return Err(ErrorCode::UNKNOWN_MEMBER_ID.into());
        }
        let before = match &place {
            Place::New => None,
            Place::Known => self.members.get(&request.member_id),
            Place::Instead(old_id) => self.members.get(old_id),
        };
        let before = before.map(|member| member.said.clone());
        let said = classic_said(before.as_ref(), &subscription, request);
        let old_regex = before.map_or_else(|| "".into(), |before| before.subscribed_topic_regex.clone());
        let subscription_changed = said.subscription_changed();
        if place != Place::Known || said.is_new {
            self.take_in(&place, &said, &old_regex, &request.member_id, &[], cx);
        }
        let member_id = &request.member_id;
        cx.cancel(&self.id, GroupTimer::ClassicJoin(member_id.clone()));
        cx.arm(
            &self.id,
            GroupTimer::Session(member_id.clone()),
            request.session_timeout_ms,
        );
        cx.arm(
            &self.id,
            GroupTimer::ClassicSync(member_id.clone()),
            request.rebalance_timeout_ms,
        );
        let owned = with_ids(&subscription.owned, cx.topics);
        self.reconcile(member_id, Some(&owned), subscription_changed, cx)?;
        self.tell_settled(cx);
        Ok(place)
    }

    /// What is wrong whoever it is: a client that only asks for an id need not have said what it subscribes to.
    fn check_classic_join(&self, request: &JoinGroupRequest, cx: &Context<'_>) -> Result<(), Refusal> {
        let instance_id = request.group_instance_id.as_ref();
        let is_in = self.members.contains(&request.member_id)
            || instance_id.is_some_and(|instance_id| self.members.static_member(instance_id).is_some());
        if !is_in && self.members.len() >= max_size(cx.settings) {
            return Err(ErrorCode::GROUP_MAX_SIZE_REACHED.into());
        }
        let supported = |name: &Text| self.members.all_classic_support(name);
        let fits = cx.settings.group_consumer_migration_policy != MigrationPolicy::Disabled
            && &*request.protocol_type == CONSUMER
            && request.protocols.iter().any(|protocol| supported(&protocol.name));
        if fits {
            Ok(())
        } else {
            Err(ErrorCode::INCONSISTENT_GROUP_PROTOCOL.into())
        }
    }

    /// Where the member stands; it is given an id if it has none. An id that is not known was handed out before.
    fn place_of_classic(&self, request: &mut JoinGroupRequest, cx: &mut Context<'_>) -> Result<Place, Refusal> {
        let instance_id = request.group_instance_id.as_ref();
        let holder = instance_id
            .and_then(|instance_id| self.members.static_member(instance_id))
            .cloned();
        if request.member_id.is_empty() {
            let prefix = instance_id.unwrap_or(&request.client_id);
            let is_dynamic = instance_id.is_none();
            request.member_id = cx.member_ids.next(prefix);
            if is_dynamic && request.require_known_member_id {
                return Err(ErrorCode::MEMBER_ID_REQUIRED.into());
            }
            return Ok(holder.map_or(Place::New, Place::Instead));
        }
        match (instance_id, holder) {
            (Some(_), None) => Err(ErrorCode::UNKNOWN_MEMBER_ID.into()),
            (Some(_), Some(holder)) if holder != request.member_id => Err(ErrorCode::FENCED_INSTANCE_ID.into()),
            _ if self.members.contains(&request.member_id) => Ok(Place::Known),
            _ => Ok(Place::New),
        }
    }

    fn join_response(&self, request: &JoinGroupRequest) -> Response {
        let member = self.members.get(&request.member_id);
        Response::JoinGroup(JoinGroupResponse {
            error: ErrorCode::NONE,
            generation_id: member.map_or(-1, |member| member.current.member_epoch),
            protocol_type: Some(CONSUMER.into()),
            protocol_name: request.protocols.first().map(|protocol| protocol.name.clone()),
            leader: "".into(),
            skip_assignment: false,
            member_id: request.member_id.clone(),
            members: Vec::new(),
        })
    }
}

/// What a classic member says with its join.
fn classic_said(
    before: Option<&Arc<ConsumerMemberValue>>,
    subscription: &Subscription,
    request: &JoinGroupRequest,
) -> Said {
    // What it leaves out stays as it was.
    let kept = |said: &Option<Text>, of: fn(&ConsumerMemberValue) -> &Option<Text>| {
        said.clone().or_else(|| of(before?).clone())
    };
    let value = ConsumerMemberValue {
        instance_id: kept(&request.group_instance_id, |before| &before.instance_id),
        rack_id: kept(&subscription.rack_id, |before| &before.rack_id),
        client_id: request.client_id.clone(),
        client_host: request.client_host.clone(),
        subscribed_topic_names: subscription.topics.clone().into(),
        subscribed_topic_regex: "".into(),
        rebalance_timeout_ms: request.rebalance_timeout_ms,
        server_assignor: before.and_then(|before| before.server_assignor.clone()),
        client_assignors: Vec::new(),
        classic: Some(ClassicMemberValue {
            session_timeout_ms: request.session_timeout_ms,
            protocols: request.protocols.clone(),
        }),
    };
    Said::instead_of(before, value)
}

/// The partitions of topics that exist, under their ids.
pub(in crate::coordinator) fn with_ids(partitions: &NamedPartitions, topics: &Topics) -> Partitions {
    let known = partitions
        .iter()
        .filter_map(|(name, numbers)| Some((topics.by_name.get(name)?.id, numbers)));
    let each = known.flat_map(|(topic_id, numbers)| {
        numbers.iter().map(move |partition| TopicPartition {
            topic_id,
            partition: *partition,
        })
    });
    each.collect()
}
