//! How the upstream's answers about a group are read.

use kafka_protocol::messages::list_groups_response::ListedGroup;
use kafka_protocol::messages::offset_fetch_response::OffsetFetchResponseGroup;
use uuid::Uuid;

use crate::coordinator::input::{ImportedOffset, Presence};
use crate::coordinator::request::Text;
use crate::upstream::UpstreamError;
use crate::wire::error_code::ErrorCode;

/// Why an attempt gave no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// It may be different in a moment.
    Retry(String),
    /// The node is not the coordinator any more.
    Moved(String),
    /// Somebody has to do something first.
    Final(String),
}

#[must_use]
pub fn failure_of(error: UpstreamError) -> Failure {
    let reason = error.to_string();
    match error {
        UpstreamError::Unreachable { .. } | UpstreamError::Closed { .. } | UpstreamError::Timeout { .. } => {
            // The leader may have moved away from a node that is gone.
            Failure::Moved(reason)
        }
        UpstreamError::Malformed { .. } | UpstreamError::Unusable { .. } => Failure::Retry(reason),
        UpstreamError::Refused { error, .. } if is_transient(error) => Failure::Retry(reason),
        UpstreamError::Refused { .. } | UpstreamError::Authentication { .. } | UpstreamError::OtherCluster { .. } => {
            Failure::Final(reason)
        }
    }
}

/// Why no node at all was to be had. Where none can be reached nothing is tried on: clients are told at once and come again, and
/// what they send meanwhile, a farewell say, need not wait behind a request that waits for brokers that are gone.
#[must_use]
pub fn nobody_there(error: UpstreamError) -> Failure {
    match error {
        UpstreamError::Unreachable { .. } => Failure::Final(error.to_string()),
        error => failure_of(error),
    }
}

/// What an error code of a group's coordinator means here.
#[must_use]
pub fn refused(address: &str, api: &'static str, error: ErrorCode) -> Failure {
    let hint = if error == ErrorCode::GROUP_AUTHORIZATION_FAILED {
        "; grant Convoke's own user Describe on every group"
    } else {
        ""
    };
    let reason = format!("{address} answered {api} with {error}{hint}");
    match error {
        ErrorCode::NOT_COORDINATOR => Failure::Moved(reason),
        error if is_transient(error) => Failure::Retry(reason),
        _ => Failure::Final(reason),
    }
}

const fn is_transient(error: ErrorCode) -> bool {
    matches!(
        error,
        ErrorCode::COORDINATOR_LOAD_IN_PROGRESS
            | ErrorCode::COORDINATOR_NOT_AVAILABLE
            | ErrorCode::NOT_COORDINATOR
            | ErrorCode::LEADER_NOT_AVAILABLE
            | ErrorCode::NOT_LEADER_OR_FOLLOWER
            | ErrorCode::REQUEST_TIMED_OUT
            | ErrorCode::UNSTABLE_OFFSET_COMMIT
            | ErrorCode::UNKNOWN_SERVER_ERROR
            | ErrorCode::REBOOTSTRAP_REQUIRED
    )
}

/// What a listed group is to us. Brokers before ListGroups v5 do not name the type; they have only these two.
#[must_use]
pub fn presence(listed: &ListedGroup) -> Presence {
    match &*listed.group_type.to_ascii_lowercase() {
        "" => presence_of("classic", &listed.protocol_type, &listed.group_state),
        known @ ("classic" | "consumer") => presence_of(known, &listed.protocol_type, &listed.group_state),
        other => of_other_type(other),
    }
}

/// What a classic or consumer group in this state is to us.
#[must_use]
pub fn presence_of(group_type: &str, protocol_type: &str, state: &str) -> Presence {
    if state.eq_ignore_ascii_case("Empty") || state.eq_ignore_ascii_case("Dead") {
        return Presence::Vacant;
    }
    Presence::Live {
        group_type: Text::from(group_type),
        protocol_type: Text::from(protocol_type),
        state: Text::from(state),
    }
}

/// A share or streams group, whatever state it is in.
#[must_use]
pub fn of_other_type(group_type: &str) -> Presence {
    Presence::OtherType {
        group_type: Text::from(group_type.to_ascii_lowercase()),
    }
}

/// Whether every offset of an answer is what it will be.
///
/// # Errors
/// `Retry` while a transaction is about to change one of them.
pub fn check_stable(group: &OffsetFetchResponseGroup) -> Result<(), Failure> {
    for topic in &group.topics {
        let name = topic.name.as_str();
        for partition in &topic.partitions {
            let index = partition.partition_index;
            match ErrorCode(partition.error_code) {
                ErrorCode::NONE => {}
                ErrorCode::UNSTABLE_OFFSET_COMMIT => {
                    return Err(Failure::Retry(format!(
                        "a transaction with an offset of {name}-{index} is open"
                    )));
                }
                error => {
                    return Err(Failure::Retry(format!(
                        "OffsetFetch was answered with {error} for {name}-{index}"
                    )));
                }
            }
        }
    }
    Ok(())
}

/// The committed offsets of an answer to "all topics", without topic ids.
///
/// # Errors
/// As [`check_stable`].
pub fn read_offsets(group: &OffsetFetchResponseGroup) -> Result<Vec<ImportedOffset>, Failure> {
    check_stable(group)?;
    let mut offsets = Vec::new();
    for topic in &group.topics {
        let name = Text::from(topic.name.as_str());
        for partition in &topic.partitions {
            let index = partition.partition_index;
            if partition.committed_offset < 0 {
                continue;
            }
            let metadata = partition.metadata.as_ref().map_or("", |metadata| metadata.as_str());
            offsets.push(ImportedOffset {
                topic: name.clone(),
                topic_id: Uuid::nil(),
                partition: index,
                offset: partition.committed_offset,
                leader_epoch: partition.committed_leader_epoch,
                metadata: Text::from(metadata),
            });
        }
    }
    Ok(offsets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kafka_protocol::messages::TopicName;
    use kafka_protocol::messages::offset_fetch_response::{OffsetFetchResponsePartitions, OffsetFetchResponseTopics};
    use kafka_protocol::protocol::StrBytes;

    fn listed(group_type: &'static str, state: &'static str) -> ListedGroup {
        ListedGroup::default()
            .with_group_type(StrBytes::from_static_str(group_type))
            .with_group_state(StrBytes::from_static_str(state))
            .with_protocol_type(StrBytes::from_static_str("consumer"))
    }

    #[test]
    fn only_classic_and_consumer_groups_without_members_are_vacant() {
        for (group_type, state) in [
            ("", "Empty"),
            ("classic", "Empty"),
            ("Classic", "Dead"),
            ("consumer", "EMPTY"),
        ] {
            assert_eq!(
                presence(&listed(group_type, state)),
                Presence::Vacant,
                "{group_type} {state}"
            );
        }
    }

    #[test]
    fn a_group_in_any_other_state_is_live() {
        for (group_type, state) in [
            ("classic", "PreparingRebalance"),
            ("classic", "CompletingRebalance"),
            ("classic", "Stable"),
            ("consumer", "Assigning"),
            ("consumer", "Reconciling"),
            ("consumer", "Stable"),
            ("classic", "SomethingNew"),
        ] {
            let expected = Presence::Live {
                group_type: group_type.into(),
                protocol_type: "consumer".into(),
                state: state.into(),
            };
            assert_eq!(presence(&listed(group_type, state)), expected);
        }
    }

    #[test]
    fn groups_of_other_types_are_never_ours_whatever_their_state() {
        for (group_type, state) in [
            ("share", "Empty"),
            ("Share", "Stable"),
            ("streams", "NotReady"),
            ("new", "Empty"),
        ] {
            let expected = Presence::OtherType {
                group_type: group_type.to_ascii_lowercase().into(),
            };
            assert_eq!(presence(&listed(group_type, state)), expected);
        }
    }

    fn answer(partitions: Vec<OffsetFetchResponsePartitions>) -> OffsetFetchResponseGroup {
        let topic = OffsetFetchResponseTopics::default()
            .with_name(TopicName(StrBytes::from_static_str("t")))
            .with_partitions(partitions);
        OffsetFetchResponseGroup::default().with_topics(vec![topic])
    }

    fn partition(index: i32, offset: i64, error: ErrorCode) -> OffsetFetchResponsePartitions {
        OffsetFetchResponsePartitions::default()
            .with_partition_index(index)
            .with_committed_offset(offset)
            .with_committed_leader_epoch(4)
            .with_metadata(Some(StrBytes::from_static_str("m")))
            .with_error_code(error.0)
    }

    #[test]
    fn offsets_are_read_with_epoch_and_metadata_and_those_that_are_none_are_left_out() {
        let group = answer(vec![
            partition(0, 7, ErrorCode::NONE),
            partition(1, -1, ErrorCode::NONE),
        ]);
        let expected = ImportedOffset {
            topic: "t".into(),
            topic_id: Uuid::nil(),
            partition: 0,
            offset: 7,
            leader_epoch: 4,
            metadata: "m".into(),
        };
        assert_eq!(read_offsets(&group), Ok(vec![expected]));
    }

    #[test]
    fn one_offset_in_an_open_transaction_makes_the_whole_answer_wait() {
        let unstable = partition(1, -1, ErrorCode::UNSTABLE_OFFSET_COMMIT);
        let group = answer(vec![partition(0, 7, ErrorCode::NONE), unstable]);
        let expected = Failure::Retry("a transaction with an offset of t-1 is open".to_owned());
        assert_eq!(read_offsets(&group), Err(expected));
    }

    #[test]
    fn a_missing_right_is_final_and_named() {
        match refused("b:1", "OffsetFetch", ErrorCode::GROUP_AUTHORIZATION_FAILED) {
            Failure::Final(reason) => assert!(reason.contains("grant Convoke's own user Describe on every group")),
            other => panic!("{other:?}"),
        }
        let moved = refused("b:1", "OffsetFetch", ErrorCode::NOT_COORDINATOR);
        assert!(matches!(moved, Failure::Moved(_)));
    }
}
