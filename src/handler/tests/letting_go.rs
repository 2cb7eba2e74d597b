//! What a request has brought is let go of: its frame when nobody needs it any more, however long the answer takes.

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::{
    ConsumerGroupHeartbeatRequest, HeartbeatResponse, JoinGroupRequest, JoinGroupResponse, SyncGroupResponse,
};

use super::kit::*;
use super::membership::{heartbeat, join, joined, leave, sync};
use super::offset_commit::commit;
use crate::handler::Answer;
use crate::wire::api::*;

/// Longer than anything that is kept inline or in a static place.
const LONG: usize = 100_000;

fn long_join(group_id: &str, member_id: &str) -> JoinGroupRequest {
    let protocol = JoinGroupRequestProtocol::default()
        .with_name(string("range"))
        .with_metadata(vec![7; LONG].into());
    join(group_id, member_id)
        .with_protocols(vec![protocol])
        .with_reason(Some(string("because")))
}

/// Waits until nobody but the test has the frame; the answer is not there by then.
async fn let_go(frame: &Bytes, answer: &mut (impl Future<Output = Answer> + Unpin)) {
    let freed = async {
        while !frame.is_unique() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        biased;
        answer = answer => panic!("it should wait: {answer:?}"),
        () = freed => {}
    }
}

#[tokio::test(start_paused = true)]
async fn a_join_and_a_sync_that_wait_for_their_group_hold_no_byte_of_their_frames() {
    let setup = Setup::new().await;
    let leader = joined(&setup, "g", 3).await.member_id;
    let (mut upstream, frame) = (Upstream::unused(), encode(&long_join("g", ""), 3));
    let others = setup.another_connection();
    let mut parked = Box::pin(others.handle(JOIN_GROUP, 3, frame.clone(), &mut upstream));
    let_go(&frame, &mut parked).await;
    // The first comes again, and the round is complete.
    let _: JoinGroupResponse = setup.ask(JOIN_GROUP, 3, &join("g", &leader)).await;
    let Answer::Reply(body, _) = parked.await else {
        panic!("no reply");
    };
    assert!(upstream.let_go);
    let follower: JoinGroupResponse = decode(body.freeze(), 3);
    assert_eq!((follower.error_code, follower.generation_id), (0, 2));

    let (mut upstream, frame) = (Upstream::unused(), encode(&sync("g", &follower.member_id, 2, 3), 3));
    let mut parked = Box::pin(others.handle(SYNC_GROUP, 3, frame.clone(), &mut upstream));
    let_go(&frame, &mut parked).await;
    let synced: SyncGroupResponse = setup.ask(SYNC_GROUP, 3, &sync("g", &leader, 2, 3)).await;
    assert_eq!(synced.error_code, 0);
    assert!(matches!(parked.await, Answer::Reply(..)));
    assert!(upstream.let_go);
    let beat: HeartbeatResponse = setup.ask(HEARTBEAT, 3, &heartbeat("g", &follower.member_id, 2)).await;
    assert_eq!(beat.error_code, 0);
}

#[tokio::test(start_paused = true)]
async fn what_all_groups_keep_of_joins_is_bounded_and_free_again_when_their_members_are_gone() {
    let setup = Setup::new().await;
    let held = || setup.services.metrics.group_memory.get();
    let fitting = GROUP_MEMORY_MAX / LONG;
    let mut refused = 0;
    for number in 0..2 * fitting {
        let group_id = format!("g{number}");
        let joined: JoinGroupResponse = setup.ask(JOIN_GROUP, 3, &long_join(&group_id, "")).await;
        match joined.error_code {
            0 => assert_eq!(joined.members[0].metadata.len(), LONG),
            // COORDINATOR_NOT_AVAILABLE
            15 => refused += 1,
            error => panic!("error {error}"),
        }
    }
    assert_eq!(refused, fitting);
    assert_eq!(held(), i64::try_from(fitting * LONG).expect("small"));
    let joined: JoinGroupResponse = setup.ask(JOIN_GROUP, 3, &join("small", "")).await;
    assert_eq!(joined.error_code, 0);
    // Nobody is heard of any more.
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!(held(), 0);
    let joined: JoinGroupResponse = setup.ask(JOIN_GROUP, 3, &long_join("g", "")).await;
    assert_eq!(joined.error_code, 0);
}

/// Whatever the coordinator keeps of a request is a copy.
#[tokio::test]
async fn nothing_that_is_kept_holds_a_frame() {
    let setup = Setup::new().await;
    let member_id = joined(&setup, "g", 9).await.member_id;
    let consumer = ConsumerGroupHeartbeatRequest::default()
        .with_group_id(string("consumers").into())
        .with_member_id(string("me"))
        .with_instance_id(Some(string("instance")))
        .with_rack_id(Some(string("rack")))
        .with_rebalance_timeout_ms(20_000)
        .with_subscribed_topic_names(Some(vec![string("orders").into(), string("payments").into()]))
        .with_server_assignor(Some(string("range")))
        .with_topic_partitions(Some(Vec::new()));
    let requests = [
        (JOIN_GROUP, 9, encode(&long_join("g", &member_id), 9)),
        (SYNC_GROUP, 5, encode(&sync("g", &member_id, 2, 5), 5)),
        (OFFSET_COMMIT, 9, encode(&commit("direct", &[("orders", &[0, 1])]), 9)),
        (CONSUMER_GROUP_HEARTBEAT, 1, encode(&consumer, 1)),
        (LEAVE_GROUP, 5, encode(&leave("g", &member_id, 5), 5)),
    ];
    for (api_key, version, frame) in requests {
        let answer = setup
            .handle(api_key, version, frame.clone(), &mut Upstream::unused())
            .await;
        assert!(
            matches!(answer, Answer::Reply(_, crate::wire::error_code::ErrorCode::NONE)),
            "api {api_key}: {answer:?}"
        );
        assert!(frame.is_unique(), "api {api_key} keeps its frame");
    }
}
