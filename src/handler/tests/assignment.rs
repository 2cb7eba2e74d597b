//! Client-side assignors: the two requests that compute an assignment, and the heartbeat's fields of our own.

use bytes::{Bytes, BytesMut};

use super::access::rules::{DESCRIBE, READ, Rules, upstream};
use super::access::{checking, forget};
use super::kit::*;
use super::unavailable::setups;
use crate::handler::Answer;
use crate::wire::api::*;
use crate::wire::assignment::install::{InstallAssignmentRequest, InstallAssignmentResponse};
use crate::wire::assignment::prepare::{PrepareAssignmentRequest, PrepareAssignmentResponse};
use crate::wire::codec::{self, Encode, GuardedResponse};

fn prepare(group_id: &str, member_id: &str, member_epoch: i32) -> PrepareAssignmentRequest {
    PrepareAssignmentRequest {
        group_id: string(group_id),
        member_id: string(member_id),
        member_epoch,
    }
}

fn install(group_id: &str, member_id: &str, member_epoch: i32) -> InstallAssignmentRequest {
    InstallAssignmentRequest {
        group_id: string(group_id),
        member_id: string(member_id),
        member_epoch,
        ..InstallAssignmentRequest::default()
    }
}

fn body(request: &impl Encode) -> Bytes {
    let mut body = BytesMut::new();
    codec::encode(request, 0, &mut body).expect("well-formed");
    body.freeze()
}

async fn exchange<T: GuardedResponse>(
    setup: &Setup,
    api_key: i16,
    request: &impl Encode,
    upstream: &mut Upstream,
) -> (T, i16) {
    match setup.handle(api_key, 0, body(request), upstream).await {
        Answer::Reply(body, error) => (codec::decode_response(0, body.freeze()).expect("well-formed"), error.0),
        other => panic!("{other:?}"),
    }
}

/// The errors of both requests with the same ids and epoch, and whether each has a message.
async fn errors(setup: &Setup, ids: (&str, &str, i32), upstream: &mut Upstream) -> [(i16, bool); 2] {
    let (group_id, member_id, epoch) = ids;
    let request = prepare(group_id, member_id, epoch);
    let (prepared, counted): (PrepareAssignmentResponse, _) =
        exchange(setup, CONSUMER_GROUP_PREPARE_ASSIGNMENT, &request, upstream).await;
    assert_eq!(prepared.error_code, counted);
    let request = install(group_id, member_id, epoch);
    let (installed, counted): (InstallAssignmentResponse, _) =
        exchange(setup, CONSUMER_GROUP_INSTALL_ASSIGNMENT, &request, upstream).await;
    assert_eq!(installed.error_code, counted);
    [
        (prepared.error_code, prepared.error_message.is_some()),
        (installed.error_code, installed.error_message.is_some()),
    ]
}

#[tokio::test]
async fn who_may_not_read_the_group_is_told_nothing_else() {
    let setup = checking().await;
    for (operations, ids, error) in [
        (DESCRIBE, ("g", "me", 1), 30),
        (DESCRIBE, ("g", "", -1), 30),
        (READ, ("g", "", 1), 42),
        (READ, ("g", "me", 1), 69),
        (0, ("delegated-g", "me", 1), 30),
    ] {
        forget(&setup).await;
        let mut upstream = upstream(Rules::group(operations));
        let errors = errors(&setup, ids, &mut upstream).await.map(|(error, _)| error);
        assert_eq!(errors, [error; 2], "{ids:?}");
    }
    forget(&setup).await;
    let gone = errors(&setup, ("g", "me", 1), &mut Upstream::gone()).await;
    assert_eq!(gone, [(15, false); 2], "no answer is no access");
}

#[tokio::test]
async fn what_cannot_be_asked_for_is_refused_with_the_reason() {
    let setup = Setup::new().await;
    for (ids, error) in [
        (("", "", -1), 24),
        (("g", "", -1), 42),
        (("g", "me", -1), 42),
        (("delegated-g", "me", 1), 69),
        (("nothing", "me", 1), 69),
    ] {
        let errors = errors(&setup, ids, &mut Upstream::unused()).await;
        assert_eq!(errors, [(error, true); 2], "{ids:?}");
    }
}

#[tokio::test]
async fn while_nothing_can_be_looked_at_computing_has_to_wait() {
    for (setup, error) in setups().await {
        let errors = errors(&setup, ("g", "me", 1), &mut Upstream::unused()).await;
        assert_eq!(errors, [(error, false); 2]);
    }
}
