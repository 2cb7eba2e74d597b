//! The answer to ApiVersions (API 18): what a client may speak through this sidecar.
//!
//! Ranges are the upstream node's, narrowed to the API table, and features are narrowed with them: a producer that is
//! told transaction.version 2 but not TxnOffsetCommit v5 loses transactions. Checks and errors are those of Kafka 4.4
//! (`ApiVersionsRequest.isValid`, `KafkaApis.handleApiVersionsRequest`, KIP-511, KIP-584, KIP-1242).

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::ApiVersionsResponse;
use kafka_protocol::messages::api_versions_response::{ApiVersion, FinalizedFeatureKey, SupportedFeatureKey};
use kafka_protocol::protocol::StrBytes;

use crate::upstream::cluster::NodeVersions;
use crate::upstream::peer;
use crate::wire::api::{self, Api, Route};
use crate::wire::codec::{self, WireError};
use crate::wire::error_code::ErrorCode;
use crate::wire::newest::api_versions::{ApiVersionsRequest, encode_response};

/// Whether the upstream's topics have ids (KIP-516).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopicIds {
    Given,
    Missing,
}

/// What clients of one address are offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer(NodeVersions);

impl Offer {
    /// What is left of the versions of a node (or of several, see [`intersection`]).
    ///
    /// * APIs that go up, rewritten or in part only as well: what the upstream and the table both have.
    /// * Owned APIs: the same, although we could answer more. Groups that stay with the upstream (delegated ones,
    ///   share and streams groups, those with live members there) are asked for with the same requests, which then go
    ///   up as they came, and a broker closes the connection on a version that it does not know. Clients lose
    ///   nothing: one that is offered OffsetCommit v9 by Kafka 3.8 speaks v9. (Capping below what the upstream has
    ///   would break them.) An owned API that the upstream does not know, or knows only in versions that we do not,
    ///   is offered as we have it.
    /// * ConsumerGroupHeartbeat and ConsumerGroupDescribe: as we have them, whatever the upstream has. Nothing but the presence
    ///   of the first makes stock clients speak the protocol, librdkafka only that of its version 1, and brokers list both in
    ///   version 0 while they refuse them. They are named by the ids of topics: an upstream without `topic_ids` has neither.
    /// * ConsumerGroupPrepareAssignment and ConsumerGroupInstallAssignment, which no upstream has: with the heartbeat that they
    ///   belong to.
    /// * ApiVersions itself: as we have it, since it never goes up.
    /// * Refused and unknown APIs: not at all.
    #[must_use]
    pub fn of(upstream: &NodeVersions, topic_ids: TopicIds) -> Self {
        let ranges = api::APIS.iter().map(|api| {
            let theirs = upstream.apis.get(&api.key).copied();
            (api.key, range(api, theirs, topic_ids))
        });
        let apis: BTreeMap<_, _> = ranges.filter_map(|(key, range)| Some((key, range?))).collect();
        let supported = upstream.supported_features.iter().filter_map(|(name, min, max)| {
            let max = (*max).min(highest_level(name, &apis)?);
            (max >= *min).then(|| (name.clone(), *min, max))
        });
        let finalized = upstream.finalized_features.iter().filter_map(|(name, max, min)| {
            let max = (*max).min(highest_level(name, &apis)?);
            Some((name.clone(), max, (*min).min(max)))
        });
        Self(NodeVersions {
            supported_features: supported.collect(),
            finalized_features: finalized.collect(),
            finalized_features_epoch: upstream.finalized_features_epoch,
            apis,
        })
    }

    /// Whether a client may send this.
    #[must_use]
    pub fn has(&self, api_key: i16, version: i16) -> bool {
        let range = self.0.apis.get(&api_key);
        range.is_some_and(|(min, max)| (*min..=*max).contains(&version))
    }

    /// The ranges and features.
    #[must_use]
    pub fn versions(&self) -> &NodeVersions {
        &self.0
    }
}

/// What all of these nodes have: for connections that stand for no node yet. None without nodes. During an upgrade of
/// the upstream nodes differ; the lowest finalized levels go with the lowest epoch.
#[must_use]
pub fn intersection<'a>(nodes: impl IntoIterator<Item = &'a NodeVersions>) -> Option<NodeVersions> {
    let mut nodes = nodes.into_iter();
    let first = nodes.next()?.clone();
    Some(nodes.fold(first, |mut all, node| {
        all.apis = all
            .apis
            .iter()
            .filter_map(|(key, range)| Some((*key, meet(*range, *node.apis.get(key)?)?)))
            .collect();
        all.supported_features.retain_mut(|(name, min, max)| {
            let theirs = node.supported_features.iter().find(|theirs| theirs.0 == *name);
            let met = theirs.and_then(|(_, their_min, their_max)| meet((*min, *max), (*their_min, *their_max)));
            met.is_some_and(|met| {
                (*min, *max) = met;
                true
            })
        });
        all.finalized_features.retain_mut(|(name, max, min)| {
            let theirs = node.finalized_features.iter().find(|theirs| theirs.0 == *name);
            theirs.is_some_and(|(_, their_max, their_min)| {
                (*max, *min) = ((*max).min(*their_max), (*min).min(*their_min));
                true
            })
        });
        all.finalized_features_epoch = all.finalized_features_epoch.min(node.finalized_features_epoch);
        all
    }))
}

/// What only groups of KIP-848 need.
const CONSUMER_GROUPS: [i16; 4] = [
    api::CONSUMER_GROUP_HEARTBEAT,
    api::CONSUMER_GROUP_DESCRIBE,
    api::CONSUMER_GROUP_PREPARE_ASSIGNMENT,
    api::CONSUMER_GROUP_INSTALL_ASSIGNMENT,
];

fn range(api: &Api, upstream: Option<(i16, i16)>, topic_ids: TopicIds) -> Option<(i16, i16)> {
    let ours = (api.min, api.max);
    let both = upstream.and_then(|theirs| meet(ours, theirs));
    match api.route {
        Route::Own if api.key == api::API_VERSIONS => Some(ours),
        Route::Own if CONSUMER_GROUPS.contains(&api.key) => (topic_ids == TopicIds::Given).then_some(ours),
        Route::Own => both.or(Some(ours)),
        Route::Forward | Route::Rewrite | Route::Split => both,
        Route::Refuse => None,
    }
}

fn meet(one: (i16, i16), other: (i16, i16)) -> Option<(i16, i16)> {
    let both = (one.0.max(other.0), one.1.min(other.1));
    (both.0 <= both.1).then_some(both)
}

/// A feature whose level tells clients what they may send.
struct Feature {
    name: &'static str,
    /// The highest level whose meaning is known here.
    max: i16,
    /// Which level needs which API, at least in which version.
    needs: &'static [(i16, i16, i16)],
}

const fn feature(name: &'static str, max: i16, needs: &'static [(i16, i16, i16)]) -> Feature {
    Feature { name, max, needs }
}

/// Features that are not here are not shown: what they would promise is not known.
static FEATURES: &[Feature] = &[
    feature("metadata.version", i16::MAX, &[]),
    feature("kraft.version", i16::MAX, &[]),
    feature("eligible.leader.replicas.version", i16::MAX, &[]),
    feature("group.version", 1, &[(1, 68, 0)]),
    // Level 2 (KIP-890): TxnOffsetCommit, EndTxn and Produce take part in the transaction without being announced.
    feature(
        "transaction.version",
        2,
        &[(1, 28, 0), (2, 28, 5), (2, 26, 5), (2, 0, 12)],
    ),
    feature("share.version", 2, &[(1, 76, 1), (1, 78, 1), (1, 79, 1)]),
    feature("streams.version", 1, &[(1, 88, 0)]),
];

/// The highest level of a feature that the offered APIs can honour; None if the feature is not to be shown.
fn highest_level(name: &str, apis: &BTreeMap<i16, (i16, i16)>) -> Option<i16> {
    let feature = FEATURES.iter().find(|feature| feature.name == name)?;
    let offered = |key: &i16, version: i16| apis.get(key).is_some_and(|(_, max)| *max >= version);
    let unmet = feature.needs.iter().filter(|(_, key, version)| !offered(key, *version));
    let level = unmet
        .map(|(level, _, _)| level - 1)
        .min()
        .unwrap_or(i16::MAX)
        .min(feature.max);
    (level > 0).then_some(level)
}

/// Whom a client has connected to, to be compared with whom it means to talk to (KIP-1242).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answering<'a> {
    /// Not compared: SASL is not through yet.
    Anyone,
    /// The bootstrap address: no node, so that a client that means one has to bootstrap anew.
    Bootstrap,
    Node {
        /// None while it is not known, and then not compared.
        cluster_id: Option<&'a str>,
        node_id: i32,
    },
}

/// An answer, as the body behind the response head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub body: Bytes,
    /// What is in it, for those who count.
    pub error: ErrorCode,
}

/// The answer to a request of any version, `body` being what follows its head.
///
/// A version that we do not know gets the answer of version 0, with UNSUPPORTED_VERSION and our own range, whatever
/// its body is.
///
/// # Errors `Malformed` if the request cannot be read: Kafka closes the connection then.
pub fn answer(version: i16, body: Bytes, offer: &Offer, answering: Answering<'_>) -> Result<Answer, WireError> {
    let known = api::find(api::API_VERSIONS).is_some_and(|api| api.has_version(version));
    let (version, error) = if known {
        let request: ApiVersionsRequest = codec::decode_request(version, body)?;
        (version, check(version, &request, answering))
    } else {
        (0, ErrorCode::UNSUPPORTED_VERSION)
    };
    let response = match error {
        ErrorCode::NONE => offered(version, &offer.0),
        ErrorCode::UNSUPPORTED_VERSION => {
            let own = api::find(api::API_VERSIONS).map(|api| (api.key, (api.min, api.max)));
            ApiVersionsResponse::default().with_api_keys(own.into_iter().map(entry).collect())
        }
        _ => ApiVersionsResponse::default(),
    };
    let mut out = BytesMut::new();
    encode_response(&response.with_error_code(error.0), version, &mut out)?;
    Ok(Answer {
        body: out.freeze(),
        error,
    })
}

/// Kafka's checks, in its order.
fn check(version: i16, request: &ApiVersionsRequest, answering: Answering<'_>) -> ErrorCode {
    const NO_NODE: i32 = -1;
    let valid_software = version < 3
        || (is_software_word(&request.client_software_name) && is_software_word(&request.client_software_version));
    if request.cluster_id.is_some() != (request.node_id != NO_NODE) || !valid_software {
        return ErrorCode::INVALID_REQUEST;
    }
    if peer::is_convoke(&request.client_software_name) {
        // Two coordinators for one group, or a loop. No broker gives this answer, so the other one knows by it whom it met.
        return ErrorCode::POLICY_VIOLATION;
    }
    let Some(cluster) = request.cluster_id.as_deref() else {
        return ErrorCode::NONE;
    };
    let meant = match answering {
        Answering::Anyone => true,
        Answering::Bootstrap => false,
        Answering::Node { cluster_id, node_id } => {
            request.node_id == node_id && cluster_id.is_none_or(|cluster_id| cluster_id == cluster)
        }
    };
    if meant {
        ErrorCode::NONE
    } else {
        ErrorCode::REBOOTSTRAP_REQUIRED
    }
}

/// KIP-511's pattern for the name and version of the client's software: `[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?`.
fn is_software_word(word: &str) -> bool {
    let alphanumeric = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = word.as_bytes();
    alphanumeric(bytes.first())
        && alphanumeric(bytes.last())
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'))
}

/// Up to this version supported features with the minimum 0 are left out (KAFKA-17011: clients took them for invalid).
const MIN_FEATURE_ABOVE_ZERO_UNTIL: i16 = 3;

fn offered(version: i16, offer: &NodeVersions) -> ApiVersionsResponse {
    let supported = offer.supported_features.iter();
    let supported = supported.filter(|(_, min, _)| version > MIN_FEATURE_ABOVE_ZERO_UNTIL || *min > 0);
    let supported = supported.map(|(name, min, max)| {
        SupportedFeatureKey::default()
            .with_name(StrBytes::from_string(name.clone()))
            .with_min_version(*min)
            .with_max_version(*max)
    });
    let finalized = offer.finalized_features.iter().map(|(name, max, min)| {
        FinalizedFeatureKey::default()
            .with_name(StrBytes::from_string(name.clone()))
            .with_max_version_level(*max)
            .with_min_version_level(*min)
    });
    ApiVersionsResponse::default()
        .with_api_keys(offer.apis.iter().map(|(key, range)| entry((*key, *range))).collect())
        .with_supported_features(supported.collect())
        .with_finalized_features(finalized.collect())
        .with_finalized_features_epoch(offer.finalized_features_epoch)
}

fn entry((key, (min, max)): (i16, (i16, i16))) -> ApiVersion {
    ApiVersion::default()
        .with_api_key(key)
        .with_min_version(min)
        .with_max_version(max)
}

#[cfg(test)]
mod tests;
