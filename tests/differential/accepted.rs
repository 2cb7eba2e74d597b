//! Differences that stay, each with its reason. One that no conversation meets any more is reported, so that the list stays true.

use crate::seen::{Seen, has_error, lists_twice, names_oddly, same_without, without_assignments};
use crate::step::Ask;

/// One kind of difference.
#[derive(Debug)]
pub struct Accepted {
    pub name: &'static str,
    pub reason: &'static str,
    /// Which brokers it is met with.
    pub brokers: Brokers,
    pub then: Then,
    /// Whether chance on the broker's side decides if it is met.
    pub is_by_chance: bool,
    is_it: fn(&Seen<'_>) -> bool,
}

/// What becomes of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    GoesOn,
    /// The two sides' groups are no longer in the same state, so that nothing further can be compared.
    Ends,
    /// The same, though the answers do not differ yet.
    EndsUnseen,
}

/// Apache Kafka rewrote its coordinator for 4.0; Convoke answers as the new one does, whatever its upstream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Brokers {
    Before4,
    All,
}

/// All of them.
pub static ACCEPTED: &[Accepted] = &[
    Accepted {
        name: "replaced request",
        reason: "A second join or sync of a member takes the place of its first one. Kafka forgets the first one's client, which \
                 waits until it times out; Convoke answers it REBALANCE_IN_PROGRESS.",
        brokers: Brokers::All,
        then: Then::GoesOn,
        is_by_chance: false,
        is_it: |seen| seen.ask().is_some_and(Ask::may_park) && seen.only_convoke_answers(27),
    },
    Accepted {
        name: "3.8: topics in maps",
        reason: "Kafka 3.8 keeps topics and partitions of requests about offsets in maps, in which what is named twice is named once \
                 and a topic without partitions is not named.",
        brokers: Brokers::Before4,
        then: Then::GoesOn,
        is_by_chance: false,
        is_it: |seen| seen.ask().is_some_and(names_oddly),
    },
    Accepted {
        name: "3.8: an offset that a map left out",
        reason: "Of a partition that a commit names twice Kafka 3.8 keeps the last in its map, and nothing at all if that one is refused.",
        brokers: Brokers::Before4,
        then: Then::Ends,
        is_by_chance: false,
        is_it: |seen| {
            let is_read = matches!(
                seen.ask(),
                Some(Ask::Fetch { .. } | Ask::DeleteOffsets { .. } | Ask::Describe { .. })
            );
            is_read && seen.has_committed_oddly()
        },
    },
    Accepted {
        name: "3.8: a commit in a group that is not there",
        reason: "Kafka 3.8's own coordinator knows no GROUP_ID_NOT_FOUND for commits, and says ILLEGAL_GENERATION in v9, too.",
        brokers: Brokers::Before4,
        then: Then::GoesOn,
        is_by_chance: false,
        is_it: |seen| {
            let (Some(broker), Some(convoke)) = (seen.broker, seen.convoke) else {
                return false;
            };
            let is_commit = matches!(seen.ask(), Some(Ask::Commit { .. }));
            is_commit && broker.replace("error_code: 22,", "error_code: 69,") == convoke
        },
    },
    Accepted {
        name: "3.8: assignments while a group rebalances",
        reason: "Kafka 3.8 describes members with their last assignments only while their group is stable.",
        brokers: Brokers::Before4,
        then: Then::GoesOn,
        is_by_chance: false,
        is_it: |seen| {
            let is_described = matches!(seen.ask(), Some(Ask::Describe { .. }));
            let (Some(broker), Some(convoke)) = (seen.broker, seen.convoke) else {
                return false;
            };
            is_described && without_assignments(broker) == without_assignments(convoke)
        },
    },
    Accepted {
        name: "3.8: equal votes",
        reason: "Of protocols with equally many votes Kafka 3.8 takes that of the member which is first in a hash map of random ids; \
                 Kafka 4 and Convoke take the one which is first in a hash map of their names.",
        brokers: Brokers::Before4,
        then: Then::Ends,
        is_by_chance: false,
        is_it: |seen| {
            let is_join = matches!(seen.ask(), Some(Ask::Join { .. }));
            is_join && same_without(seen, &["protocol_name", "members"])
        },
    },
    Accepted {
        name: "3.8: the last offset",
        reason: "Kafka 3.8 deletes an empty group with its last offset; Kafka 4 and Convoke keep it until it expires.",
        brokers: Brokers::Before4,
        then: Then::Ends,
        is_by_chance: false,
        is_it: |seen| {
            let said = seen.steps.iter().take(seen.step + 1);
            let has_deleted = said
                .into_iter()
                .any(|step| matches!(step.ask, Ask::DeleteOffsets { .. }));
            let broker = seen.broker.unwrap_or_default();
            let is_gone = match seen.ask() {
                Some(Ask::Describe { .. }) => broker.contains("\"Dead\""),
                Some(Ask::Delete { .. } | Ask::DeleteOffsets { .. }) => has_error(broker, 69),
                Some(Ask::Commit { .. }) => has_error(broker, 22),
                Some(Ask::Join { .. }) => same_without(seen, &["generation_id"]),
                Some(Ask::List { .. }) => true,
                _ => false,
            };
            has_deleted && is_gone
        },
    },
    Accepted {
        name: "protocol that is listed twice",
        reason: "Kafka counts a protocol that a member lists twice for two members, finds none that all support, and never answers \
                 the group's joins again; for Convoke the member supports it once.",
        brokers: Brokers::All,
        then: Then::Ends,
        is_by_chance: false,
        is_it: |seen| {
            let said = seen.turns.iter().filter_map(|turn| seen.steps.get(turn.step));
            said.into_iter().any(|step| lists_twice(&step.ask))
        },
    },
    Accepted {
        name: "classic member that comes back with partitions",
        reason: "A classic member that was taken out of a consumer group, and says that it still has partitions, may have lost them \
                 to others: Convoke tells it UNKNOWN_MEMBER_ID, so that it gives them up. Kafka lets it in.",
        brokers: Brokers::All,
        then: Then::Ends,
        is_by_chance: false,
        is_it: |seen| {
            let is_in = seen.broker.is_some_and(|broker| has_error(broker, 0));
            let is_join = matches!(seen.ask(), Some(Ask::Join { .. }));
            is_join && is_in && seen.convoke.is_some_and(|convoke| has_error(convoke, 25))
        },
    },
    Accepted {
        name: "parked sync of a member that is gone",
        reason: "Kafka leaves the sync of a member that is taken out to time out; Convoke answers it UNKNOWN_MEMBER_ID.",
        brokers: Brokers::All,
        then: Then::GoesOn,
        is_by_chance: false,
        is_it: |seen| matches!(seen.ask(), Some(Ask::Sync { .. })) && seen.only_convoke_answers(25),
    },
    Accepted {
        name: "round of a member that is turned away",
        reason: "A member that comes to a round after as many as there may be is turned away. Where the round waited for nobody else, \
                 Convoke ends it; Kafka leaves the others to its timeout.",
        brokers: Brokers::All,
        then: Then::Ends,
        is_by_chance: false,
        is_it: |seen| {
            let is_join = matches!(seen.ask(), Some(Ask::Join { .. }));
            is_join && seen.only_convoke_answers(0) && seen.is_somebody_turned_away()
        },
    },
    Accepted {
        name: "static member that returns to a full group",
        reason: "Kafka counts a static member that comes back without its id, or with another, as one more, and turns it away from a \
                 full group, for good: its place stays taken. Convoke gives it its place.",
        brokers: Brokers::All,
        then: Then::Ends,
        is_by_chance: false,
        // Its parked join is answered too, when another takes its place.
        is_it: |seen| seen.is_a_static_member_refused(),
    },
    Accepted {
        name: "no rebalance timeout",
        reason: "For Kafka a join whose rebalance timeout is the field's default, -1, gives its round no time at all: its member is \
                 taken out before it can sync. Convoke takes the session timeout, as for versions without the field.",
        brokers: Brokers::All,
        then: Then::Ends,
        is_by_chance: false,
        is_it: |seen| {
            let mut said = seen.turns.iter().filter_map(|turn| seen.steps.get(turn.step));
            said.any(|step| matches!(step.ask, Ask::Join { rebalance_ms: -1, .. }))
        },
    },
    Accepted {
        name: "leader",
        reason: "When a leader is gone the first of the others leads: for Kafka the first in a hash map of random ids, for Convoke \
                 the one that is longest in the group.",
        brokers: Brokers::All,
        then: Then::Ends,
        is_by_chance: false,
        is_it: |seen| {
            let is_join = matches!(seen.ask(), Some(Ask::Join { .. }));
            is_join && same_without(seen, &["leader", "members"])
        },
    },
    Accepted {
        name: "id given back",
        reason: "A client that leaves before it used the id that it was given makes Kafka's group rebalance, though nobody came or \
                 went; Convoke's stays as it is.",
        brokers: Brokers::All,
        then: Then::EndsUnseen,
        is_by_chance: false,
        is_it: |seen| seen.gives_an_unused_id_back(),
    },
    Accepted {
        name: "target of those that are left",
        reason: "When a member of a consumer group leaves, Convoke computes the target of the others at once, Kafka with the next \
                 heartbeat of one of them. Where somebody joins in between, the uniform assignor, which leaves as much as it can where \
                 the last target had it, may come to another one.",
        brokers: Brokers::All,
        then: Then::Ends,
        is_by_chance: false,
        is_it: |seen| seen.is_before_the_next_target(),
    },
    Accepted {
        name: "assignments on the way back",
        reason: "A consumer group that becomes a classic one again says of its members what they have; Kafka says what they were \
                 to have, which others may still read.",
        brokers: Brokers::All,
        then: Then::GoesOn,
        is_by_chance: false,
        is_it: |seen| {
            let (Some(broker), Some(convoke)) = (seen.broker, seen.convoke) else {
                return false;
            };
            let is_rebalancing = broker.contains("\"PreparingRebalance\"");
            matches!(seen.ask(), Some(Ask::Describe { .. }))
                && is_rebalancing
                && without_assignments(broker) == without_assignments(convoke)
        },
    },
    Accepted {
        name: "consumer in the middle of a round",
        reason: "A consumer that joins a classic group whose round is not over makes Kafka read the metadata of members for a protocol \
                 that they may not have, or that cannot be read. That fails (UNKNOWN_SERVER_ERROR, or GROUP_ID_NOT_FOUND) after it has \
                 answered their joins; Convoke refuses the consumer and leaves the joins as they are.",
        brokers: Brokers::All,
        then: Then::Ends,
        is_by_chance: false,
        is_it: |seen| {
            let Some(turn) = seen.turns.last() else {
                return false;
            };
            let [broker, convoke] = turn.answers.each_ref().map(|answers| answers.get(&turn.step));
            let is_beat = seen
                .steps
                .get(turn.step)
                .is_some_and(|step| matches!(step.ask, Ask::Beat(_)));
            is_beat
                && broker.is_some_and(|broker| has_error(broker, -1) || has_error(broker, 69))
                && convoke.is_some_and(|convoke| has_error(convoke, 69))
        },
    },
    Accepted {
        name: "pattern",
        reason: "Kafka matches a pattern behind a heartbeat's back, and the member hears of what it matches with a later one. Convoke \
                 matches before it answers, as the README says.",
        brokers: Brokers::All,
        then: Then::Ends,
        is_by_chance: false,
        is_it: |seen| {
            let has_pattern = matches!(seen.ask(), Some(Ask::Beat(beat)) if beat.regex.is_some());
            has_pattern && same_without(seen, &["assignment"])
        },
    },
    Accepted {
        name: "static member that joins twice",
        reason: "A static member of a consumer group that did not hear the answer to its join, and joins again with the id that it \
                 chose, is the one that holds its instance id. Kafka refuses it as if it were another, which stock clients take as \
                 fatal; Convoke answers it.",
        brokers: Brokers::All,
        then: Then::Ends,
        is_by_chance: false,
        is_it: |seen| {
            let is_refused = seen.broker.is_some_and(|broker| has_error(broker, 111));
            is_refused && seen.convoke.is_some_and(|convoke| has_error(convoke, 0))
        },
    },
    Accepted {
        name: "epoch of a member that has to give up what chance decides",
        reason: "A member keeps its epoch (a classic static one that joins with a new id: 0) while it says that it has partitions which \
                 are to be another's, and has the group's epoch otherwise. Which partitions the uniform assignor takes from whom \
                 depends on the order of Kafka's hash maps of ids.",
        brokers: Brokers::All,
        then: Then::Ends,
        is_by_chance: true,
        is_it: |seen| {
            let fields: &[&str] = match seen.ask() {
                Some(Ask::Join { .. }) => &["generation_id"],
                Some(Ask::Beat(_)) => &["member_epoch"],
                Some(Ask::DescribeConsumers { .. }) => &["member_epoch", "group_state"],
                _ => return false,
            };
            seen.is_of_uniform() && same_without(seen, fields)
        },
    },
];

/// The accepted difference that this is, if it is one.
pub fn find(seen: &Seen<'_>) -> Option<&'static Accepted> {
    let is_unseen = seen.broker == seen.convoke;
    let mut candidates = ACCEPTED
        .iter()
        .filter(|accepted| is_unseen == (accepted.then == Then::EndsUnseen));
    candidates.find(|accepted| accepted.is_met_with(seen.is_old) && (accepted.is_it)(seen))
}

impl Accepted {
    /// Whether brokers of that age can differ so.
    pub fn is_met_with(&self, is_old: bool) -> bool {
        is_old || self.brokers == Brokers::All
    }
}
