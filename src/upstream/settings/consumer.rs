//! The settings of consumer groups (KIP-848, KIP-1263).

use super::Reader;
use crate::coordinator::assignor::Assignor;
use crate::coordinator::request::Text;
use crate::coordinator::settings::{MigrationPolicy, Settings};

/// What their names begin with.
pub(super) const PREFIX: &str = "group.consumer.";
/// The protocols that groups may speak. Of them the consumer protocol can be switched off here, the classic one cannot.
pub(super) const REBALANCE_PROTOCOLS: &str = "group.coordinator.rebalance.protocols";

/// Kafka's assignors by the names of their classes, as a broker before 4.0 has them.
const CLASSES: [(&str, Assignor); 2] = [
    (
        "org.apache.kafka.coordinator.group.assignor.UniformAssignor",
        Assignor::Uniform,
    ),
    (
        "org.apache.kafka.coordinator.group.assignor.RangeAssignor",
        Assignor::Range,
    ),
];

/// Kafka's defaults with what is set about consumer groups.
pub(super) fn read(reader: &mut Reader<'_>) -> Settings {
    let mut settings = Settings::default();
    let (session, heartbeat, assignment) = ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms");
    let bounds = |bound: &str, name: &str| format!("{PREFIX}{bound}.{name}");
    for (bound, name, least, field) in [
        ("min", session, 1, &mut settings.group_consumer_min_session_timeout_ms),
        ("max", session, 1, &mut settings.group_consumer_max_session_timeout_ms),
        (
            "min",
            heartbeat,
            1,
            &mut settings.group_consumer_min_heartbeat_interval_ms,
        ),
        (
            "max",
            heartbeat,
            1,
            &mut settings.group_consumer_max_heartbeat_interval_ms,
        ),
        (
            "min",
            assignment,
            0,
            &mut settings.group_consumer_min_assignment_interval_ms,
        ),
        (
            "max",
            assignment,
            0,
            &mut settings.group_consumer_max_assignment_interval_ms,
        ),
    ] {
        *field = reader.i32(&bounds(bound, name), least, *field);
    }
    for (name, least, field) in [
        (session, 1, &mut settings.group_consumer_session_timeout_ms),
        (heartbeat, 1, &mut settings.group_consumer_heartbeat_interval_ms),
        ("max.size", 1, &mut settings.group_consumer_max_size),
        (
            "regex.refresh.interval.ms",
            10_000,
            &mut settings.group_consumer_regex_refresh_interval_ms,
        ),
    ] {
        *field = reader.i32(&format!("{PREFIX}{name}"), least, *field);
    }
    let interval = reader.number(&format!("{PREFIX}{assignment}"), 0, i64::from(i32::MAX));
    settings.group_consumer_assignment_interval_ms = interval.and_then(|interval| i32::try_from(interval).ok());
    if let Some((protocols, _)) = reader.text(REBALANCE_PROTOCOLS) {
        let mut protocols = protocols.split(',').map(str::trim);
        settings.consumer_groups = protocols.any(|protocol| protocol.eq_ignore_ascii_case("consumer"));
    }
    assignors(reader, &mut settings);
    migration_policy(reader, &mut settings);
    check(reader, &settings);
    settings
}

/// A broker may have assignors of its own, which are not here: they are left out.
fn assignors(reader: &mut Reader<'_>, settings: &mut Settings) {
    let name = format!("{PREFIX}assignors");
    let Some((value, ours)) = reader.text(&name) else {
        return;
    };
    let mut assignors = Vec::new();
    for given in value.split(',').map(str::trim) {
        let class = CLASSES.iter().find(|(class, _)| *class == given);
        let mut known = Assignor::ALL.into_iter();
        let known = known.find(|known| known.name().eq_ignore_ascii_case(given));
        match class.map(|(_, assignor)| *assignor).or(known) {
            Some(known) => assignors.push(Text::from(known.name())),
            None if ours => reader.problem(format!("{name}: {given:?} is none of {}", Assignor::NAMES.join(", "))),
            None => {}
        }
    }
    if !assignors.is_empty() {
        settings.group_consumer_assignors = assignors;
    }
}

fn migration_policy(reader: &mut Reader<'_>, settings: &mut Settings) {
    let name = format!("{PREFIX}migration.policy");
    let Some((value, _)) = reader.text(&name) else {
        return;
    };
    let mut policies = MigrationPolicy::ALL.into_iter();
    match policies.find(|policy| policy.name().eq_ignore_ascii_case(value.trim())) {
        Some(policy) => settings.group_consumer_migration_policy = policy,
        None => {
            let known = MigrationPolicy::NAMES.join(", ");
            reader.problem(format!("{name}: {value:?} is none of {known}"));
        }
    }
}

/// Kafka's rules between settings (GroupCoordinatorConfig).
fn check(reader: &mut Reader<'_>, settings: &Settings) {
    let session = settings.group_consumer_session_timeout_ms;
    let heartbeat = settings.group_consumer_heartbeat_interval_ms;
    let above = [
        (
            "min.session.timeout.ms",
            settings.group_consumer_min_session_timeout_ms,
            "session.timeout.ms",
            session,
        ),
        (
            "session.timeout.ms",
            session,
            "max.session.timeout.ms",
            settings.group_consumer_max_session_timeout_ms,
        ),
        (
            "min.heartbeat.interval.ms",
            settings.group_consumer_min_heartbeat_interval_ms,
            "heartbeat.interval.ms",
            heartbeat,
        ),
        (
            "heartbeat.interval.ms",
            heartbeat,
            "max.heartbeat.interval.ms",
            settings.group_consumer_max_heartbeat_interval_ms,
        ),
        (
            "min.assignment.interval.ms",
            settings.group_consumer_min_assignment_interval_ms,
            "max.assignment.interval.ms",
            settings.group_consumer_max_assignment_interval_ms,
        ),
    ];
    for (low, low_ms, high, high_ms) in above {
        if low_ms > high_ms {
            reader.problem(format!(
                "{PREFIX}{low}: {low_ms} is above {PREFIX}{high}, which is {high_ms}"
            ));
        }
    }
    if let Some(interval) = settings.group_consumer_assignment_interval_ms {
        let (min, max) = (
            settings.group_consumer_min_assignment_interval_ms,
            settings.group_consumer_max_assignment_interval_ms,
        );
        if interval < min || interval > max {
            reader.problem(format!(
                "{PREFIX}assignment.interval.ms: {interval} is above or below what the groups may have, {min} to {max}"
            ));
        }
    }
    if heartbeat >= session {
        reader.problem(format!(
            "{PREFIX}heartbeat.interval.ms: {heartbeat} is above or equal to {PREFIX}session.timeout.ms, which is {session}"
        ));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::build;
    use super::*;

    fn map(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
        let owned = entries
            .iter()
            .map(|(name, value)| (format!("{PREFIX}{name}"), (*value).to_owned()));
        owned.collect()
    }

    #[test]
    fn a_brokers_values_are_read_and_its_own_assignors_left_out() {
        let classes = "org.apache.kafka.coordinator.group.assignor.RangeAssignor, com.example.Mine";
        let broker = map(&[
            ("assignors", classes),
            ("migration.policy", "DOWNGRADE"),
            ("session.timeout.ms", "50000"),
            ("assignment.interval.ms", "0"),
        ]);
        let settings = build(&broker, &map(&[("max.size", "7")])).unwrap();
        assert_eq!(settings.group_consumer_assignors, [Text::from("range")]);
        assert_eq!(settings.group_consumer_migration_policy, MigrationPolicy::Downgrade);
        assert_eq!(settings.group_consumer_session_timeout_ms, 50_000);
        assert_eq!(settings.group_consumer_assignment_interval_ms, Some(0));
        assert_eq!(settings.group_consumer_max_size, 7);
        let none_of_ours = build(&map(&[("assignors", "com.example.Mine")]), &map(&[])).unwrap();
        assert_eq!(none_of_ours, Settings::default());
    }

    #[test]
    fn consumer_groups_can_be_switched_off() {
        let protocols = |value: &str| BTreeMap::from([(REBALANCE_PROTOCOLS.to_owned(), value.to_owned())]);
        let (classic, both) = (protocols("classic"), protocols("classic, CONSUMER"));
        assert!(!build(&classic, &map(&[])).unwrap().consumer_groups);
        assert!(build(&both, &map(&[])).unwrap().consumer_groups);
        assert!(build(&classic, &both).unwrap().consumer_groups, "ours counts more");
    }

    #[test]
    fn what_cannot_be_is_named() {
        for (ours, problem) in [
            (
                ("assignors", "sticky"),
                "group.consumer.assignors: \"sticky\" is none of uniform, range",
            ),
            (
                ("migration.policy", "up"),
                "group.consumer.migration.policy: \"up\" is none of",
            ),
            (
                ("session.timeout.ms", "60001"),
                "is above group.consumer.max.session.timeout.ms, which is 60000",
            ),
            (
                ("max.heartbeat.interval.ms", "4999"),
                "group.consumer.heartbeat.interval.ms: 5000 is above",
            ),
            (("assignment.interval.ms", "15001"), "15001 is above or below"),
        ] {
            let problems = build(&map(&[]), &map(&[ours])).unwrap_err();
            assert!(
                problems.iter().any(|said| said.contains(problem)),
                "{problem} in {problems:?}"
            );
        }
    }

    #[test]
    fn members_that_are_heard_no_more_often_than_their_sessions_end_are_refused() {
        let ours = map(&[
            ("max.heartbeat.interval.ms", "45000"),
            ("heartbeat.interval.ms", "45000"),
            ("session.timeout.ms", "45000"),
        ]);
        let problems = build(&map(&[]), &ours).unwrap_err();
        let said = "group.consumer.heartbeat.interval.ms: 45000 is above or equal to group.consumer.session.timeout.ms";
        assert!(problems[0].starts_with(said), "{problems:?}");
    }
}
