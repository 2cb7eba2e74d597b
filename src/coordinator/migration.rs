//! Groups with members that change their protocol (KIP-848, online migration): a classic group that a consumer of the new
//! protocol joins, and a consumer group whose last one is gone. Offsets stay where they are.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::classic::{ClassicGroup, Emigrant};
use super::consumer::{ConsumerGroup, FIRST_EPOCH, with_ids};
use super::consumer_protocol;
use super::context::Context;
use super::held::HeldPartitions;
use super::partitions::{Partitions, TopicPartition};
use super::record::{
    ClassicMemberValue, ConsumerGroupMetadataValue, ConsumerGroupRecord, ConsumerMemberValue, CurrentAssignmentValue,
    MemberState, Record, TargetAssignmentValue,
};
use super::request::Text;
use super::topics::Topics;

/// The consumer group that a classic group becomes, with the records that make it, those that end the other not among them.
/// The generation becomes the epoch, and everybody has what it had.
///
pub(super) fn upgrade(
    group_id: &Text,
    classic: &ClassicGroup,
    cx: &Context<'_>,
) -> Result<(ConsumerGroup, Vec<Record>), Obstacle> {
    let max_size = usize::try_from(cx.settings.group_consumer_max_size).unwrap_or(0);
    if !cx.settings.group_consumer_migration_policy.allows_upgrade() {
        return Err(Obstacle::Policy);
    }
    if !classic.is_of_consumers() {
        return Err(Obstacle::ProtocolType);
    }
    if classic.size() > max_size {
        return Err(Obstacle::Size);
    }
    let immigrants = classic.emigrants().map(|emigrant| immigrant(emigrant, cx.topics));
    let members = with_what_they_hold(immigrants.collect::<Result<Vec<_>, _>>()?);
    let mut group = ConsumerGroup::new(group_id.clone());
    let mut records = Vec::new();
    let mut make = |group: &mut ConsumerGroup, record: ConsumerGroupRecord| {
        group.apply(&record);
        let group_id = group_id.clone();
        records.push(Record::ConsumerGroup { group_id, record });
    };
    // Before its first generation a group has told nobody of any.
    let epoch = classic.generation_id().max(FIRST_EPOCH);
    for (member_id, said, _) in &members {
        let (member_id, value) = (member_id.clone(), Some(Arc::clone(said)));
        make(&mut group, ConsumerGroupRecord::Member { member_id, value });
    }
    let metadata_hash = group.fresh_hash(cx.topics);
    let metadata = ConsumerGroupMetadataValue { epoch, metadata_hash };
    make(&mut group, ConsumerGroupRecord::Metadata(Some(metadata)));
    for (member_id, _, held) in &members {
        let (member_id, value) = (member_id.clone(), Some(Arc::clone(held).into()));
        make(&mut group, ConsumerGroupRecord::TargetMember { member_id, value });
    }
    let target = TargetAssignmentValue::of_server(epoch, 0);
    make(&mut group, ConsumerGroupRecord::Target(Some(target)));
    for (member_id, _, held) in members {
        let current = CurrentAssignmentValue {
            member_epoch: epoch,
            previous_member_epoch: epoch,
            state: MemberState::Stable,
            assigned: HeldPartitions::assigned_at(held, epoch),
            pending_revocation: HeldPartitions::default(),
        };
        make(
            &mut group,
            ConsumerGroupRecord::CurrentAssignment {
                member_id,
                value: Some(current),
            },
        );
    }
    Ok((group, records))
}

/// Why a classic group cannot become a consumer group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Obstacle {
    Policy,
    /// Its members are no consumers.
    ProtocolType,
    Size,
    /// Somebody's metadata or assignment is not what consumers write.
    Malformed,
    /// Somebody's assignment has a part that only its assignor understands.
    CustomAssignor,
}

impl Obstacle {
    /// As brokers say it.
    pub(super) fn message(self, group_id: &str) -> Text {
        let why = match self {
            Self::Policy => "online upgrade is disabled.",
            Self::ProtocolType => "the group does not use the consumer embedded protocol.",
            Self::Size => "the group size exceeds the consumer group maximum size.",
            Self::Malformed => "the embedded consumer protocol is malformed.",
            Self::CustomAssignor => {
                "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default \
                 assignor before re-attempting the upgrade."
            }
        };
        format!("Cannot upgrade classic group {group_id} to consumer group because {why}").into()
    }
}

/// A classic member as one of a consumer group.
struct Immigrant {
    id: Text,
    said: Arc<ConsumerMemberValue>,
    /// What its leader gave it last.
    assigned: Partitions,
    /// What it said to own when it joined last.
    owned: Partitions,
}

/// What each has. What two have by their leader's mistake the first keeps. A round that is given up forgets what was assigned
/// before it; then what a cooperative member reads on is only in what it says.
fn with_what_they_hold(immigrants: Vec<Immigrant>) -> Vec<(Text, Arc<ConsumerMemberValue>, Arc<Partitions>)> {
    let mut taken = BTreeSet::new();
    let mut held: Vec<Vec<TopicPartition>> = immigrants.iter().map(|_| Vec::new()).collect();
    let claims: [fn(&Immigrant) -> &Partitions; 2] = [|it| &it.assigned, |it| &it.owned];
    for claimed_by in claims {
        for (immigrant, held) in immigrants.iter().zip(&mut held) {
            let claimed = claimed_by(immigrant).iter().copied();
            held.extend(claimed.filter(|partition| taken.insert(*partition)));
        }
    }
    let members = immigrants.into_iter().zip(held);
    let with_held =
        |(member, held): (Immigrant, Vec<_>)| (member.id, member.said, Arc::new(held.into_iter().collect()));
    members.map(with_held).collect()
}

fn immigrant(emigrant: Emigrant, topics: &Topics) -> Result<Immigrant, Obstacle> {
    let subscription = consumer_protocol::read_subscription(&emigrant.subscription).ok_or(Obstacle::Malformed)?;
    let assignment = consumer_protocol::read_assignment(&emigrant.assignment).ok_or(Obstacle::Malformed)?;
    if assignment.has_user_data {
        return Err(Obstacle::CustomAssignor);
    }
    let said = ConsumerMemberValue {
        instance_id: emigrant.instance_id,
        rack_id: subscription.rack_id,
        client_id: emigrant.client_id,
        client_host: emigrant.client_host,
        subscribed_topic_names: subscription.topics.into(),
        subscribed_topic_regex: "".into(),
        rebalance_timeout_ms: emigrant.rebalance_timeout_ms,
        server_assignor: None,
        client_assignors: Vec::new(),
        classic: Some(ClassicMemberValue {
            session_timeout_ms: emigrant.session_timeout_ms,
            protocols: emigrant.protocols,
        }),
    };
    Ok(Immigrant {
        id: emigrant.id,
        said: Arc::new(said),
        assigned: with_ids(&assignment.partitions, topics),
        owned: with_ids(&subscription.owned, topics),
    })
}
