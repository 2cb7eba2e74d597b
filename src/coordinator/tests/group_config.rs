//! What single groups are given for themselves, where that is kept here.

use super::consumer_client::{at_once, join_of, shard_with};
use super::group_test::GroupTest;
use crate::coordinator::event::Event;
use crate::coordinator::group_config::{GroupConfig, GroupSetting};
use crate::coordinator::input::{Input, Presence, UpstreamGroup};
use crate::coordinator::record::Record;
use crate::coordinator::request::{
    AlterGroupConfigRequest, AlterGroupConfigResponse, DescribeGroupConfigResponse, Request, Response,
};
use crate::coordinator::settings::Settings;

const SESSION: GroupSetting = GroupSetting::SessionTimeout;
const HEARTBEAT: GroupSetting = GroupSetting::HeartbeatInterval;

fn setting(changes: &[(GroupSetting, Option<i32>)]) -> AlterGroupConfigRequest {
    AlterGroupConfigRequest {
        group_id: "g".into(),
        changes: changes.to_vec(),
        replaces: false,
        validate_only: false,
    }
}

fn alter(test: &mut GroupTest, request: AlterGroupConfigRequest) -> AlterGroupConfigResponse {
    match test.call(Request::AlterGroupConfig(request)) {
        Response::AlterGroupConfig(response) => response,
        other => panic!("{other:?}"),
    }
}

fn described(test: &mut GroupTest) -> DescribeGroupConfigResponse {
    match test.call(Request::DescribeGroupConfig { group_id: "g".into() }) {
        Response::DescribeGroupConfig(response) => response,
        other => panic!("{other:?}"),
    }
}

fn own(test: &mut GroupTest) -> (Option<i32>, Option<i32>) {
    let own = described(test).own;
    (own.session_timeout_ms, own.heartbeat_interval_ms)
}

#[test]
fn what_a_group_is_given_holds_at_once_and_after_a_restart() {
    let mut test = shard_with(at_once());
    assert_eq!(test.beat(join_of("a")).heartbeat_interval_ms, 5_000);
    let given = setting(&[(SESSION, Some(50_000)), (HEARTBEAT, Some(7_000))]);
    assert_eq!(alter(&mut test, given), AlterGroupConfigResponse::Done);
    assert!(
        test.events
            .contains(&Event::GroupConfigChanged { group_id: "g".into() })
    );
    assert_eq!(test.beat(join_of("a")).heartbeat_interval_ms, 7_000);

    let mut test = test.restarted();
    assert_eq!(own(&mut test), (Some(50_000), Some(7_000)));
    assert_eq!(test.beat(join_of("a")).heartbeat_interval_ms, 7_000);
    test.advance_ms(49_999);
    assert_eq!(&*test.state(), "Stable");
    test.advance_ms(1);
    assert_eq!(&*test.state(), "Empty");
}

#[test]
fn what_is_not_named_stays_unless_it_is_replaced() {
    let mut test = shard_with(at_once());
    alter(&mut test, setting(&[(SESSION, Some(50_000))]));
    alter(&mut test, setting(&[(HEARTBEAT, Some(6_000))]));
    assert_eq!(own(&mut test), (Some(50_000), Some(6_000)));
    let replacing = AlterGroupConfigRequest {
        replaces: true,
        ..setting(&[(HEARTBEAT, Some(8_000))])
    };
    alter(&mut test, replacing);
    assert_eq!(own(&mut test), (None, Some(8_000)));
    alter(&mut test, setting(&[(HEARTBEAT, None)]));
    assert_eq!(described(&mut test).own, GroupConfig::default());
    let last = test.records.last();
    assert!(
        matches!(last, Some(Record::GroupConfig { value: None, .. })),
        "{last:?}"
    );
}

#[test]
fn nothing_is_written_for_nothing() {
    let mut test = shard_with(at_once());
    alter(&mut test, setting(&[(SESSION, Some(50_000))]));
    let written = test.records.len();
    alter(&mut test, setting(&[(SESSION, Some(50_000))]));
    alter(&mut test, setting(&[]));
    let looked_at = AlterGroupConfigRequest {
        validate_only: true,
        ..setting(&[(SESSION, Some(55_000))])
    };
    assert_eq!(alter(&mut test, looked_at), AlterGroupConfigResponse::Done);
    assert_eq!(test.records.len(), written);
    assert_eq!(own(&mut test), (Some(50_000), None));
}

#[test]
fn what_the_brokers_do_not_allow_changes_nothing() {
    let mut test = shard_with(at_once());
    for (changes, setting_at_fault, bounds) in [
        (vec![(SESSION, Some(44_999))], SESSION, 45_000..=60_000),
        (
            vec![(SESSION, Some(60_001)), (HEARTBEAT, Some(1))],
            HEARTBEAT,
            5_000..=15_000,
        ),
        (
            vec![(GroupSetting::AssignmentInterval, Some(15_001))],
            GroupSetting::AssignmentInterval,
            0..=15_000,
        ),
    ] {
        let refused = AlterGroupConfigResponse::OutOfBounds {
            setting: setting_at_fault,
            bounds,
        };
        assert_eq!(alter(&mut test, setting(&changes)), refused);
    }
    assert_eq!(described(&mut test).own, GroupConfig::default());
    assert!(
        !test
            .records
            .iter()
            .any(|record| matches!(record, Record::GroupConfig { .. }))
    );
}

#[test]
fn a_group_is_shown_what_it_has_otherwise() {
    let mut test = shard_with(Settings {
        group_consumer_session_timeout_ms: 46_000,
        ..Settings::default()
    });
    let of_brokers = GroupConfig {
        session_timeout_ms: Some(46_000),
        heartbeat_interval_ms: Some(5_000),
        assignment_interval_ms: None,
    };
    assert_eq!(described(&mut test).of_brokers, of_brokers);
}

#[test]
fn a_group_that_is_run_upstream_can_be_given_settings_for_later() {
    let mut test = shard_with(at_once());
    test.upstream = Some(Ok(UpstreamGroup {
        presence: Presence::Live {
            group_type: "consumer".into(),
            protocol_type: "consumer".into(),
            state: "Stable".into(),
        },
        offsets: Vec::new(),
    }));
    test.send_beat(join_of("a"));
    assert_eq!(test.inspected.len(), 1);
    alter(&mut test, setting(&[(SESSION, Some(50_000))]));
    assert_eq!(own(&mut test), (Some(50_000), None));
    // That alone does not make it ours.
    let taken_over = test
        .records
        .iter()
        .any(|record| matches!(record, Record::GroupOwned { .. }));
    assert!(!taken_over);
}

#[test]
fn where_the_upstream_has_a_place_for_them_they_count_no_more() {
    let mut test = shard_with(at_once());
    alter(&mut test, setting(&[(HEARTBEAT, Some(7_000))]));
    assert_eq!(test.beat(join_of("a")).heartbeat_interval_ms, 7_000);
    let upgraded = Settings {
        keeps_group_configs: false,
        ..at_once()
    };
    test.input(Input::Settings(upgraded.clone().into()));
    assert_eq!(test.beat(join_of("b")).heartbeat_interval_ms, 5_000);
    let told = Event::GroupConfigsPassedOver { groups: 1 };
    assert_eq!(test.events.iter().filter(|event| **event == told).count(), 1);
    test.input(Input::Settings(upgraded.into()));
    assert_eq!(test.events.iter().filter(|event| **event == told).count(), 1);
}
