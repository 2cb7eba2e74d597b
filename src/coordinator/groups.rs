//! The groups of a shard and their offsets: finds the group of a request, and runs what concerns a group and its offsets
//! together.

mod conversion;
mod external;

use std::collections::BTreeMap;
use std::ops::Bound;

use uuid::Uuid;

use super::classic::{ClassicGroup, join_refusal, sync_refusal};
use super::consumer::{ConsumerGroup, Joined};
use super::consumer_protocol::CONSUMER;
use super::context::Context;
use super::event::Event;
use super::external::Externals;
use super::group::Group;
use super::input::{DeletedTopic, ImportedOffset, Ticket};
use super::offsets::Offsets;
use super::record::{ConsumerGroupRecord, Record};
use super::request::{
    ConsumerGroupDescribeResponse, DescribeGroupResponse, GroupView, HeartbeatRequest, JoinGroupRequest,
    LeaveGroupRequest, LeaveGroupResponse, LeavingMember, LeftMember, ListGroupsRequest, ListedGroup,
    OffsetCommitRequest, OffsetCommitResponse, OffsetDeleteRequest, OffsetDeleteResponse, OffsetFetchRequest,
    OffsetFetchResponse, OffsetTopic, Response, ShardView, SyncGroupRequest, Text,
};
use super::settings::Settings;
use super::timer::GroupTimer;
use crate::wire::error_code::ErrorCode;

/// Groups that are looked at, and offsets that expire, in one go: others wait for it, and it is one batch for the store.
const EXPIRY_GROUPS_MAX: usize = 1_000;
const EXPIRY_OFFSETS_MAX: usize = 1_000;

/// The state that DescribeGroups gives a group that does not exist.
const DEAD: &str = "Dead";

#[derive(Debug, Default)]
pub(super) struct Groups {
    groups: BTreeMap<Text, Group>,
    offsets: Offsets,
}

impl Groups {
    /// Takes a record in, new or loaded. An offset alone makes a group, since Kafka shows it as one.
    pub(super) fn apply(&mut self, record: &Record) {
        match record {
            Record::OffsetCommit { key, value } => {
                self.offsets.apply(key, value.as_ref());
                if value.is_some() && !self.groups.contains_key(&key.group_id) {
                    self.groups
                        .insert(key.group_id.clone(), Group::simple(key.group_id.clone()));
                }
            }
            Record::GroupMetadata {
                group_id,
                value: Some(value),
            } => {
                let group = self.groups.entry(group_id.clone());
                group
                    .or_insert_with(|| Group::simple(group_id.clone()))
                    .apply_classic(group_id, value);
            }
            Record::GroupMetadata { group_id, value: None } => {
                if let Some(Group::Classic(_)) = self.groups.get(group_id) {
                    self.groups.remove(group_id);
                }
            }
            Record::ConsumerGroup { group_id, record } => self.apply_consumer(group_id, record),
            Record::GroupOwned { .. } | Record::GroupConfig { .. } => {}
        }
    }

    /// A tombstone makes no group, and that of the group's epoch ends it.
    fn apply_consumer(&mut self, group_id: &Text, record: &ConsumerGroupRecord) {
        if !record.is_tombstone() {
            let group = self.groups.entry(group_id.clone());
            group
                .or_insert_with(|| Group::Consumer(ConsumerGroup::new(group_id.clone()).into()))
                .apply_consumer(group_id, record);
        } else if let Some(Group::Consumer(group)) = self.groups.get_mut(group_id) {
            match record {
                ConsumerGroupRecord::Metadata(_) => {
                    self.groups.remove(group_id);
                }
                record => group.apply(record),
            }
        }
    }

    pub(super) fn on_loaded(&mut self, cx: &mut Context<'_>) {
        for group in self.groups.values_mut() {
            group.on_loaded(cx);
        }
    }

    pub(super) fn on_topics(&mut self, cx: &mut Context<'_>) {
        for group in self.groups.values_mut() {
            group.on_topics(cx);
        }
    }

    pub(super) fn on_timer(&mut self, group_id: &str, timer: GroupTimer, cx: &mut Context<'_>) {
        if let Some(group) = self.groups.get_mut(group_id) {
            group.on_timer(timer, cx);
        }
        self.downgrade_if_due(group_id, cx);
    }

    /// Only a first join makes a group. It is durable before anything else of the join is.
    pub(super) fn join(&mut self, ticket: Ticket, request: JoinGroupRequest, cx: &mut Context<'_>) {
        let is_first = request.member_id.is_empty();
        if !cx.has_topics
            && &*request.protocol_type == CONSUMER
            && cx.settings.classic_assignment(&request.group_id).is_some()
        {
            // Nothing can be assigned yet.
            let error = ErrorCode::COORDINATOR_LOAD_IN_PROGRESS;
            return cx.reply(ticket, join_refusal(error, request.member_id));
        }
        match self.groups.get_mut(&request.group_id) {
            Some(Group::Classic(group)) => group.on_join(ticket, request, cx),
            Some(Group::Consumer(group)) if !group.is_empty() => match group.on_classic_join(ticket, request, cx) {
                Joined::Answered => {}
                Joined::LastOfItsKind(successor) => self.downgrade_by(successor, cx),
            },
            Some(Group::Consumer(_)) if is_first => {
                self.convert_empty(&request.group_id, cx);
                self.join_classic(ticket, request, cx);
            }
            None if is_first => {
                self.write(ClassicGroup::creation(&request.group_id, cx.now.wall_ms), cx);
                self.join_classic(ticket, request, cx);
            }
            _ => cx.reply(ticket, join_refusal(ErrorCode::UNKNOWN_MEMBER_ID, request.member_id)),
        }
    }

    pub(super) fn join_classic(&mut self, ticket: Ticket, request: JoinGroupRequest, cx: &mut Context<'_>) {
        match self.groups.get_mut(&request.group_id) {
            Some(Group::Classic(group)) => group.on_join(ticket, request, cx),
            _ => cx.reply(ticket, join_refusal(ErrorCode::UNKNOWN_MEMBER_ID, request.member_id)),
        }
    }

    pub(super) fn sync(&mut self, ticket: Ticket, request: SyncGroupRequest, cx: &mut Context<'_>) {
        match self.groups.get_mut(&request.group_id) {
            Some(group) => group.on_sync(ticket, request, cx),
            None => cx.reply(ticket, sync_refusal(ErrorCode::UNKNOWN_MEMBER_ID)),
        }
    }

    pub(super) fn heartbeat(&mut self, request: &HeartbeatRequest, cx: &mut Context<'_>) -> Response {
        let group = self.groups.get_mut(&request.group_id);
        let error = group.map_or(ErrorCode::UNKNOWN_MEMBER_ID, |group| group.on_heartbeat(request, cx));
        Response::Heartbeat { error }
    }

    pub(super) fn leave(&mut self, ticket: Ticket, request: LeaveGroupRequest, cx: &mut Context<'_>) {
        let members = match self.groups.get_mut(&request.group_id) {
            Some(group) => group.on_leave(request.members, cx),
            None => request.members.into_iter().map(unknown_member).collect(),
        };
        self.downgrade_if_due(&request.group_id, cx);
        let error = ErrorCode::NONE;
        cx.reply(ticket, Response::LeaveGroup(LeaveGroupResponse { error, members }));
    }

    pub(super) fn commit(&mut self, request: &OffsetCommitRequest, cx: &mut Context<'_>) -> Response {
        let admitted = match self.groups.get(&request.group_id) {
            Some(group) => group.admit_commit(request, cx),
            None if request.generation_id_or_member_epoch < 0 => Ok(()),
            None if request.knows_member_epochs => Err(ErrorCode::GROUP_ID_NOT_FOUND),
            None => Err(ErrorCode::ILLEGAL_GENERATION),
        };
        if let Err(error) = admitted {
            return Response::OffsetCommit(commit_refusal(request, error));
        }
        let (records, response) = Offsets::commit(request, cx.now.wall_ms, cx.settings.offset_metadata_max_bytes);
        if !records.is_empty() {
            cx.event(Event::OffsetsCommitted { count: records.len() });
        }
        self.write_all(records, cx);
        Response::OffsetCommit(response)
    }

    /// A group that does not exist has no offsets, which is no error.
    pub(super) fn fetch(&self, request: &OffsetFetchRequest) -> Response {
        let group = self.groups.get(&request.group_id);
        if let Some(Err(error)) = group.map(|group| group.admit_fetch(request)) {
            let topics = Vec::new();
            return Response::OffsetFetch(OffsetFetchResponse { error, topics });
        }
        Response::OffsetFetch(OffsetFetchResponse {
            error: ErrorCode::NONE,
            topics: self.offsets.fetch(&request.group_id, request.topics.as_deref()),
        })
    }

    pub(super) fn delete_offsets(&mut self, request: &OffsetDeleteRequest, cx: &mut Context<'_>) -> Response {
        let group = self.groups.get(&request.group_id).ok_or(ErrorCode::GROUP_ID_NOT_FOUND);
        let group = match group.and_then(|group| group.admit_offset_delete().map(|()| group)) {
            Ok(group) => group,
            Err(error) => {
                let topics = Vec::new();
                return Response::OffsetDelete(OffsetDeleteResponse { error, topics });
            }
        };
        let (records, response) = self.offsets.delete(request, |topic| group.is_subscribed_to(topic));
        tell_deleted(records.len(), cx);
        self.write_all(records, cx);
        Response::OffsetDelete(response)
    }

    pub(super) fn delete(&mut self, group_id: &Text, cx: &mut Context<'_>) -> Response {
        let group = self.groups.get(group_id).ok_or(ErrorCode::GROUP_ID_NOT_FOUND);
        let error = match group.and_then(Group::admit_delete) {
            Ok(()) => {
                let records = self.offsets.delete_group(group_id);
                tell_deleted(records.len(), cx);
                self.write_all(records, cx);
                self.remove(group_id, cx);
                ErrorCode::NONE
            }
            Err(error) => error,
        };
        Response::DeleteGroup { error }
    }

    /// Drops the offsets of topics that are gone.
    pub(super) fn delete_topics(&mut self, topics: &[DeletedTopic], cx: &mut Context<'_>) {
        let records = self.offsets.delete_topics(topics);
        tell_deleted(records.len(), cx);
        self.write_all(records, cx);
    }

    /// Takes the upstream's offsets of a group over; says how many.
    pub(super) fn import(&mut self, group_id: &Text, offsets: &[ImportedOffset], cx: &mut Context<'_>) -> usize {
        let records = self.offsets.import(group_id, offsets, cx.now.wall_ms);
        let count = records.len();
        self.write_all(records, cx);
        count
    }

    /// Drops what has run out of its retention: offsets, then groups that have none left and nobody in them. Looks at so
    /// many groups from this one on (`None`: the first), and drops so many offsets, as one batch bears; gives the group to go
    /// on with.
    pub(super) fn expire(&mut self, from: Option<&Text>, cx: &mut Context<'_>) -> Option<Text> {
        let mut count = 0;
        let from = from.map_or(Bound::Unbounded, Bound::Included);
        let mut group_ids = self
            .groups
            .range::<Text, _>((from, Bound::Unbounded))
            .map(|(group_id, _)| group_id.clone());
        let looked_at: Vec<Text> = group_ids.by_ref().take(EXPIRY_GROUPS_MAX).collect();
        let mut rest = group_ids.next();
        for group_id in looked_at {
            let Some(group) = self.groups.get(&group_id) else {
                continue;
            };
            let is_abandoned = group.is_abandoned();
            let mut records = match group.offset_expiry(cx.settings.offsets_retention_ms) {
                Some(expiry) => {
                    let subscribed = |topic: &str| group.is_subscribed_to(topic);
                    self.offsets.expire(&group_id, expiry, cx.now.wall_ms, subscribed)
                }
                None => Vec::new(),
            };
            records.truncate(EXPIRY_OFFSETS_MAX - count);
            count += records.len();
            self.write_all(records, cx);
            if count == EXPIRY_OFFSETS_MAX {
                // Of this group more may be left.
                rest = Some(group_id);
                break;
            }
            if is_abandoned && self.offsets.count(&group_id) == 0 {
                self.remove(&group_id, cx);
            }
        }
        if count > 0 {
            cx.event(Event::OffsetsExpired { count });
        }
        rest
    }

    pub(super) fn describe(&self, group_id: &Text) -> DescribeGroupResponse {
        let group = self.groups.get(group_id);
        let why_not = match group {
            Some(_) => "is not a classic group",
            None => "not found",
        };
        group
            .and_then(Group::describe)
            .unwrap_or_else(|| DescribeGroupResponse {
                error: ErrorCode::NONE,
                error_message: Some(format!("Group {group_id} {why_not}.").into()),
                group_id: group_id.clone(),
                state: DEAD.into(),
                protocol_type: "".into(),
                protocol_name: "".into(),
                members: Vec::new(),
            })
    }

    pub(super) fn describe_consumer(&self, group_id: &Text, cx: &Context<'_>) -> ConsumerGroupDescribeResponse {
        let message = match self.groups.get(group_id) {
            Some(Group::Consumer(group)) => return group.describe_consumer(cx),
            Some(_) => format!("Group {group_id} is not a consumer group."),
            None => format!("Group {group_id} not found."),
        };
        let error = ErrorCode::GROUP_ID_NOT_FOUND;
        ConsumerGroupDescribeResponse::refusal(group_id.clone(), error, Some(message.into()))
    }

    pub(super) fn list(&self, request: &ListGroupsRequest) -> Vec<ListedGroup> {
        let groups = self.groups.values().map(Group::list);
        let wanted =
            |group: &ListedGroup| passes(&request.states, &group.state) && passes(&request.types, &group.group_type);
        groups.filter(wanted).collect()
    }

    pub(super) fn topics(&self) -> BTreeMap<Uuid, Text> {
        self.offsets.topics()
    }

    pub(super) fn contains(&self, group_id: &str) -> bool {
        self.groups.contains_key(group_id)
    }

    pub(super) fn view(&self, settings: &Settings, externals: &Externals) -> ShardView {
        let view = |group: &Group| {
            let view = group.view(settings);
            let offsets = self.offsets.count(&view.group_id);
            GroupView { offsets, ..view }
        };
        ShardView {
            groups: self.groups.values().map(view).collect(),
            externals: externals.view(),
            parked_joins: self.groups.values().map(Group::parked_joins).sum(),
            parked_syncs: self.groups.values().map(Group::parked_syncs).sum(),
        }
    }

    /// Every request that waits in a group.
    pub(super) fn parked(&self) -> impl Iterator<Item = Ticket> {
        self.groups.values().flat_map(Group::parked)
    }

    fn remove(&mut self, group_id: &Text, cx: &mut Context<'_>) {
        self.end_group(group_id, cx);
        cx.event(Event::GroupDeleted {
            group_id: group_id.clone(),
        });
    }

    fn write_all(&mut self, records: Vec<Record>, cx: &mut Context<'_>) {
        for record in records {
            self.write(record, cx);
        }
    }

    fn write(&mut self, record: Record, cx: &mut Context<'_>) {
        self.apply(&record);
        cx.effects.records.push(record);
    }
}

fn unknown_member(member: LeavingMember) -> LeftMember {
    LeftMember {
        member_id: member.member_id,
        group_instance_id: member.group_instance_id,
        error: ErrorCode::UNKNOWN_MEMBER_ID,
    }
}

/// The same error for every partition of the request.
fn commit_refusal(request: &OffsetCommitRequest, error: ErrorCode) -> OffsetCommitResponse {
    let topics = request.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|partition| (partition.partition, error));
        let name = topic.name.clone();
        let topic_id = topic.topic_id;
        (OffsetTopic { name, topic_id }, partitions.collect())
    });
    OffsetCommitResponse {
        topics: topics.collect(),
    }
}

fn tell_deleted(count: usize, cx: &mut Context<'_>) {
    if count > 0 {
        cx.event(Event::OffsetsDeleted { count });
    }
}

/// Whether a filter of ListGroups lets the value through: an empty one does, and case and blanks around it do not count.
fn passes(filter: &[Text], value: &str) -> bool {
    filter.is_empty() || filter.iter().any(|wanted| wanted.trim().eq_ignore_ascii_case(value))
}
