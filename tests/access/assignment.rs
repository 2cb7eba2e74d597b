//! The requests of client-side assignors, which no broker could answer beside Convoke: whoever may heartbeat in a group may make
//! them, and nobody else.

use bytes::BytesMut;
use convoke::wire::assignment::install::{InstallAssignmentRequest, InstallAssignmentResponse};
use convoke::wire::assignment::prepare::{PrepareAssignmentRequest, PrepareAssignmentResponse};
use convoke::wire::codec::{self, Encode, GuardedResponse};
use convoke::wire::{api, error_code::ErrorCode};
use convoke_support::Result;
use kafka_protocol::protocol::StrBytes;

use crate::client::Client;
use crate::heartbeat;
use crate::rules::{GROUPS, Side};

/// What a user is answered as it should not be.
pub async fn differences(user: &str, client: &Client) -> Result<Vec<String>> {
    let mut differences = Vec::new();
    for group in GROUPS {
        let group_id = Side::Convoke.group(group);
        let may_read = client.ask(4, &heartbeat(&group_id)).await?.error_code != denied();
        let prepared: PrepareAssignmentResponse =
            ask(client, api::CONSUMER_GROUP_PREPARE_ASSIGNMENT, &prepare(&group_id)).await?;
        let installed: InstallAssignmentResponse =
            ask(client, api::CONSUMER_GROUP_INSTALL_ASSIGNMENT, &install(&group_id)).await?;
        for (what, error) in [("prepare", prepared.error_code), ("install", installed.error_code)] {
            let is_told = if may_read {
                expected(group).contains(&ErrorCode(error))
            } else {
                error == denied()
            };
            if !is_told {
                let error = ErrorCode(error);
                differences.push(format!(
                    "{user}, {what} in group {group:?}, may read: {may_read}, got {error}\n"
                ));
            }
        }
        assert!(
            prepared.members.is_empty() && prepared.topics.is_empty(),
            "{user}, {group}: {prepared:?}"
        );
    }
    Ok(differences)
}

const fn denied() -> i16 {
    ErrorCode::GROUP_AUTHORIZATION_FAILED.0
}

/// What somebody who is nobody's member is told.
const fn expected(group: &str) -> &'static [ErrorCode] {
    if group.is_empty() {
        &[ErrorCode::INVALID_GROUP_ID]
    } else {
        &[ErrorCode::GROUP_ID_NOT_FOUND, ErrorCode::UNKNOWN_MEMBER_ID]
    }
}

fn prepare(group_id: &str) -> PrepareAssignmentRequest {
    PrepareAssignmentRequest {
        group_id: StrBytes::from_string(group_id.to_owned()),
        member_id: StrBytes::from_static_str("ghost"),
        member_epoch: 1,
    }
}

fn install(group_id: &str) -> InstallAssignmentRequest {
    InstallAssignmentRequest {
        group_id: StrBytes::from_string(group_id.to_owned()),
        member_id: StrBytes::from_static_str("ghost"),
        member_epoch: 1,
        ..InstallAssignmentRequest::default()
    }
}

async fn ask<T: GuardedResponse>(client: &Client, api_key: i16, request: &impl Encode) -> Result<T> {
    let mut body = BytesMut::new();
    codec::encode(request, 0, &mut body)?;
    Ok(codec::decode_response(0, client.raw(api_key, 0, &body).await?)?)
}
