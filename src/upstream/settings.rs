//! The settings that have to do with groups: read from a broker (DescribeConfigs), overridden by our own file, and the
//! coordinator's settings made of both.

mod consumer;

use std::collections::BTreeMap;
use std::sync::Arc;

use kafka_protocol::messages::DescribeConfigsRequest;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_configs_response::{DescribeConfigsResourceResult, DescribeConfigsResult};
use kafka_protocol::protocol::StrBytes;

use super::UpstreamError;
use super::cluster::ClusterWatch;
use super::node::Node;
use crate::config::settings;
use crate::coordinator::settings::Settings;
use crate::wire::error_code::ErrorCode;

/// The resource type of a broker's own configuration.
const BROKER: i8 = 4;
/// The source of a value that nobody has set.
const DEFAULT_CONFIG: i8 = 5;
/// Kafka's default of `offsets.topic.num.partitions`.
const DEFAULT_PARTITIONS: u32 = 50;

/// What checks ACLs, if anything does. It can only be set in a broker's file, and is read at its start.
const AUTHORIZER: &str = "authorizer.class.name";

pub const MIN_SESSION_TIMEOUT: &str = "group.min.session.timeout.ms";
pub const MAX_SESSION_TIMEOUT: &str = "group.max.session.timeout.ms";
pub const INITIAL_REBALANCE_DELAY: &str = "group.initial.rebalance.delay.ms";
pub const GROUP_MAX_SIZE: &str = "group.max.size";
pub const METADATA_MAX_BYTES: &str = "offset.metadata.max.bytes";
pub const COMMIT_TIMEOUT: &str = "offsets.commit.timeout.ms";
pub const RETENTION_MINUTES: &str = "offsets.retention.minutes";
pub const RETENTION_CHECK_INTERVAL: &str = "offsets.retention.check.interval.ms";
pub const OFFSETS_PARTITIONS: &str = "offsets.topic.num.partitions";

/// Asks any node for its own settings.
///
/// # Errors
/// The last node's error when none answers, or what right is missing.
pub(super) async fn ask(cluster: &ClusterWatch) -> Result<BTreeMap<String, String>, UpstreamError> {
    let mut last = UpstreamError::Unreachable {
        address: "the upstream".to_owned(),
        reason: "no node is known yet".to_owned(),
    };
    for id in cluster.snapshot().nodes.keys() {
        match ask_node(cluster, *id).await {
            Ok(settings) => return Ok(settings),
            // Another node has the same rights.
            Err(error @ UpstreamError::Refused { .. }) => return Err(error),
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn ask_node(cluster: &ClusterWatch, id: i32) -> Result<BTreeMap<String, String>, UpstreamError> {
    let node = cluster.node(id).await?;
    let results = describe(&node, id, None).await?;
    Ok(results.iter().flat_map(group_settings).collect())
}

/// Whether the node checks ACLs. One that does not say so plainly does.
///
/// # Errors
/// When it did not tell, or a missing right.
pub(super) async fn has_authorizer(node: &Arc<Node>, id: i32) -> Result<bool, UpstreamError> {
    let key = StrBytes::from_static_str(AUTHORIZER);
    let results = describe(node, id, Some(vec![key])).await?;
    let mut configs = results.iter().flat_map(|result| &result.configs);
    let authorizer = configs.find(|config| config.name.as_str() == AUTHORIZER);
    let value = authorizer.and_then(|config| config.value.as_ref());
    Ok(value.is_none_or(|value| !value.is_empty()))
}

/// Asks a node for its own settings; `None`: for all of them.
async fn describe(
    node: &Arc<Node>,
    id: i32,
    keys: Option<Vec<StrBytes>>,
) -> Result<Vec<DescribeConfigsResult>, UpstreamError> {
    let resource = DescribeConfigsResource::default()
        .with_resource_type(BROKER)
        .with_resource_name(StrBytes::from_string(id.to_string()))
        .with_configuration_keys(keys);
    let request = DescribeConfigsRequest::default().with_resources(vec![resource]);
    let answer = node.call(1, &request).await?;
    let mut errors = answer.results.iter().map(|result| ErrorCode(result.error_code));
    match errors.find(|error| !error.is_none()) {
        Some(error) => Err(refused(node.address(), error)),
        None => Ok(answer.results),
    }
}

fn refused(address: &str, error: ErrorCode) -> UpstreamError {
    let hint = if error == ErrorCode::CLUSTER_AUTHORIZATION_FAILED {
        "; grant Convoke's own user DescribeConfigs on the cluster, for the group and offset settings of the brokers"
    } else {
        ""
    };
    UpstreamError::Refused {
        address: address.to_owned(),
        api: "DescribeConfigs",
        error,
        hint: hint.to_owned(),
    }
}

fn group_settings(result: &DescribeConfigsResult) -> impl Iterator<Item = (String, String)> {
    let about_groups =
        |name: &str| name.starts_with("group.") || name.starts_with("offsets.") || name == METADATA_MAX_BYTES;
    // What nobody has set about consumer groups is as it is here: an old broker's default says only how far it had come.
    let only_default = |config: &DescribeConfigsResourceResult| {
        config.config_source == DEFAULT_CONFIG
            && (config.name.starts_with(consumer::PREFIX) || config.name.as_str() == consumer::REBALANCE_PROTOCOLS)
    };
    let configs = result
        .configs
        .iter()
        .filter(move |config| about_groups(config.name.as_str()) && !only_default(config));
    configs.filter_map(|config| {
        let value = config.value.as_ref()?;
        Some((config.name.to_string(), value.to_string()))
    })
}

/// The coordinator's settings: Kafka's defaults, over them the broker's values, over them ours.
///
/// # Errors
/// Every value that cannot be, with its name and what it may be, and every override that nothing reads.
pub fn build(broker: &BTreeMap<String, String>, overrides: &BTreeMap<String, String>) -> Result<Settings, Vec<String>> {
    let mut reader = Reader {
        broker,
        overrides,
        problems: Vec::new(),
    };
    for name in overrides.keys().filter(|name| settings::find(name).is_none()) {
        let known: Vec<_> = settings::SETTINGS.iter().map(|setting| setting.name).collect();
        let known = known.join(", ");
        reader
            .problems
            .push(format!("{name}: not a setting of the coordinator; those are {known}"));
    }
    let default = Settings::default();
    let i32_max = i64::from(i32::MAX);
    let minutes = reader.number(RETENTION_MINUTES, 1, i32_max);
    let settings = Settings {
        group_min_session_timeout_ms: reader.i32(MIN_SESSION_TIMEOUT, 1, default.group_min_session_timeout_ms),
        group_max_session_timeout_ms: reader.i32(MAX_SESSION_TIMEOUT, 1, default.group_max_session_timeout_ms),
        group_initial_rebalance_delay_ms: reader.i32(
            INITIAL_REBALANCE_DELAY,
            0,
            default.group_initial_rebalance_delay_ms,
        ),
        group_max_size: reader.i32(GROUP_MAX_SIZE, 1, default.group_max_size),
        offset_metadata_max_bytes: reader.i32(METADATA_MAX_BYTES, 0, default.offset_metadata_max_bytes),
        offsets_commit_timeout_ms: reader.i32(COMMIT_TIMEOUT, 1, default.offsets_commit_timeout_ms),
        offsets_retention_ms: minutes.map_or(default.offsets_retention_ms, |minutes| minutes * 60_000),
        offsets_retention_check_interval_ms: reader
            .number(RETENTION_CHECK_INTERVAL, 1, i64::MAX)
            .unwrap_or(default.offsets_retention_check_interval_ms),
        ..consumer::read(&mut reader)
    };
    reader.number(OFFSETS_PARTITIONS, 1, i32_max);
    let (min, max) = (
        settings.group_min_session_timeout_ms,
        settings.group_max_session_timeout_ms,
    );
    if min > max {
        let problem = format!("{MIN_SESSION_TIMEOUT}: {min} is above {MAX_SESSION_TIMEOUT}, which is {max}");
        reader.problems.push(problem);
    }
    if reader.problems.is_empty() {
        Ok(settings)
    } else {
        Err(reader.problems)
    }
}

/// How many partitions the upstream will give `__consumer_offsets`, as far as is known before it exists.
#[must_use]
pub fn offsets_partitions(broker: &BTreeMap<String, String>, overrides: &BTreeMap<String, String>) -> u32 {
    let value = overrides
        .get(OFFSETS_PARTITIONS)
        .or_else(|| broker.get(OFFSETS_PARTITIONS));
    let partitions = value.and_then(|value| value.trim().parse().ok());
    partitions
        .filter(|partitions| *partitions > 0)
        .unwrap_or(DEFAULT_PARTITIONS)
}

struct Reader<'a> {
    broker: &'a BTreeMap<String, String>,
    overrides: &'a BTreeMap<String, String>,
    problems: Vec<String>,
}

impl Reader<'_> {
    fn number(&mut self, name: &str, min: i64, max: i64) -> Option<i64> {
        let (value, source) = match (self.overrides.get(name), self.broker.get(name)) {
            (Some(value), _) => (value, ""),
            (None, Some(value)) => (value, " (from the broker)"),
            (None, None) => return None,
        };
        let number = value.trim().parse().ok();
        let number = number.filter(|number| (min..=max).contains(number));
        if number.is_none() {
            let problem = format!("{name}{source}: {value:?} is not a whole number from {min} to {max}");
            self.problems.push(problem);
        }
        number
    }

    /// A value as it stands, and whether it is ours.
    fn text(&self, name: &str) -> Option<(String, bool)> {
        let ours = self.overrides.get(name).map(|value| (value.clone(), true));
        ours.or_else(|| Some((self.broker.get(name)?.clone(), false)))
    }

    fn problem(&mut self, problem: String) {
        self.problems.push(problem);
    }

    fn i32(&mut self, name: &str, min: i32, default: i32) -> i32 {
        let number = self.number(name, i64::from(min), i64::from(i32::MAX));
        number.and_then(|number| i32::try_from(number).ok()).unwrap_or(default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
        let owned = entries
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        owned.collect()
    }

    #[test]
    fn nothing_given_means_kafkas_defaults() {
        assert_eq!(build(&map(&[]), &map(&[])), Ok(Settings::default()));
        assert_eq!(offsets_partitions(&map(&[]), &map(&[])), 50);
    }

    #[test]
    fn the_brokers_values_count_and_ours_count_more() {
        let broker = map(&[
            ("group.initial.rebalance.delay.ms", "100"),
            ("offsets.retention.minutes", "5"),
            ("offsets.topic.num.partitions", "7"),
        ]);
        let ours = map(&[("offsets.retention.minutes", "6"), ("group.max.size", " 10 ")]);
        let settings = build(&broker, &ours).unwrap();
        assert_eq!(settings.group_initial_rebalance_delay_ms, 100);
        assert_eq!(settings.offsets_retention_ms, 360_000);
        assert_eq!(settings.group_max_size, 10);
        assert_eq!(offsets_partitions(&broker, &ours), 7);
        assert_eq!(
            offsets_partitions(&broker, &map(&[("offsets.topic.num.partitions", "3")])),
            3
        );
    }

    #[test]
    fn the_longest_retention_that_can_be_said_is_as_long_as_it_says() {
        let settings = build(&map(&[("offsets.retention.minutes", "2147483647")]), &map(&[])).unwrap();
        assert_eq!(settings.offsets_retention_ms, 2_147_483_647 * 60_000);
    }

    #[test]
    fn every_bad_value_is_named_with_where_it_came_from() {
        let broker = map(&[("offset.metadata.max.bytes", "many")]);
        let ours = map(&[
            ("group.max.size", "0"),
            ("group.min.session.timeout.ms", "99999999999"),
            ("offsets.topic.num.partitions", "-1"),
            ("gruop.max.size", "5"),
        ]);
        let problems = build(&broker, &ours).unwrap_err();
        assert_eq!(problems.len(), 5, "{problems:?}");
        assert!(problems[0].starts_with("gruop.max.size: not a setting"));
        for start in [
            "group.min.session.timeout.ms: \"99999999999\" is not a whole number from 1",
            "group.max.size: \"0\" is not",
            "offset.metadata.max.bytes (from the broker): \"many\" is not",
            "offsets.topic.num.partitions: \"-1\" is not",
        ] {
            assert!(
                problems.iter().any(|problem| problem.starts_with(start)),
                "{start} in {problems:?}"
            );
        }
    }

    #[test]
    fn a_least_session_timeout_above_the_greatest_is_refused() {
        let problems = build(&map(&[]), &map(&[("group.min.session.timeout.ms", "1800001")])).unwrap_err();
        assert!(
            problems[0].contains("is above group.max.session.timeout.ms, which is 1800000"),
            "{problems:?}"
        );
    }
}
