//! A scripted broker at the other end of a pipe, on virtual time.

use super::*;
use tokio::io::{DuplexStream, duplex};

/// Metadata v9 is flexible on both sides; these tests only look at heads.
const KEY: i16 = 3;
const VERSION: i16 = 9;

const LIMITS: Limits = Limits {
    request_timeout: Duration::from_secs(5),
    frame_max: 1_000,
    in_flight: 3,
};

fn connect() -> (Connection, DuplexStream) {
    let (ours, broker) = duplex(64 * 1024);
    (Connection::over(ours, "broker:9092".into(), LIMITS), broker)
}

/// Reads one request; its correlation id and body.
async fn read_request(broker: &mut DuplexStream) -> (i32, Vec<u8>) {
    let len = broker.read_i32().await.unwrap();
    let mut frame = vec![0; usize::try_from(len).unwrap()];
    broker.read_exact(&mut frame).await.unwrap();
    let head = crate::wire::frame::RequestHead::parse(&frame)
        .unwrap()
        .complete()
        .unwrap();
    assert_eq!((head.api_key, head.api_version), (KEY, VERSION));
    assert_eq!(head.client_id(&frame).as_deref(), Some("convoke"));
    (head.correlation_id, frame.split_off(head.body_offset))
}

async fn write_answer(broker: &mut DuplexStream, correlation_id: i32, body: &[u8]) {
    let len = i32::try_from(body.len() + 5).unwrap();
    broker.write_i32(len).await.unwrap();
    broker.write_i32(correlation_id).await.unwrap();
    broker.write_u8(0).await.unwrap();
    broker.write_all(body).await.unwrap();
}

fn spawn_call(connection: &Connection, body: &'static [u8]) -> tokio::task::JoinHandle<Result<Bytes, UpstreamError>> {
    let connection = connection.clone();
    tokio::spawn(async move { connection.call(KEY, VERSION, body).await })
}

fn is_malformed(result: &Result<Bytes, UpstreamError>, reason: &str) -> bool {
    matches!(result, Err(UpstreamError::Malformed { reason: said, .. }) if said.contains(reason))
}

#[tokio::test(start_paused = true)]
async fn pipelined_requests_get_their_own_answers() {
    let (connection, mut broker) = connect();
    let first = connection.send(KEY, VERSION, b"one").await.unwrap();
    let second = connection.send(KEY, VERSION, b"two").await.unwrap();
    let (id, body) = read_request(&mut broker).await;
    assert_eq!(body, b"one");
    let (next_id, body) = read_request(&mut broker).await;
    assert_eq!(body, b"two");
    write_answer(&mut broker, id, b"ONE").await;
    write_answer(&mut broker, next_id, b"TWO").await;
    assert_eq!(second.body().await.unwrap(), "TWO");
    assert_eq!(first.body().await.unwrap(), "ONE");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_byte_by_byte_is_put_together() {
    let (ours, mut broker) = duplex(1);
    let connection = Connection::over(ours, "broker:9092".into(), LIMITS);
    let call = spawn_call(&connection, b"ask");
    let (id, _) = read_request(&mut broker).await;
    write_answer(&mut broker, id, b"answer").await;
    assert_eq!(call.await.unwrap().unwrap(), "answer");
}

#[tokio::test(start_paused = true)]
async fn a_time_out_ends_the_connection_for_everybody() {
    let (connection, mut broker) = connect();
    let calls = [
        spawn_call(&connection, b"a"),
        spawn_call(&connection, b"b"),
        spawn_call(&connection, b"c"),
    ];
    for _ in 0..3 {
        read_request(&mut broker).await;
    }
    let expected = UpstreamError::Timeout {
        address: "broker:9092".into(),
        timeout_ms: 5_000,
    };
    for call in calls {
        assert_eq!(call.await.unwrap(), Err(expected.clone()));
    }
    assert!(connection.is_closed());
    assert_eq!(connection.call(KEY, VERSION, b"d").await, Err(expected));
    assert_eq!(
        broker.read_u8().await.unwrap_err().kind(),
        std::io::ErrorKind::UnexpectedEof
    );
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_stops_reading_times_out_too() {
    let (ours, _broker) = duplex(16);
    let connection = Connection::over(ours, "broker:9092".into(), LIMITS);
    let calls: Vec<_> = (0..10)
        .map(|_| spawn_call(&connection, b"a long enough body"))
        .collect();
    for call in calls {
        assert!(matches!(call.await.unwrap(), Err(UpstreamError::Timeout { .. })));
    }
}

#[tokio::test(start_paused = true)]
async fn everybody_is_told_when_the_broker_closes() {
    let (connection, mut broker) = connect();
    let calls = [spawn_call(&connection, b"a"), spawn_call(&connection, b"b")];
    read_request(&mut broker).await;
    drop(broker);
    for call in calls {
        let error = call.await.unwrap().unwrap_err();
        assert!(
            matches!(error, UpstreamError::Closed { .. } | UpstreamError::Unreachable { .. }),
            "{error}"
        );
    }
    connection.closed().await;
}

#[tokio::test(start_paused = true)]
async fn the_answer_to_another_request_ends_the_connection() {
    let (connection, mut broker) = connect();
    let calls = [spawn_call(&connection, b"a"), spawn_call(&connection, b"b")];
    let (id, _) = read_request(&mut broker).await;
    write_answer(&mut broker, id + 1, b"").await;
    for call in calls {
        assert!(is_malformed(&call.await.unwrap(), "the answer to request"));
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_nobody_asked_for_ends_the_connection() {
    let (connection, mut broker) = connect();
    write_answer(&mut broker, 0, b"").await;
    connection.closed().await;
    assert!(is_malformed(
        &connection.call(KEY, VERSION, b"").await,
        "nobody asked for"
    ));
}

#[tokio::test(start_paused = true)]
async fn lengths_out_of_bounds_are_refused_before_the_bytes_come() {
    for len in [1_001, i32::MAX, -1, 0] {
        let (connection, mut broker) = connect();
        let call = spawn_call(&connection, b"a");
        read_request(&mut broker).await;
        // Behind an answer: what comes first may also be no broker's.
        write_answer(&mut broker, 0, b"").await;
        call.await.unwrap().unwrap();
        let call = spawn_call(&connection, b"b");
        read_request(&mut broker).await;
        broker.write_i32(len).await.unwrap();
        assert!(is_malformed(&call.await.unwrap(), ""), "{len}");
    }
}

#[tokio::test(start_paused = true)]
async fn first_bytes_that_are_no_frame_are_told_from_an_answer_gone_wrong() {
    for len in [1_001, i32::MAX, -1] {
        let (connection, mut broker) = connect();
        let call = spawn_call(&connection, b"a");
        read_request(&mut broker).await;
        broker.write_i32(len).await.unwrap();
        let error = call.await.unwrap().unwrap_err();
        assert!(matches!(error, UpstreamError::Unusable { .. }), "{len}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_more_than_the_limit_wait_for_answers() {
    let (connection, mut broker) = connect();
    // The oldest is the reader's, three wait behind it, one is held back by the writer, three are queued.
    for _ in 0..8 {
        connection.send(KEY, VERSION, b"x").await.unwrap();
        tokio::task::yield_now().await;
    }
    let ninth = tokio::time::timeout(Duration::from_secs(1), connection.send(KEY, VERSION, b"x")).await;
    assert!(ninth.is_err());
    let (id, _) = read_request(&mut broker).await;
    write_answer(&mut broker, id, b"").await;
    connection.send(KEY, VERSION, b"x").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_gives_up_does_not_shift_the_answers() {
    let (connection, mut broker) = connect();
    drop(connection.send(KEY, VERSION, b"one").await.unwrap());
    let second = connection.send(KEY, VERSION, b"two").await.unwrap();
    for answer in [b"ONE", b"TWO"] {
        let (id, _) = read_request(&mut broker).await;
        write_answer(&mut broker, id, answer).await;
    }
    assert_eq!(second.body().await.unwrap(), "TWO");
}

#[tokio::test(start_paused = true)]
async fn the_socket_closes_with_the_last_handle() {
    let (connection, mut broker) = connect();
    let other = connection.clone();
    drop(connection);
    assert!(!other.is_closed());
    drop(other);
    assert_eq!(
        broker.read_u8().await.unwrap_err().kind(),
        std::io::ErrorKind::UnexpectedEof
    );
}

#[tokio::test(start_paused = true)]
async fn whoever_closes_it_gives_the_reason() {
    let (connection, mut broker) = connect();
    let call = spawn_call(&connection, b"a");
    read_request(&mut broker).await;
    let reason = UpstreamError::Authentication {
        address: "broker:9092".into(),
        reason: "expired".into(),
    };
    connection.close(reason.clone());
    assert_eq!(call.await.unwrap(), Err(reason));
}
