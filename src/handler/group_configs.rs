//! What single groups were given for themselves (resource GROUP), where the upstream is too old to have that: then it is kept
//! here. Checks, their order and their words are those of Kafka 4.4 (`ConfigAdminManager`, `ControllerConfigurationValidator`,
//! `GroupConfig`).

use std::collections::{BTreeMap, BTreeSet};

use kafka_protocol::protocol::StrBytes;

use super::ClientUpstream;
use super::access::{Access, ConfigOperation};
use super::call::Call;
use super::merge::Theirs;
use crate::coordinator::group_config::GroupSetting;
use crate::coordinator::request::{AlterGroupConfigRequest, AlterGroupConfigResponse, Request, Response, Text};
use crate::upstream::cluster::Cluster;
use crate::wire::api;
use crate::wire::error_code::ErrorCode;
use crate::wire::frame::RequestHead;

/// The resource type of a group.
pub(super) const GROUP: i8 = 32;
/// The first version of DescribeConfigs that is read here; the one before is older than resource types beside topics and brokers.
const LEAST_DESCRIBE: i16 = 1;
/// Groups that are altered or looked at at a time.
const AT_ONCE: usize = 64;

/// The operations of IncrementalAlterConfigs, by Kafka's codes.
pub(super) const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

/// Whether a request of an API that is split may name what is answered here; else it goes up unread.
pub(super) fn may_be_named(head: &RequestHead, cluster: &Cluster) -> bool {
    let is_read = head.api_key != api::DESCRIBE_CONFIGS || head.api_version >= LEAST_DESCRIBE;
    is_read && !cluster.has_group_configs()
}

/// Whether what is said of the resource is answered here. A group that a rule leaves with the upstream is not.
pub(super) fn is_ours(call: &Call<'_>, resource_type: i8, name: &str) -> bool {
    resource_type == GROUP && !call.is_delegated(name)
}

/// Why something about a resource is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) error: ErrorCode,
    pub(super) message: Option<String>,
}

impl Refusal {
    pub(super) const fn silent(error: ErrorCode) -> Self {
        Self { error, message: None }
    }

    fn config(message: String) -> Self {
        Self {
            error: ErrorCode::INVALID_CONFIG,
            message: Some(message),
        }
    }

    pub(super) fn request(message: &str) -> Self {
        Self {
            error: ErrorCode::INVALID_REQUEST,
            message: Some(message.to_owned()),
        }
    }

    pub(super) fn denied() -> Self {
        Self {
            error: ErrorCode::GROUP_AUTHORIZATION_FAILED,
            message: Some("Group authorization failed.".to_owned()),
        }
    }
}

/// What is answered about one resource that was to be altered.
pub(super) struct Answered {
    pub(super) error_code: i16,
    pub(super) message: Option<StrBytes>,
    pub(super) resource_type: i8,
    pub(super) name: StrBytes,
}

/// The answers about the resources in the order in which they were named, from ours, which have that order, and the upstream's.
pub(super) fn merged<'r>(
    call: &Call<'_>,
    named: impl Iterator<Item = (i8, &'r StrBytes)>,
    ours: Vec<Result<(), Refusal>>,
    theirs: Result<Vec<Answered>, ErrorCode>,
) -> Vec<Answered> {
    let keyed = |answered: Answered| (key(answered.resource_type, &answered.name), answered);
    let mut theirs = Theirs::of(theirs.map(|theirs| theirs.into_iter().map(keyed)));
    let mut ours = ours.into_iter();
    let answered = named.map(|(resource_type, name)| {
        let outcome = match is_ours(call, resource_type, name) {
            true => ours.next().unwrap_or(Ok(())),
            false => match theirs.take(&key(resource_type, name)) {
                Ok(theirs) => return theirs,
                Err(error) => Err(Refusal::silent(error)),
            },
        };
        let refusal = outcome.err().unwrap_or_else(|| Refusal::silent(ErrorCode::NONE));
        Answered {
            error_code: refusal.error.0,
            message: refusal.message.map(StrBytes::from_string),
            resource_type,
            name: name.clone(),
        }
    });
    answered.collect()
}

/// What tells resources apart.
pub(super) fn key(resource_type: i8, name: &str) -> Text {
    Text::from(format!("{resource_type}:{name}"))
}

/// One group of a request, and what it is to be given.
pub(super) struct Alteration {
    pub(super) group_id: Text,
    pub(super) configs: Vec<Change>,
}

pub(super) struct Change {
    pub(super) name: Text,
    pub(super) operation: i8,
    pub(super) value: Option<Text>,
}

/// Alters groups as far as the user may, and says what came of each, in the order of the alterations. `replaces`: whatever is
/// not named is taken away.
pub(super) async fn alter(
    call: &Call<'_>,
    access: &mut Access<'_, impl ClientUpstream>,
    alterations: &[Alteration],
    replaces: bool,
    validate_only: bool,
) -> Vec<Result<(), Refusal>> {
    let mut outcomes = checked_by_form(alterations);
    let granted = alterations.iter().zip(&outcomes).filter(|(_, outcome)| outcome.is_ok());
    let granted: BTreeSet<Text> = granted
        .map(|(alteration, _)| Text::clone(&alteration.group_id))
        .collect();
    let refused = denied(access, granted, ConfigOperation::Alter).await;
    let mut open = Vec::new();
    for (alteration, outcome) in alterations.iter().zip(&mut outcomes) {
        if outcome.is_ok() {
            match refused.get(&alteration.group_id) {
                Some(refusal) => *outcome = Err(refusal.clone()),
                None => open.push((alteration, outcome)),
            }
        }
    }
    // A broker fails over such a request as a whole.
    let is_known = |change: &Change| (SET..=SUBTRACT).contains(&change.operation);
    if !open
        .iter()
        .all(|(alteration, _)| alteration.configs.iter().all(is_known))
    {
        for (_, outcome) in open {
            *outcome = Err(Refusal::silent(ErrorCode::UNKNOWN_SERVER_ERROR));
        }
        return outcomes;
    }
    let mut asked = Vec::new();
    for (alteration, outcome) in open {
        match changes(alteration) {
            Ok(changes) => {
                let request = AlterGroupConfigRequest {
                    group_id: Text::clone(&alteration.group_id),
                    changes,
                    replaces,
                    validate_only,
                };
                asked.push((request, outcome));
            }
            Err(refusal) => *outcome = Err(refusal),
        }
    }
    for some in asked.chunks_mut(AT_ONCE) {
        let requests = some.iter().map(|(request, _)| {
            let group_id = Text::clone(&request.group_id);
            (group_id, Request::AlterGroupConfig(request.clone()))
        });
        let responses = call.services.coordinator.call_many(requests.collect()).await;
        for ((_, outcome), response) in some.iter_mut().zip(responses) {
            **outcome = altered(response);
        }
    }
    outcomes
}

/// What a broker finds wrong before it asks who may.
fn checked_by_form(alterations: &[Alteration]) -> Vec<Result<(), Refusal>> {
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for alteration in alterations {
        *times.entry(&alteration.group_id).or_default() += 1;
    }
    let checked = alterations.iter().map(|alteration| {
        if times.get(&*alteration.group_id).is_some_and(|times| *times > 1) {
            return Err(Refusal::request("Each resource must appear at most once."));
        }
        let mut names = BTreeSet::new();
        if !alteration.configs.iter().all(|change| names.insert(&change.name)) {
            return Err(Refusal::request("Error due to duplicate config keys"));
        }
        let nulls = alteration
            .configs
            .iter()
            .filter(|change| change.operation != DELETE && change.value.is_none());
        let nulls: Vec<&str> = nulls.map(|change| &*change.name).collect();
        if nulls.is_empty() {
            Ok(())
        } else {
            let message = format!("Null value not supported for : {}", nulls.join(", "));
            Err(Refusal::request(&message))
        }
    });
    checked.collect()
}

/// The groups of which the user may not do it, or of which that is not known.
pub(super) async fn denied(
    access: &mut Access<'_, impl ClientUpstream>,
    group_ids: BTreeSet<Text>,
    operation: ConfigOperation,
) -> BTreeMap<Text, Refusal> {
    match access.group_configs(&group_ids, operation).await {
        Ok(denied) => denied
            .into_iter()
            .map(|group_id| (group_id, Refusal::denied()))
            .collect(),
        Err(error) => group_ids
            .into_iter()
            .map(|group_id| (group_id, Refusal::silent(error)))
            .collect(),
    }
}

/// What a controller makes of it, or what it finds wrong.
fn changes(alteration: &Alteration) -> Result<Vec<(GroupSetting, Option<i32>)>, Refusal> {
    for change in &alteration.configs {
        let operation = match change.operation {
            APPEND => "APPEND",
            SUBTRACT => "SUBTRACT",
            _ => continue,
        };
        let name = &change.name;
        return Err(Refusal::config(format!(
            "Can't {operation} to key {name} because its type is not LIST."
        )));
    }
    if alteration.group_id.is_empty() {
        return Err(Refusal::request("Default group resources are not allowed."));
    }
    let set = alteration.configs.iter().filter(|change| change.operation == SET);
    let unknown = set
        .map(|change| &change.name)
        .filter(|name| GroupSetting::find(name).is_none());
    if let Some(name) = unknown.min() {
        return Err(Refusal::config(format!("Unknown group config name: {name}")));
    }
    let mut changes = Vec::new();
    for setting in GroupSetting::ALL {
        let change = alteration.configs.iter().find(|change| &*change.name == setting.name());
        match change.map(|change| change.value.as_ref().filter(|_| change.operation == SET)) {
            Some(Some(value)) => changes.push((setting, Some(number(setting, value)?))),
            Some(None) => changes.push((setting, None)),
            None => {}
        }
    }
    Ok(changes)
}

/// The value as Java reads it: blanks and control characters around it do not count.
fn number(setting: GroupSetting, value: &str) -> Result<i32, Refusal> {
    let invalid = |value: &str, why: String| {
        let name = setting.name();
        Refusal::config(format!("Invalid value {value} for configuration {name}: {why}"))
    };
    let trimmed = value.trim_matches(|character| character <= ' ');
    let number: i32 = trimmed
        .parse()
        .map_err(|_| invalid(value, "Not a number of type INT".to_owned()))?;
    let least = setting.least();
    if number < least {
        return Err(invalid(&number.to_string(), format!("Value must be at least {least}")));
    }
    Ok(number)
}

fn altered(response: Response) -> Result<(), Refusal> {
    match response {
        Response::AlterGroupConfig(AlterGroupConfigResponse::Done) => Ok(()),
        Response::AlterGroupConfig(AlterGroupConfigResponse::OutOfBounds { setting, bounds }) => {
            let (name, least, greatest) = (setting.name(), bounds.start(), bounds.end());
            Err(Refusal::config(format!(
                "{name} must be in the range {least} to {greatest} inclusive."
            )))
        }
        Response::Unavailable { error } => Err(Refusal::silent(error)),
        _ => Err(Refusal::silent(ErrorCode::UNKNOWN_SERVER_ERROR)),
    }
}

/// What the groups were given, each once.
pub(super) async fn describe(call: &Call<'_>, group_ids: &[Text]) -> BTreeMap<Text, Response> {
    let mut described = BTreeMap::new();
    for some in group_ids.chunks(AT_ONCE) {
        let requests = some.iter().map(|group_id| {
            let group_id = Text::clone(group_id);
            (Text::clone(&group_id), Request::DescribeGroupConfig { group_id })
        });
        let responses = call.services.coordinator.call_many(requests.collect()).await;
        described.extend(some.iter().cloned().zip(responses));
    }
    described
}
