//! Requests about several groups, of which some are answered here and the others by the upstream.

use std::collections::{HashMap, HashSet, VecDeque};

use kafka_protocol::messages::GroupId;

use super::ClientUpstream;
use super::access::{Access, Operation};
use super::call::Call;
use super::convert::text;
use crate::coordinator::request::{Request, Response, Text};
use crate::wire::error_code::ErrorCode;

/// The answer about one group.
pub(super) enum Part<T> {
    Answered(T),
    /// To be asked there.
    Upstream,
}

impl<T> Part<T> {
    pub(super) fn answered(self) -> Option<T> {
        match self {
            Self::Answered(answer) => Some(answer),
            Self::Upstream => None,
        }
    }
}

/// Answers of the upstream, by the name of what each is about. Built once, so that a request about thousands of things does
/// not cost their square.
pub(super) struct ByName<T> {
    answers: HashMap<Text, VecDeque<T>>,
}

impl<T> ByName<T> {
    /// The next answer about it; what was asked for twice is answered twice, in order.
    pub(super) fn take(&mut self, name: &str) -> Option<T> {
        self.answers.get_mut(name)?.pop_front()
    }
}

impl<T> FromIterator<(Text, T)> for ByName<T> {
    fn from_iter<I: IntoIterator<Item = (Text, T)>>(answers: I) -> Self {
        let mut by_name: HashMap<Text, VecDeque<T>> = HashMap::new();
        for (name, answer) in answers {
            by_name.entry(name).or_default().push_back(answer);
        }
        Self { answers: by_name }
    }
}

/// What the upstream answers about the groups that it was asked about, or why it does not.
pub(super) struct Theirs<T> {
    answers: ByName<T>,
    missing: ErrorCode,
}

impl<T> Theirs<T> {
    pub(super) fn of(answers: Result<impl IntoIterator<Item = (Text, T)>, ErrorCode>) -> Self {
        match answers {
            Ok(answers) => Self {
                answers: answers.into_iter().collect(),
                missing: ErrorCode::COORDINATOR_NOT_AVAILABLE,
            },
            Err(missing) => Self {
                answers: ByName::from_iter([]),
                missing,
            },
        }
    }

    /// The answer about the group; an error where there is none.
    pub(super) fn take(&mut self, group_id: &str) -> Result<T, ErrorCode> {
        self.answers.take(group_id).ok_or(self.missing)
    }
}

/// How often the same group may be answered again in one answer. Kafka has no such limit: there a short request that names one
/// large group over and over makes an answer that no memory holds.
pub(super) const REPEATS_MAX: usize = 16;

/// Groups of one request that are asked about at a time: a request about thousands of groups waits for itself, not others
/// for it.
const AT_ONCE: usize = 64;

/// Asks the coordinator about the groups that no rule leaves with the upstream. The answers stand in the order of the
/// requests; `part` reads the coordinator's response.
pub(super) async fn ask_ours<T>(
    call: &Call<'_>,
    requests: Vec<(Text, Request)>,
    part: impl Fn(&Text, Response) -> Part<T>,
) -> Vec<(Text, Part<T>)> {
    let group_ids: Vec<Text> = requests.iter().map(|(group_id, _)| group_id.clone()).collect();
    let mut asked = requests
        .into_iter()
        .filter(|(group_id, _)| !call.is_delegated(group_id));
    let mut responses = Vec::with_capacity(group_ids.len());
    loop {
        let some: Vec<_> = asked.by_ref().take(AT_ONCE).collect();
        if some.is_empty() {
            break;
        }
        responses.extend(call.services.coordinator.call_many(some).await);
    }
    let mut responses = responses.into_iter();
    let parts = group_ids.into_iter().map(|group_id| {
        let response = if call.is_delegated(&group_id) {
            None
        } else {
            responses.next()
        };
        let part = response.map_or(Part::Upstream, |response| part(&group_id, response));
        (group_id, part)
    });
    parts.collect()
}

/// The ids of a request in its order, each once.
pub(super) fn distinct(group_ids: &[GroupId]) -> Vec<Text> {
    let mut seen = HashSet::with_capacity(group_ids.len());
    let first = group_ids.iter().filter(|group_id| seen.insert(group_id.as_str()));
    first.map(|group_id| text(group_id)).collect()
}

/// The ids of a request in its order, repeats included, of which only the first [`REPEATS_MAX`] count.
pub(super) fn named(group_ids: &[GroupId]) -> Vec<Text> {
    let mut seen = HashSet::with_capacity(group_ids.len());
    let mut repeats_left = REPEATS_MAX;
    let counted = group_ids.iter().filter(|group_id| {
        let is_new = seen.insert(group_id.as_str());
        let repeats = usize::from(!is_new).min(repeats_left);
        repeats_left -= repeats;
        is_new || repeats > 0
    });
    counted.map(|group_id| text(group_id)).collect()
}

/// The groups with which the caller may not do it, each with its error, and the others. Groups that a rule leaves with the
/// upstream are its own to refuse.
pub(super) async fn split(
    call: &Call<'_>,
    access: &mut Access<'_, impl ClientUpstream>,
    group_ids: Vec<Text>,
    operation: Operation,
) -> (Vec<(Text, ErrorCode)>, Vec<Text>) {
    let ours = group_ids.iter().filter(|group_id| !call.is_delegated(group_id));
    let ours: Vec<Text> = ours.cloned().collect();
    let errors = access.groups(&ours, operation).await;
    let (mut refused, mut granted) = (Vec::new(), Vec::with_capacity(group_ids.len()));
    for group_id in group_ids {
        match errors.get(&group_id) {
            Some(error) => refused.push((group_id, *error)),
            None => granted.push(group_id),
        }
    }
    (refused, granted)
}

/// Whether the whole request is the upstream's.
pub(super) fn is_whole<T>(groups: &[(Text, Part<T>)]) -> bool {
    !groups.is_empty() && groups.iter().all(|(_, part)| matches!(part, Part::Upstream))
}

/// The first error of a response.
pub(super) fn first_error(codes: impl IntoIterator<Item = i16>) -> ErrorCode {
    let mut errors = codes.into_iter().map(ErrorCode).filter(|error| !error.is_none());
    errors.next().unwrap_or(ErrorCode::NONE)
}
