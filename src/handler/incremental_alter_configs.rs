//! IncrementalAlterConfigs (44), as far as it is about groups of an upstream that is too old to give groups settings.
//!
//! v1 flexible. All else goes up: a request that names no such group as it came, one that does without it.

use bytes::Bytes;
use kafka_protocol::messages::incremental_alter_configs_request::AlterConfigsResource;
use kafka_protocol::messages::incremental_alter_configs_response::AlterConfigsResourceResponse;
use kafka_protocol::messages::{IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse};

use super::access::Access;
use super::call::{Call, Handled};
use super::convert::{optional_text, text};
use super::group_configs::{self, Alteration, Answered, Change};
use super::merge::first_error;
use super::{Answer, ClientUpstream};
use crate::wire::codec;
use crate::wire::error_code::ErrorCode;

pub(super) async fn handle(call: &Call<'_>, body: Bytes, access: &mut Access<'_, impl ClientUpstream>) -> Handled {
    // What cannot be read here is the upstream's to refuse.
    let Ok(request) = codec::decode_request::<IncrementalAlterConfigsRequest>(call.version, body) else {
        return Ok(Answer::Forward);
    };
    let (ours, rest): (Vec<_>, Vec<_>) = request
        .resources
        .iter()
        .partition(|resource| group_configs::is_ours(call, resource.resource_type, &resource.resource_name));
    if ours.is_empty() {
        return Ok(Answer::Forward);
    }
    let alterations: Vec<_> = ours.into_iter().map(alteration).collect();
    let rest = rest.into_iter().cloned().collect();
    let theirs = theirs(call, access.upstream, rest, request.validate_only).await;
    let ours = group_configs::alter(call, access, &alterations, false, request.validate_only).await;
    let named = request.resources.iter();
    let named = named.map(|resource| (resource.resource_type, &resource.resource_name));
    let answered = group_configs::merged(call, named, ours, theirs);
    let error = first_error(answered.iter().map(|resource| resource.error_code));
    let response =
        IncrementalAlterConfigsResponse::default().with_responses(answered.into_iter().map(to_wire).collect());
    call.reply(&response, error)
}

fn alteration(resource: &AlterConfigsResource) -> Alteration {
    let configs = resource.configs.iter().map(|config| Change {
        name: text(&config.name),
        operation: config.config_operation,
        value: optional_text(config.value.as_ref()),
    });
    Alteration {
        group_id: text(&resource.resource_name),
        configs: configs.collect(),
    }
}

/// What the upstream answers about the rest of the request.
async fn theirs(
    call: &Call<'_>,
    upstream: &mut impl ClientUpstream,
    rest: Vec<AlterConfigsResource>,
    validate_only: bool,
) -> Result<Vec<Answered>, ErrorCode> {
    if rest.is_empty() {
        return Ok(Vec::new());
    }
    let request = IncrementalAlterConfigsRequest::default()
        .with_resources(rest)
        .with_validate_only(validate_only);
    let response: IncrementalAlterConfigsResponse = call.ask(upstream, call.version, &request).await?;
    call.services.cluster.change_configs();
    Ok(response.responses.into_iter().map(from_wire).collect())
}

fn from_wire(resource: AlterConfigsResourceResponse) -> Answered {
    Answered {
        error_code: resource.error_code,
        message: resource.error_message,
        resource_type: resource.resource_type,
        name: resource.resource_name,
    }
}

fn to_wire(resource: Answered) -> AlterConfigsResourceResponse {
    AlterConfigsResourceResponse::default()
        .with_error_code(resource.error_code)
        .with_error_message(resource.message)
        .with_resource_type(resource.resource_type)
        .with_resource_name(resource.name)
}
