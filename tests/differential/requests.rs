//! The bytes of a step, as one side gets them: with that side's ids.

mod newest;

use bytes::{Bytes, BytesMut};
use convoke_support::Result;
use kafka_protocol::messages::consumer_group_heartbeat_request::TopicPartitions;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use kafka_protocol::messages::offset_delete_request::{OffsetDeleteRequestPartition, OffsetDeleteRequestTopic};
use kafka_protocol::messages::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
};
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{
    ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest, DeleteGroupsRequest, DescribeGroupsRequest,
    FindCoordinatorRequest, GroupId, HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, ListGroupsRequest,
    OffsetCommitRequest, OffsetDeleteRequest, OffsetFetchRequest, SyncGroupRequest, TopicName,
};
use kafka_protocol::protocol::{Encodable, StrBytes};

use crate::actor::Actors;
use crate::assignment;
use crate::names::Names;
use crate::step::{Ask, Assign, Beat, Group, Id, Instance, Metadata, Named, Note, Offset, Round, Said, Step};
use crate::world::Topics;

/// One side, as a request speaks of it.
#[derive(Debug, Clone, Copy)]
pub struct Speaker<'a> {
    pub actors: &'a Actors,
    pub names: &'a Names,
    pub topics: &'a Topics,
}

/// The body of a step's request.
pub fn body(step: &Step, speaker: Speaker<'_>) -> Result<Bytes> {
    let at = Place {
        speaker,
        actor: step.actor,
        group: step.group,
        version: step.version,
    };
    match &step.ask {
        Ask::Join { .. } => at.encode(&at.join(&step.ask)?),
        Ask::Sync { .. } => at.encode(&at.sync(&step.ask)?),
        Ask::Heartbeat {
            id,
            instance,
            generation,
        } => at.encode(&at.heartbeat(*id, *instance, *generation)),
        Ask::Leave { members } => at.encode(&at.leave(members)),
        Ask::Commit { .. } if step.version >= 10 => newest::offset_commit(&at.commit(&step.ask)),
        Ask::Commit { .. } => at.encode(&at.commit(&step.ask)),
        Ask::Fetch { .. } if step.version >= 10 => newest::offset_fetch(&at.fetch(&step.ask)),
        Ask::Fetch { .. } => at.encode(&at.fetch(&step.ask)),
        Ask::DeleteOffsets { topics } => at.encode(&at.delete_offsets(topics)),
        Ask::Describe { groups, operations } => {
            let request = DescribeGroupsRequest::default().with_groups(at.groups(groups));
            at.encode(&request.with_include_authorized_operations(*operations && step.version >= 3))
        }
        Ask::List { states, types } => {
            let mut request = ListGroupsRequest::default();
            if step.version >= 4 {
                request.states_filter = states.iter().map(|state| text(state)).collect();
            }
            if step.version >= 5 {
                request.types_filter = types.iter().map(|kind| text(kind)).collect();
            }
            at.encode(&request)
        }
        // The request of v3 is that of v2.
        Ask::Delete { groups } => encode(
            &DeleteGroupsRequest::default().with_groups_names(at.groups(groups)),
            step.version.min(2),
        ),
        Ask::Find { groups, key_type } => at.encode(&at.find(groups, *key_type)),
        Ask::Beat(beat) => at.encode(&at.beat(beat)),
        Ask::DescribeConsumers { groups, operations } => {
            let request = ConsumerGroupDescribeRequest::default().with_group_ids(at.groups(groups));
            at.encode(&request.with_include_authorized_operations(*operations))
        }
        Ask::Topic(_) | Ask::ShortSessions | Ask::Silence { .. } => Err("nothing is said".into()),
    }
}

/// Who asks about what in which version.
struct Place<'a> {
    speaker: Speaker<'a>,
    actor: usize,
    group: Group,
    version: i16,
}

impl Place<'_> {
    fn encode(&self, request: &impl Encodable) -> Result<Bytes> {
        encode(request, self.version)
    }

    fn group_id(&self, group: Group) -> GroupId {
        match group {
            Group::Known(number) => text(&self.speaker.names.group(number)).into(),
            Group::Nameless => text("").into(),
        }
    }

    fn groups(&self, groups: &[Group]) -> Vec<GroupId> {
        groups.iter().map(|group| self.group_id(*group)).collect()
    }

    fn id(&self, id: Id) -> StrBytes {
        text(&self.speaker.actors.id(self.actor, id))
    }

    /// `None` in versions that know none.
    fn instance(&self, instance: Instance, since: i16) -> Option<StrBytes> {
        let instance = Actors::instance(self.actor, instance).filter(|_| self.version >= since);
        instance.map(|instance| text(&instance))
    }

    fn round(&self, round: Round) -> i32 {
        self.speaker.actors.round(self.actor, round)
    }

    fn topic_name(&self, topic: &str) -> TopicName {
        text(self.speaker.topics.called(topic)).into()
    }

    fn topic_id(&self, topic: &str) -> uuid::Uuid {
        self.speaker.topics.id_or_unknown(topic)
    }

    fn join(&self, ask: &Ask) -> Result<JoinGroupRequest> {
        let Ask::Join {
            id,
            instance,
            session_ms,
            rebalance_ms,
            protocol_type,
            protocols,
        } = ask
        else {
            return Err("no join".into());
        };
        let protocols = protocols.iter().map(|(name, metadata)| {
            let protocol = JoinGroupRequestProtocol::default().with_name(text(name));
            Ok(protocol.with_metadata(self.metadata(metadata)?))
        });
        let request = JoinGroupRequest::default()
            .with_group_id(self.group_id(self.group))
            .with_session_timeout_ms(*session_ms)
            .with_member_id(self.id(*id))
            .with_group_instance_id(self.instance(*instance, 5))
            .with_protocol_type(text(protocol_type))
            .with_protocols(protocols.collect::<Result<_>>()?);
        Ok(match self.version {
            0 => request,
            _ => request.with_rebalance_timeout_ms(*rebalance_ms),
        })
    }

    fn metadata(&self, metadata: &Metadata) -> Result<Bytes> {
        let speaker = self.speaker;
        match metadata {
            Metadata::Subscription { version, topics, owned } => {
                let owned = speaker.actors.owned(self.actor, *owned, speaker.topics);
                assignment::subscription(*version, topics, &owned.unwrap_or_default(), speaker.topics)
            }
            Metadata::Bytes(bytes) => Ok(Bytes::from_static(bytes)),
        }
    }

    fn sync(&self, ask: &Ask) -> Result<SyncGroupRequest> {
        let Ask::Sync {
            id,
            instance,
            generation,
            protocol,
            assign,
        } = ask
        else {
            return Err("no sync".into());
        };
        let mut request = SyncGroupRequest::default()
            .with_group_id(self.group_id(self.group))
            .with_generation_id(self.round(*generation))
            .with_member_id(self.id(*id))
            .with_group_instance_id(self.instance(*instance, 3))
            .with_assignments(self.assignments(*assign)?);
        if self.version >= 5 {
            let (kind, name) = self.speaker.actors.get(self.actor).protocol.clone();
            let (kind, name) = match protocol {
                Said::Right => (kind, name),
                Said::WrongType => (Some("other".to_owned()), name),
                Said::WrongName => (kind, Some("other".to_owned())),
                Said::Missing => (None, None),
            };
            request.protocol_type = kind.map(|kind| text(&kind));
            request.protocol_name = name.map(|name| text(&name));
        }
        Ok(request)
    }

    fn assignments(&self, assign: Assign) -> Result<Vec<SyncGroupRequestAssignment>> {
        let Speaker { actors, names, topics } = self.speaker;
        let members = &actors.get(self.actor).members;
        let mut assigned = match assign {
            Assign::Nothing => return Ok(Vec::new()),
            Assign::Partitions => assignment::assign(members, names, topics, None)?,
            Assign::UserData => assignment::assign(members, names, topics, Some(b"of mine"))?,
            Assign::Strangers => {
                let mut assigned = assignment::assign(members, names, topics, None)?;
                assigned.pop();
                assigned.push(("stranger".to_owned(), Bytes::from_static(b"for nobody")));
                assigned
            }
            Assign::Garbage => assignment::assign(members, names, topics, None)?,
        };
        if assign == Assign::Garbage {
            assigned
                .iter_mut()
                .for_each(|(_, bytes)| *bytes = Bytes::from_static(b"\xff"));
        }
        let assigned = assigned.into_iter().map(|(id, bytes)| {
            SyncGroupRequestAssignment::default()
                .with_member_id(text(&id))
                .with_assignment(bytes)
        });
        Ok(assigned.collect())
    }

    fn heartbeat(&self, id: Id, instance: Instance, generation: Round) -> HeartbeatRequest {
        HeartbeatRequest::default()
            .with_group_id(self.group_id(self.group))
            .with_generation_id(self.round(generation))
            .with_member_id(self.id(id))
            .with_group_instance_id(self.instance(instance, 3))
    }

    fn leave(&self, members: &[(Id, Instance)]) -> LeaveGroupRequest {
        let request = LeaveGroupRequest::default().with_group_id(self.group_id(self.group));
        if self.version < 3 {
            let first = members.first().map_or(Id::Empty, |(id, _)| *id);
            return request.with_member_id(self.id(first));
        }
        let members = members.iter().map(|(id, instance)| {
            MemberIdentity::default()
                .with_member_id(self.id(*id))
                .with_group_instance_id(self.instance(*instance, 3))
        });
        request.with_members(members.collect())
    }

    fn commit(&self, ask: &Ask) -> OffsetCommitRequest {
        let Ask::Commit {
            id,
            instance,
            round,
            retention_ms,
            topics,
        } = ask
        else {
            return OffsetCommitRequest::default();
        };
        let topics = topics.iter().map(|(topic, offsets)| {
            let partitions = offsets.iter().map(|offset| self.offset(offset)).collect();
            let named = OffsetCommitRequestTopic::default().with_partitions(partitions);
            if self.version >= 10 {
                named.with_topic_id(self.topic_id(topic))
            } else {
                named.with_name(self.topic_name(topic))
            }
        });
        let request = OffsetCommitRequest::default()
            .with_group_id(self.group_id(self.group))
            .with_generation_id_or_member_epoch(self.round(*round))
            .with_member_id(self.id(*id))
            .with_group_instance_id(self.instance(*instance, 7))
            .with_topics(topics.collect());
        match self.version {
            2..=4 => request.with_retention_time_ms(*retention_ms),
            _ => request,
        }
    }

    fn offset(&self, offset: &Offset) -> OffsetCommitRequestPartition {
        let metadata = match offset.metadata {
            Note::Null => None,
            Note::Text(note) => Some(note.to_owned()),
            Note::Long(len) => Some("m".repeat(len)),
            Note::LongPairs(len) => Some("\u{1f600}".repeat(len)),
        };
        let partition = OffsetCommitRequestPartition::default()
            .with_partition_index(offset.partition)
            .with_committed_offset(offset.offset)
            .with_committed_metadata(metadata.map(StrBytes::from_string));
        match self.version {
            6.. => partition.with_committed_leader_epoch(offset.leader_epoch),
            _ => partition,
        }
    }

    fn fetch(&self, ask: &Ask) -> OffsetFetchRequest {
        let Ask::Fetch {
            groups,
            member,
            topics,
            stable,
        } = ask
        else {
            return OffsetFetchRequest::default();
        };
        let request = OffsetFetchRequest::default().with_require_stable(*stable && self.version >= 7);
        if self.version < 8 {
            let topics = topics.as_ref().map(|topics| {
                let topics = topics.iter().map(|(topic, partitions)| {
                    OffsetFetchRequestTopic::default()
                        .with_name(self.topic_name(topic))
                        .with_partition_indexes(partitions.clone())
                });
                topics.collect()
            });
            // Before v2 all topics cannot be asked for.
            let topics = topics.or_else(|| (self.version < 2).then(Vec::new));
            return request.with_group_id(self.group_id(self.group)).with_topics(topics);
        }
        let groups = groups.iter().map(|group| {
            let group = OffsetFetchRequestGroup::default().with_group_id(self.group_id(*group));
            let topics = topics.as_ref().map(|topics| {
                let topics = topics.iter().map(|(topic, partitions)| {
                    let named = OffsetFetchRequestTopics::default().with_partition_indexes(partitions.clone());
                    if self.version >= 10 {
                        named.with_topic_id(self.topic_id(topic))
                    } else {
                        named.with_name(self.topic_name(topic))
                    }
                });
                topics.collect()
            });
            match member.filter(|_| self.version >= 9) {
                Some((id, epoch)) => group
                    .with_member_id(Some(self.id(id)))
                    .with_member_epoch(self.round(epoch)),
                None => group,
            }
            .with_topics(topics)
        });
        request.with_groups(groups.collect())
    }

    fn delete_offsets(&self, topics: &Named) -> OffsetDeleteRequest {
        let topics = topics.iter().map(|(topic, partitions)| {
            let partitions = partitions
                .iter()
                .map(|index| OffsetDeleteRequestPartition::default().with_partition_index(*index));
            OffsetDeleteRequestTopic::default()
                .with_name(self.topic_name(topic))
                .with_partitions(partitions.collect())
        });
        OffsetDeleteRequest::default()
            .with_group_id(self.group_id(self.group))
            .with_topics(topics.collect())
    }

    fn find(&self, groups: &[Group], key_type: i8) -> FindCoordinatorRequest {
        let keys: Vec<StrBytes> = self.groups(groups).into_iter().map(|group| group.0).collect();
        let mut request = FindCoordinatorRequest::default();
        if self.version >= 1 {
            request.key_type = key_type;
        }
        if self.version >= 4 {
            request.coordinator_keys = keys;
        } else {
            request.key = keys.into_iter().next().unwrap_or_default();
        }
        request
    }

    fn beat(&self, beat: &Beat) -> ConsumerGroupHeartbeatRequest {
        let Speaker { actors, topics, .. } = self.speaker;
        let owned = actors.owned(self.actor, beat.owned, topics).map(|held| {
            let topics = held.into_iter().map(|(topic_id, partitions)| {
                TopicPartitions::default()
                    .with_topic_id(topic_id)
                    .with_partitions(partitions.into_iter().collect())
            });
            topics.collect()
        });
        let names = beat.topics.as_ref();
        let regex = beat.regex.filter(|_| self.version >= 1);
        ConsumerGroupHeartbeatRequest::default()
            .with_group_id(self.group_id(self.group))
            .with_member_id(self.id(beat.id))
            .with_member_epoch(self.round(beat.epoch))
            .with_instance_id(self.instance(beat.instance, 0))
            .with_rack_id(beat.rack.map(text))
            .with_rebalance_timeout_ms(beat.rebalance_ms)
            .with_subscribed_topic_names(names.map(|names| names.iter().map(|name| self.topic_name(name)).collect()))
            .with_subscribed_topic_regex(regex.map(text))
            .with_server_assignor(beat.assignor.map(text))
            .with_topic_partitions(owned)
    }
}

pub fn encode(message: &impl Encodable, version: i16) -> Result<Bytes> {
    let mut body = BytesMut::new();
    message.encode(&mut body, version)?;
    Ok(body.freeze())
}

pub fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}
