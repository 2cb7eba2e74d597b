//! DescribeConfigs (32), as far as it is about groups of an upstream that is too old to give groups settings.
//!
//! v3 types and documentation. v4 flexible. All else goes up: a request that names no such group as it came, one that does without
//! it. What the user may not see comes last, as Kafka has it. Groups show the settings that there are here, and their order, types and
//! documentation are those of Kafka 4.4.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym,
};
use kafka_protocol::messages::{DescribeConfigsRequest, DescribeConfigsResponse};
use kafka_protocol::protocol::StrBytes;

use super::access::{Access, ConfigOperation};
use super::call::{Call, Handled};
use super::convert::text;
use super::group_configs::{self, Refusal, key};
use super::merge::{Theirs, first_error};
use super::{Answer, ClientUpstream};
use crate::coordinator::group_config::GroupSetting;
use crate::coordinator::request::{DescribeGroupConfigResponse, Response, Text};
use crate::wire::codec;
use crate::wire::error_code::ErrorCode;

/// The settings in the order of Kafka's answers.
const SHOWN: [GroupSetting; 3] = [
    GroupSetting::SessionTimeout,
    GroupSetting::AssignmentInterval,
    GroupSetting::HeartbeatInterval,
];
/// The first version with types and documentation.
const TYPES_SINCE: i16 = 3;
/// The type of whole numbers.
const INT: i8 = 3;

/// Where a value comes from, by Kafka's codes.
const STATIC_BROKER_CONFIG: i8 = 4;
const DEFAULT_CONFIG: i8 = 5;
const GROUP_CONFIG: i8 = 8;

type Outcome = Result<DescribeGroupConfigResponse, Refusal>;

pub(super) async fn handle(call: &Call<'_>, body: Bytes, access: &mut Access<'_, impl ClientUpstream>) -> Handled {
    // What cannot be read here is the upstream's to refuse.
    let Ok(request) = codec::decode_request::<DescribeConfigsRequest>(call.version, body) else {
        return Ok(Answer::Forward);
    };
    let is_ours = |resource: &DescribeConfigsResource| {
        group_configs::is_ours(call, resource.resource_type, &resource.resource_name)
    };
    let group_ids = request.resources.iter().filter(|resource| is_ours(resource));
    let group_ids: BTreeSet<Text> = group_ids.map(|resource| text(&resource.resource_name)).collect();
    if group_ids.is_empty() {
        return Ok(Answer::Forward);
    }
    let rest = request.resources.iter().filter(|resource| !is_ours(resource)).cloned();
    let theirs = theirs(call, access.upstream, &request, rest.collect()).await;
    let keyed = |result: DescribeConfigsResult| (key(result.resource_type, &result.resource_name), result);
    let mut theirs = Theirs::of(theirs.map(|theirs| theirs.into_iter().map(keyed)));
    let ours = ours(call, access, group_ids).await;
    let results = request.resources.iter().map(|resource| {
        if is_ours(resource) {
            let unknown = || Refusal::silent(ErrorCode::UNKNOWN_SERVER_ERROR);
            let outcome = ours.get(resource.resource_name.as_str()).cloned();
            return result(call, &request, resource, outcome.unwrap_or_else(|| Err(unknown())));
        }
        let their = theirs.take(&key(resource.resource_type, &resource.resource_name));
        their.unwrap_or_else(|error| result(call, &request, resource, Err(Refusal::silent(error))))
    });
    let (hidden, mut results): (Vec<_>, Vec<_>) = results.partition(|result| is_hidden(ErrorCode(result.error_code)));
    results.extend(hidden);
    let error = first_error(results.iter().map(|result| result.error_code));
    call.reply(&DescribeConfigsResponse::default().with_results(results), error)
}

const fn is_hidden(error: ErrorCode) -> bool {
    matches!(
        error,
        ErrorCode::TOPIC_AUTHORIZATION_FAILED
            | ErrorCode::GROUP_AUTHORIZATION_FAILED
            | ErrorCode::CLUSTER_AUTHORIZATION_FAILED
    )
}

/// What the upstream answers about the rest of the request.
async fn theirs(
    call: &Call<'_>,
    upstream: &mut impl ClientUpstream,
    request: &DescribeConfigsRequest,
    rest: Vec<DescribeConfigsResource>,
) -> Result<Vec<DescribeConfigsResult>, ErrorCode> {
    if rest.is_empty() {
        return Ok(Vec::new());
    }
    let request = request.clone().with_resources(rest);
    let response: DescribeConfigsResponse = call.ask(upstream, call.version, &request).await?;
    Ok(response.results)
}

/// What the groups were given, as far as the user may see it.
async fn ours(
    call: &Call<'_>,
    access: &mut Access<'_, impl ClientUpstream>,
    mut group_ids: BTreeSet<Text>,
) -> BTreeMap<Text, Outcome> {
    let denied = group_configs::denied(access, group_ids.clone(), ConfigOperation::Describe).await;
    group_ids.retain(|group_id| !denied.contains_key(group_id));
    let mut outcomes: BTreeMap<Text, Outcome> = denied
        .into_iter()
        .map(|(group_id, refusal)| (group_id, Err(refusal)))
        .collect();
    if let Some(nameless) = group_ids.take("") {
        outcomes.insert(nameless, Err(Refusal::request("Group name must not be empty")));
    }
    let group_ids: Vec<Text> = group_ids.into_iter().collect();
    let described = group_configs::describe(call, &group_ids).await;
    outcomes.extend(described.into_iter().map(|(group_id, response)| {
        let outcome = match response {
            Response::DescribeGroupConfig(described) => Ok(described),
            Response::Unavailable { error } => Err(Refusal::silent(error)),
            _ => Err(Refusal::silent(ErrorCode::UNKNOWN_SERVER_ERROR)),
        };
        (group_id, outcome)
    }));
    outcomes
}

fn result(
    call: &Call<'_>,
    request: &DescribeConfigsRequest,
    resource: &DescribeConfigsResource,
    outcome: Outcome,
) -> DescribeConfigsResult {
    let result = DescribeConfigsResult::default()
        .with_resource_type(resource.resource_type)
        .with_resource_name(resource.resource_name.clone());
    match outcome {
        Ok(described) => {
            // No keys are all keys.
            let keys = resource.configuration_keys.as_ref().filter(|keys| !keys.is_empty());
            let wanted =
                |setting: &GroupSetting| keys.is_none_or(|keys| keys.iter().any(|key| key.as_str() == setting.name()));
            let configs = SHOWN.into_iter().filter(wanted);
            let configs = configs.map(|setting| shown(call, request, setting, &described));
            result
                .with_error_message(Some(StrBytes::default()))
                .with_configs(configs.collect())
        }
        Err(refusal) => result
            .with_error_code(refusal.error.0)
            .with_error_message(refusal.message.map(StrBytes::from_string)),
    }
}

/// One setting of a group: its value, and what it would be without, by and by.
fn shown(
    call: &Call<'_>,
    request: &DescribeConfigsRequest,
    setting: GroupSetting,
    described: &DescribeGroupConfigResponse,
) -> DescribeConfigsResourceResult {
    let default = setting.default_value();
    let own = described.own.get(setting);
    // Whether somebody has set what is the default as well is not known.
    let of_brokers = described.of_brokers.get(setting).filter(|value| *value != default);
    let values = [
        (setting.name(), own, GROUP_CONFIG),
        (setting.broker_name(), of_brokers, STATIC_BROKER_CONFIG),
        (setting.broker_name(), Some(default), DEFAULT_CONFIG),
    ];
    let synonyms = values.into_iter().filter_map(|(name, value, source)| {
        Some(
            DescribeConfigsSynonym::default()
                .with_name(StrBytes::from_static_str(name))
                .with_value(Some(StrBytes::from_string(value?.to_string())))
                .with_source(source),
        )
    });
    let synonyms: Vec<_> = synonyms.collect();
    let mut shown = DescribeConfigsResourceResult::default().with_name(StrBytes::from_static_str(setting.name()));
    if let Some(first) = synonyms.first() {
        shown = shown.with_value(first.value.clone()).with_config_source(first.source);
    }
    if request.include_synonyms {
        shown = shown.with_synonyms(synonyms);
    }
    if call.version >= TYPES_SINCE {
        let documentation = request.include_documentation.then(|| documentation(setting));
        shown = shown
            .with_config_type(INT)
            .with_documentation(documentation.map(StrBytes::from_static_str));
    }
    shown
}

const fn documentation(setting: GroupSetting) -> &'static str {
    match setting {
        GroupSetting::SessionTimeout => "The timeout to detect client failures when using the consumer group protocol.",
        GroupSetting::HeartbeatInterval => "The heartbeat interval given to the members of a consumer group.",
        GroupSetting::AssignmentInterval => "The interval between assignment updates for a consumer group.",
    }
}
