//! What single groups were given for themselves (resource GROUP of IncrementalAlterConfigs), read back from the upstream. Brokers
//! from 4.1 on tell which groups those are, 4.0 has to be asked about each, older ones have none.

use std::collections::BTreeMap;
use std::sync::Arc;

use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_configs_response::DescribeConfigsResult;
use kafka_protocol::messages::{DescribeConfigsRequest, ListConfigResourcesRequest};
use kafka_protocol::protocol::StrBytes;

use super::UpstreamError;
use super::cluster::ClusterWatch;
use super::node::Node;
use crate::coordinator::group_config::{GroupConfig, GroupSetting};
use crate::coordinator::request::Text;
use crate::wire::error_code::ErrorCode;

/// The resource type of a group.
const GROUP: i8 = 32;
/// The source of a value that was set for the group itself.
const GROUP_CONFIG: i8 = 8;
/// The first version of ListConfigResources that knows types (KIP-1142).
const LEAST_LIST: i16 = 1;
/// The first version of DescribeConfigs that tells sources.
const LEAST_DESCRIBE: i16 = 1;
/// Groups of one question.
const AT_ONCE: usize = 500;

/// What is missing where nothing is told.
const HINT: &str = "; grant Convoke's own user DescribeConfigs on the cluster and on every group";

/// Asks any node for the settings of all groups that have some; `None` where it cannot tell which groups those are.
///
/// # Errors
/// Why the node did not tell; a missing right is named.
pub(super) async fn ask(cluster: &ClusterWatch) -> Result<Option<BTreeMap<Text, GroupConfig>>, UpstreamError> {
    if !cluster.snapshot().has_group_configs() {
        return Ok(Some(BTreeMap::new()));
    }
    let node = cluster.any_node().await?;
    match list(&node).await? {
        Some(groups) => configs(&node, &groups).await.map(Some),
        None => Ok(None),
    }
}

/// Asks any node for the settings of these groups.
///
/// # Errors
/// As [`ask`].
pub(super) async fn ask_about(
    cluster: &ClusterWatch,
    group_ids: &[Text],
) -> Result<BTreeMap<Text, GroupConfig>, UpstreamError> {
    if group_ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let node = cluster.any_node().await?;
    let groups = group_ids
        .iter()
        .map(|group_id| StrBytes::from_string(group_id.to_string()));
    configs(&node, &groups.collect::<Vec<_>>()).await
}

/// The settings of those of the groups that have some.
async fn configs(node: &Arc<Node>, groups: &[StrBytes]) -> Result<BTreeMap<Text, GroupConfig>, UpstreamError> {
    let mut configs = BTreeMap::new();
    let mut told = groups.is_empty();
    for groups in groups.chunks(AT_ONCE) {
        for result in describe(node, groups).await? {
            if ErrorCode(result.error_code).is_none() {
                told = true;
                let config = config(&result);
                if !config.is_empty() {
                    configs.insert(Text::from(result.resource_name.as_str()), config);
                }
            }
        }
    }
    match told {
        true => Ok(configs),
        false => Err(refused(node, "DescribeConfigs", ErrorCode::GROUP_AUTHORIZATION_FAILED)),
    }
}

fn refused(node: &Node, api: &'static str, error: ErrorCode) -> UpstreamError {
    UpstreamError::Refused {
        address: node.address().to_owned(),
        api,
        error,
        hint: HINT.to_owned(),
    }
}

/// The groups that have settings of their own; `None` from a node that cannot tell.
async fn list(node: &Arc<Node>) -> Result<Option<Vec<StrBytes>>, UpstreamError> {
    let request = ListConfigResourcesRequest::default().with_resource_types(vec![GROUP]);
    let answer = match node.call(LEAST_LIST, &request).await {
        Ok(answer) => answer,
        Err(UpstreamError::Refused { error, .. }) if error == ErrorCode::UNSUPPORTED_VERSION => return Ok(None),
        Err(error) => return Err(error),
    };
    let error = ErrorCode(answer.error_code);
    if !error.is_none() {
        return Err(refused(node, "ListConfigResources", error));
    }
    let groups = answer
        .config_resources
        .into_iter()
        .filter(|resource| resource.resource_type == GROUP);
    Ok(Some(groups.map(|resource| resource.resource_name).collect()))
}

async fn describe(node: &Arc<Node>, groups: &[StrBytes]) -> Result<Vec<DescribeConfigsResult>, UpstreamError> {
    let keys = GroupSetting::ALL.map(|setting| StrBytes::from_static_str(setting.name()));
    let resources = groups.iter().map(|group| {
        DescribeConfigsResource::default()
            .with_resource_type(GROUP)
            .with_resource_name(group.clone())
            .with_configuration_keys(Some(keys.to_vec()))
    });
    let request = DescribeConfigsRequest::default().with_resources(resources.collect());
    Ok(node.call(LEAST_DESCRIBE, &request).await?.results)
}

/// What is set; values that are no numbers cannot be set, and are left out.
fn config(result: &DescribeConfigsResult) -> GroupConfig {
    let set = result
        .configs
        .iter()
        .filter(|config| config.config_source == GROUP_CONFIG);
    let mut own = GroupConfig::default();
    for config in set {
        if let Some(setting) = GroupSetting::find(&config.name) {
            let value = config.value.as_ref().and_then(|value| value.trim().parse().ok());
            own.set(setting, value);
        }
    }
    own
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::describe_configs_response::DescribeConfigsResourceResult;

    use super::*;

    #[test]
    fn only_what_the_group_was_given_itself_counts() {
        let config_of = |name: &'static str, value: &'static str, source| {
            DescribeConfigsResourceResult::default()
                .with_name(StrBytes::from_static_str(name))
                .with_value(Some(StrBytes::from_static_str(value)))
                .with_config_source(source)
        };
        let result = DescribeConfigsResult::default().with_configs(vec![
            config_of(GroupSetting::SessionTimeout.name(), "50000", GROUP_CONFIG),
            config_of(GroupSetting::HeartbeatInterval.name(), "5000", 5),
            config_of("share.session.timeout.ms", "1", GROUP_CONFIG),
        ]);
        let expected = GroupConfig {
            session_timeout_ms: Some(50_000),
            ..GroupConfig::default()
        };
        assert_eq!(config(&result), expected);
    }
}
