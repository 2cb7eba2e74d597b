//! What an OffsetFetch request asks, the same for all versions.

use std::collections::{BTreeSet, HashSet};

use kafka_protocol::messages::OffsetFetchRequest;
use kafka_protocol::messages::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
};
use uuid::Uuid;

use super::{GROUPS_SINCE, STABLE_SINCE};
use crate::coordinator::request::{self as core, OffsetTopic, Text};
use crate::handler::call::Call;
use crate::handler::convert::{optional_text, optional_wire, text, wire};
use crate::handler::merge::REPEATS_MAX;
use crate::handler::topics::{Lookups, NAMES_UP_TO, named};
use crate::wire::error_code::ErrorCode;

/// One group.
pub(super) struct GroupQuery {
    pub(super) group_id: Text,
    member_id: Option<Text>,
    member_epoch: i32,
    pub(super) topics: Topics,
}

pub(super) enum Topics {
    /// Every topic with a committed offset.
    All,
    Named(Vec<QueriedTopic>),
    /// An id could not be looked up, or all topics of one group are asked for too often; the whole group gets the error.
    Unanswerable(ErrorCode),
}

/// One topic of a query.
pub(super) struct QueriedTopic {
    /// As the request names it, and so the answer.
    pub(super) asked: OffsetTopic,
    /// Of the topic that has this name now; nil while that is not known.
    topic_id: Uuid,
    /// Its name, or what each partition is answered.
    pub(super) name: Result<Text, ErrorCode>,
    pub(super) partitions: Vec<i32>,
}

/// Reads the groups of a request; before v8 there is one. From v10 on the ids are looked up.
pub(super) async fn read(call: &Call<'_>, request: &OffsetFetchRequest) -> Vec<GroupQuery> {
    if call.version < GROUPS_SINCE {
        return vec![single(call, request)];
    }
    let mut lookups = Lookups::new(call);
    let mut queries = Vec::with_capacity(request.groups.len());
    let mut whole = HashSet::new();
    let mut repeats = 0;
    for group in &request.groups {
        if group.topics.is_none() && !whole.insert(group.group_id.as_str()) {
            repeats += 1;
        }
        queries.push(GroupQuery {
            group_id: text(&group.group_id),
            member_id: optional_text(group.member_id.as_ref()),
            member_epoch: group.member_epoch,
            topics: match &group.topics {
                Some(topics) => topics_of(call, &mut lookups, topics).await,
                None if repeats > REPEATS_MAX => Topics::Unanswerable(ErrorCode::INVALID_REQUEST),
                None => Topics::All,
            },
        });
    }
    queries
}

fn single(call: &Call<'_>, request: &OffsetFetchRequest) -> GroupQuery {
    let topics = request.topics.as_ref().map(|topics| {
        let topics = topics.iter().map(|topic| {
            let asked = named(&topic.name, Uuid::nil());
            QueriedTopic {
                topic_id: shown_id(call, &asked.name),
                name: Ok(asked.name.clone()),
                asked,
                partitions: topic.partition_indexes.clone(),
            }
        });
        Topics::Named(topics.collect())
    });
    GroupQuery {
        group_id: text(&request.group_id),
        member_id: None,
        member_epoch: -1,
        topics: topics.unwrap_or(Topics::All),
    }
}

async fn topics_of(call: &Call<'_>, lookups: &mut Lookups<'_>, topics: &[OffsetFetchRequestTopics]) -> Topics {
    let mut queried = Vec::with_capacity(topics.len());
    for topic in topics {
        let asked = named(&topic.name, topic.topic_id);
        let (name, topic_id) = if call.version <= NAMES_UP_TO {
            // Offsets of a topic that is gone are still told by its name.
            (Ok(asked.name.clone()), shown_id(call, &asked.name))
        } else {
            match lookups.find(&asked).await {
                Ok(topic) => (Ok(topic.name), asked.topic_id),
                Err(error) if error == ErrorCode::UNKNOWN_TOPIC_ID => (Err(error), asked.topic_id),
                Err(error) => return Topics::Unanswerable(error),
            }
        };
        queried.push(QueriedTopic {
            asked,
            topic_id,
            name,
            partitions: topic.partition_indexes.clone(),
        });
    }
    Topics::Named(queried)
}

/// The id under which the picture of the cluster shows a name: what was committed under another one was committed to an
/// earlier topic, and its offsets mean nothing in this one. Nil where the picture does not show it; nobody is asked.
pub(super) fn shown_id(call: &Call<'_>, name: &str) -> Uuid {
    let shown = call.services.cluster.snapshot();
    shown.topics.by_name.get(name).map(|topic| topic.id).unwrap_or_default()
}

impl GroupQuery {
    /// The topics that are asked for by a name that is known.
    pub(super) fn topic_names(&self) -> impl Iterator<Item = Text> {
        let topics = match &self.topics {
            Topics::Named(topics) => topics.as_slice(),
            Topics::All | Topics::Unanswerable(_) => &[],
        };
        topics.iter().filter_map(|topic| topic.name.as_ref().ok().cloned())
    }

    /// Answers an error for the topics that the caller may not describe.
    pub(super) fn deny(&mut self, denied: &BTreeSet<Text>) {
        let Topics::Named(topics) = &mut self.topics else {
            return;
        };
        for topic in topics {
            if topic.name.as_ref().is_ok_and(|name| denied.contains(name)) {
                topic.name = Err(ErrorCode::TOPIC_AUTHORIZATION_FAILED);
            }
        }
    }

    pub(super) fn to_core(&self, require_stable: bool) -> core::OffsetFetchRequest {
        let named = |topic: &QueriedTopic| {
            let topic_id = topic.topic_id;
            let name = topic.name.as_ref().ok()?.clone();
            Some((OffsetTopic { name, topic_id }, topic.partitions.clone()))
        };
        core::OffsetFetchRequest {
            group_id: self.group_id.clone(),
            member_id: self.member_id.clone(),
            member_epoch: self.member_epoch,
            topics: match &self.topics {
                Topics::All => None,
                Topics::Named(topics) => Some(topics.iter().filter_map(named).collect()),
                Topics::Unanswerable(_) => Some(Vec::new()),
            },
            require_stable,
        }
    }

    /// The topics whose names are known; `None` for all.
    fn names(&self) -> Option<Vec<(&Text, &[i32])>> {
        match &self.topics {
            Topics::All => None,
            Topics::Named(topics) => {
                let known = topics
                    .iter()
                    .filter_map(|topic| Some((topic.name.as_ref().ok()?, topic.partitions.as_slice())));
                Some(known.collect())
            }
            Topics::Unanswerable(_) => Some(Vec::new()),
        }
    }
}

/// A request of ours for these groups, by names; before v8 it has room for one.
pub(super) fn to_wire(queries: &[&GroupQuery], version: i16, require_stable: bool) -> OffsetFetchRequest {
    let request = OffsetFetchRequest::default().with_require_stable(require_stable && version >= STABLE_SINCE);
    if version >= GROUPS_SINCE {
        return request.with_groups(queries.iter().map(|query| group_to_wire(query)).collect());
    }
    let Some(query) = queries.first() else { return request };
    let topics = query.names().map(|topics| {
        let topics = topics.into_iter().map(|(name, partitions)| {
            OffsetFetchRequestTopic::default()
                .with_name(wire(name).into())
                .with_partition_indexes(partitions.to_vec())
        });
        topics.collect()
    });
    request.with_group_id(wire(&query.group_id).into()).with_topics(topics)
}

fn group_to_wire(query: &GroupQuery) -> OffsetFetchRequestGroup {
    let topics = query.names().map(|topics| {
        let topics = topics.into_iter().map(|(name, partitions)| {
            OffsetFetchRequestTopics::default()
                .with_name(wire(name).into())
                .with_partition_indexes(partitions.to_vec())
        });
        topics.collect()
    });
    OffsetFetchRequestGroup::default()
        .with_group_id(wire(&query.group_id).into())
        .with_member_id(optional_wire(query.member_id.as_ref()))
        .with_member_epoch(query.member_epoch)
        .with_topics(topics)
}
