//! The brokers' settings and those of single groups: read at the start, and followed from then on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::status::Status;
use crate::config::Config;
use crate::coordinator::group_config::GroupConfig;
use crate::coordinator::group_patterns::GroupPatterns;
use crate::coordinator::request::{ListGroupsRequest, Request, Response, Text};
use crate::coordinator::settings::{ClassicAssignmentRule, ExternalAssignorRule, Settings};
use crate::proxy::stop::Stop;
use crate::runtime::Coordinator;
use crate::upstream::cluster::ClusterWatch;
use crate::upstream::{Upstream, UpstreamError, settings};

/// Pauses between two questions at the start, doubled each time.
const PAUSE_FIRST: Duration = Duration::from_millis(250);
const PAUSE_LONGEST: Duration = Duration::from_secs(10);
/// How often they are read again: they may be changed while brokers run.
const REFRESH: Duration = Duration::from_secs(300);
/// Settings that somebody changes through Convoke are read again so long after: the broker that is asked has heard of it by then.
const SETTLES: Duration = Duration::from_millis(500);

/// So many members of a group may each have as much of an assignor's metadata as one may; more share what these have.
const MEMBERS_WITH_MOST_METADATA: usize = 64;

/// What to do where a node cannot be reached: its address is what the brokers say of themselves.
const AS_ADVERTISED: &str =
    "; the brokers advertise this address (advertised.listeners), and Convoke has to reach it as well";

/// Asks until a broker tells. A missing right is said once; then Kafka's defaults and our own settings hold.
pub(super) async fn ask(upstream: &Upstream, status: &Status) -> BTreeMap<String, String> {
    let mut pause = PAUSE_FIRST;
    loop {
        match upstream.broker_settings().await {
            Ok(settings) => return settings,
            Err(error @ UpstreamError::Refused { .. }) => {
                tracing::warn!("{error}; until then Kafka's defaults hold where `settings` says nothing");
                return BTreeMap::new();
            }
            Err(error) => {
                let is_unreachable = matches!(error, UpstreamError::Unreachable { .. });
                let to_do = if is_unreachable { AS_ADVERTISED } else { "" };
                let failure = format!("cannot read the brokers' settings yet: {error}{to_do}");
                tracing::warn!("{failure}");
                status.cannot_read_settings(failure);
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_LONGEST);
    }
}

/// Adds the groups' own settings, as far as they can be read now.
pub(super) async fn with_groups(upstream: &Upstream, settings: Settings) -> Arc<Settings> {
    let group_configs = match upstream.group_configs().await {
        Ok(Some(configs)) => Arc::new(configs),
        Ok(None) => {
            // Each group is asked about as soon as it is known which groups there are.
            upstream.cluster().change_configs();
            Arc::default()
        }
        Err(error) => {
            tracing::warn!("cannot read the settings of single groups, which count as not set: {error}");
            Arc::default()
        }
    };
    Arc::new(Settings {
        group_configs,
        keeps_group_configs: !upstream.cluster().snapshot().has_group_configs(),
        ..settings
    })
}

/// Adds the rules of our own configuration, which hold until the next start.
pub(super) fn with_rules(config: &Config, settings: Settings) -> Settings {
    let external = config.assignors.iter().map(|rule| ExternalAssignorRule {
        name: Text::from(&*rule.name),
        groups: GroupPatterns::new(&rule.groups),
        always: rule.always,
    });
    let metadata_max = config.limits.assignor_metadata_max;
    let rules = config.groups.assign.iter().map(|rule| ClassicAssignmentRule {
        groups: GroupPatterns::new(&rule.groups),
        assignor: rule.assignor.as_deref().map(Text::from),
        fallback: rule.fallback,
    });
    Settings {
        coordinator_assigned: rules.collect(),
        external_assignors: external.collect(),
        assignor_metadata_max_bytes: metadata_max,
        assignor_metadata_group_max_bytes: MEMBERS_WITH_MOST_METADATA * metadata_max,
        ..settings
    }
}

/// The groups' own settings. Brokers that do not tell which groups have some are asked about our consumer groups.
async fn group_configs(
    upstream: &Upstream,
    coordinator: &Coordinator,
) -> Result<BTreeMap<Text, GroupConfig>, UpstreamError> {
    if let Some(configs) = upstream.group_configs().await? {
        return Ok(configs);
    }
    let consumer_groups = Request::ListGroups(ListGroupsRequest {
        types: vec![Text::from("consumer")],
        ..ListGroupsRequest::default()
    });
    let mut group_ids = Vec::new();
    for (_, response) in coordinator.call_all(consumer_groups).await {
        if let Response::ListGroups(response) = response {
            group_ids.extend(response.groups.into_iter().map(|group| group.group_id));
        }
    }
    upstream.configs_of_groups(&group_ids).await
}

/// Resolves when it is the upstream that has a place for the settings of single groups, and they are taken to be kept here, or the
/// other way round: its nodes were upgraded, or their versions were not known before.
async fn place_changed(cluster: &ClusterWatch, kept_here: bool) {
    let mut pictures = cluster.subscribe();
    // The sender is the watch's own, so waiting cannot fail.
    let _ = pictures
        .wait_for(|_| cluster.snapshot().has_group_configs() == kept_here)
        .await;
}

/// Follows changes. What cannot be read now stays as it was.
pub(super) async fn follow(
    upstream: Upstream,
    overrides: BTreeMap<String, String>,
    mut current: Arc<Settings>,
    coordinator: Coordinator,
    stop: Stop,
) {
    loop {
        tokio::select! {
            () = stop.draining().begun() => return,
            () = tokio::time::sleep(REFRESH) => {}
            () = upstream.cluster().configs_changed() => tokio::time::sleep(SETTLES).await,
            () = place_changed(upstream.cluster(), current.keeps_group_configs) => {}
        }
        let mut next = Settings::clone(&current);
        next.keeps_group_configs = !upstream.cluster().snapshot().has_group_configs();
        match upstream
            .broker_settings()
            .await
            .map(|broker| settings::build(&broker, &overrides))
        {
            Ok(Ok(settings)) => {
                next = Settings {
                    group_configs: next.group_configs,
                    coordinator_assigned: next.coordinator_assigned,
                    keeps_group_configs: next.keeps_group_configs,
                    external_assignors: next.external_assignors,
                    assignor_metadata_max_bytes: next.assignor_metadata_max_bytes,
                    assignor_metadata_group_max_bytes: next.assignor_metadata_group_max_bytes,
                    ..settings
                };
            }
            Ok(Err(problems)) => tracing::warn!("the brokers' settings are not taken over: {}", problems.join("; ")),
            Err(error) => tracing::debug!("cannot read the brokers' settings: {error}"),
        }
        match group_configs(&upstream, &coordinator).await {
            Ok(configs) => next.group_configs = Arc::new(configs),
            Err(error @ UpstreamError::Refused { .. }) => {
                tracing::warn!("cannot read the settings of single groups: {error}");
            }
            Err(error) => tracing::debug!("cannot read the settings of single groups: {error}"),
        }
        if next != *current {
            tracing::info!(
                groups_with_their_own = next.group_configs.len(),
                "settings of the brokers or of single groups have changed and hold from now on"
            );
            current = Arc::new(next);
            coordinator.set_settings(Arc::clone(&current));
        }
    }
}
