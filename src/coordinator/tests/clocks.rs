//! A wall clock that is set: sessions do not notice, and retention is counted by what the clock says now.

use super::group_test::GroupTest;
use super::requests::{SESSION_MS, commit_as, commit_of};
use crate::wire::error_code::ErrorCode;

const MINUTE_MS: u64 = 60_000;
const DAY_MS: u64 = 24 * 60 * MINUTE_MS;
/// `offsets.retention.minutes` by default.
const RETENTION_MS: u64 = 7 * DAY_MS;

#[test]
fn a_clock_that_is_set_ends_no_session_and_refuses_no_commit() {
    let mut test = GroupTest::new();
    let ids = test.stable_group(1);
    for (offset, set_ms) in [(1, -3_600_000), (2, 86_400_000), (3, -86_400_000)] {
        test.set_clock(set_ms);
        test.advance_ms(SESSION_MS as u64 - 1);
        assert_eq!(test.commit(commit_as(&ids[0], 1, offset)), [ErrorCode::NONE]);
        assert_eq!(test.heartbeat(&ids[0], 1), ErrorCode::NONE);
        assert_eq!(
            test.fetch("t"),
            offset,
            "the last one counts, whenever it seems to have been"
        );
    }
    assert_eq!(test.restarted().fetch("t"), 3);
}

#[test]
fn a_day_too_far_expires_nothing_early_and_an_hour_too_late_keeps_nothing_for_ever() {
    let mut test = GroupTest::new();
    test.commit(commit_of(1));
    test.set_clock(86_400_000);
    test.advance_ms(11 * MINUTE_MS);
    assert_eq!(test.fetch("t"), 1);
    test.set_clock(-86_400_000 - 3_600_000);
    test.advance_ms(RETENTION_MS);
    assert_eq!(test.fetch("t"), 1, "by that clock 49 minutes are left");
    test.advance_ms(71 * MINUTE_MS);
    assert_eq!(test.fetch("t"), -1);
}
