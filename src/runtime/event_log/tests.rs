use super::*;
use crate::coordinator::event::RebalanceReason;
use crate::runtime::tests::log_lines::Lines;

/// The lines that the events make, without their times.
fn told(log: &mut EventLog, events: &[Event]) -> Vec<String> {
    let lines = Lines::default();
    let _capturing = lines.capture();
    events
        .iter()
        .for_each(|event| log.tell(event, Duration::from_millis(1)));
    lines.taken()
}

fn event_log() -> EventLog {
    EventLog::new(Arc::new(Metrics::new()))
}

#[tokio::test(start_paused = true)]
async fn a_rebalance_says_of_which_group_why_and_for_how_long() {
    let group_id = Text::from("payments");
    let started = Event::RebalanceStarted {
        group_id: Arc::clone(&group_id),
        generation_id: 4,
        reason: RebalanceReason::SessionExpired,
        member_id: Some(Text::from("m-1")),
        client_reason: None,
    };
    let completed = Event::RebalanceCompleted {
        group_id,
        generation_id: 5,
        members: 3,
        took_ms: 1_250,
    };
    let lines = told(&mut event_log(), &[started, completed]);
    assert_eq!(
        lines,
        [
            r#"INFO rebalance started group="payments" generation=4 reason="session_expired" member="m-1""#,
            r#"INFO rebalance completed group="payments" generation=5 members=3 took_ms=1250"#,
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_client_says_cannot_break_a_line() {
    let left = Event::MemberRemoved {
        group_id: Text::from("g"),
        member_id: Text::from("m"),
        group_instance_id: None,
        client_id: Text::from("evil\nINFO all is well"),
        client_host: Text::from("/127.0.0.1"),
        reason: RebalanceReason::MemberLeft,
        client_reason: Some(Text::from("\u{1b}[31mred\u{7}")),
    };
    let lines = told(&mut event_log(), &[left]);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].bytes().all(|byte| byte.is_ascii_graphic() || byte == b' '),
        "{lines:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn commits_are_counted_and_not_logged() {
    let metrics = Arc::new(Metrics::new());
    let mut log = EventLog::new(Arc::clone(&metrics));
    assert!(told(&mut log, &[Event::OffsetsCommitted { count: 7 }]).is_empty());
    let shown = metrics.render().expect("text");
    assert!(shown.contains("convoke_offsets_committed_total 7\n"), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_cannot_be_asked_is_told_once_in_a_while_for_each_group() {
    let mut log = event_log();
    let failed = |group_id: &str| Event::InspectFailed {
        group_id: Text::from(group_id),
        reason: "out of reach".to_owned(),
    };
    assert_eq!(
        told(&mut log, &[failed("a"), failed("a"), failed("b"), failed("a")]).len(),
        2
    );
    let others: Vec<Event> = (0..100).map(|number| failed(&format!("group-{number}"))).collect();
    assert_eq!(told(&mut log, &others).len(), TOLD_MAX - 2, "more would only repeat it");
    tokio::time::advance(REPEAT_AFTER).await;
    assert_eq!(told(&mut log, &[failed("a"), failed("a")]).len(), 1);
}
