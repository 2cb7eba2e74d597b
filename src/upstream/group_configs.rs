//! What single groups were given for themselves (resource GROUP of IncrementalAlterConfigs), read back from the upstream. Brokers
//! from 4.1 on tell which groups those are; older ones are taken to have none.

use std::collections::BTreeMap;
use std::sync::Arc;

use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_configs_response::DescribeConfigsResult;
use kafka_protocol::messages::{DescribeConfigsRequest, ListConfigResourcesRequest};
use kafka_protocol::protocol::StrBytes;

use super::UpstreamError;
use super::cluster::ClusterWatch;
use super::node::Node;
use crate::coordinator::request::Text;
use crate::coordinator::settings::GroupConfig;
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

const SESSION_TIMEOUT: &str = "consumer.session.timeout.ms";
const HEARTBEAT_INTERVAL: &str = "consumer.heartbeat.interval.ms";
const ASSIGNMENT_INTERVAL: &str = "consumer.assignment.interval.ms";

/// Asks any node for the settings of all groups that have some.
///
/// # Errors
/// Why the node did not tell; a missing right is named.
pub(super) async fn ask(cluster: &ClusterWatch) -> Result<BTreeMap<Text, GroupConfig>, UpstreamError> {
    let node = cluster.any_node().await?;
    let mut configs = BTreeMap::new();
    for groups in list(&node).await?.chunks(AT_ONCE) {
        for result in describe(&node, groups).await? {
            if ErrorCode(result.error_code).is_none() {
                configs.insert(Text::from(result.resource_name.as_str()), config(&result));
            }
        }
    }
    Ok(configs)
}

/// The groups that have settings of their own.
async fn list(node: &Arc<Node>) -> Result<Vec<StrBytes>, UpstreamError> {
    let request = ListConfigResourcesRequest::default().with_resource_types(vec![GROUP]);
    let answer = match node.call(LEAST_LIST, &request).await {
        Ok(answer) => answer,
        Err(UpstreamError::Refused { error, .. }) if error == ErrorCode::UNSUPPORTED_VERSION => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let error = ErrorCode(answer.error_code);
    if !error.is_none() {
        return Err(UpstreamError::Refused {
            address: node.address().to_owned(),
            api: "ListConfigResources",
            error,
            hint: "; grant Convoke's own user DescribeConfigs on the cluster and on every group".to_owned(),
        });
    }
    let groups = answer
        .config_resources
        .into_iter()
        .filter(|resource| resource.resource_type == GROUP);
    Ok(groups.map(|resource| resource.resource_name).collect())
}

async fn describe(node: &Arc<Node>, groups: &[StrBytes]) -> Result<Vec<DescribeConfigsResult>, UpstreamError> {
    let keys = [SESSION_TIMEOUT, HEARTBEAT_INTERVAL, ASSIGNMENT_INTERVAL].map(StrBytes::from_static_str);
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
        let slot = match config.name.as_str() {
            SESSION_TIMEOUT => &mut own.session_timeout_ms,
            HEARTBEAT_INTERVAL => &mut own.heartbeat_interval_ms,
            ASSIGNMENT_INTERVAL => &mut own.assignment_interval_ms,
            _ => continue,
        };
        *slot = config.value.as_ref().and_then(|value| value.trim().parse().ok());
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
            config_of(SESSION_TIMEOUT, "50000", GROUP_CONFIG),
            config_of(HEARTBEAT_INTERVAL, "5000", 5),
            config_of("share.session.timeout.ms", "1", GROUP_CONFIG),
        ]);
        let expected = GroupConfig {
            session_timeout_ms: Some(50_000),
            ..GroupConfig::default()
        };
        assert_eq!(config(&result), expected);
    }
}
