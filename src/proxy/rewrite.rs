//! The answers that carry addresses, changed so that a client learns the sidecar's addresses and never an upstream's.
//!
//! Node ids stay; only host and port change (node ids stand without a host in dozens of other fields, and KIP-1242
//! checks them). Pure functions over bytes: nothing is decoded and encoded anew, so unknown tagged
//! fields and whatever else the upstream wrote survive, and an answer without addresses comes back as the same bytes
//! without a copy.
//!
//! An answer is changed in one of two ways, see [`Treatment`]: held whole ([`response`]), or on its way through
//! ([`EndpointScrubber`]), where the addresses are taken out without changing the length. What cannot be read is an
//! error, never passed on: the connection closes and nothing leaks.
//!
//! Bodies here are answers without frame length and response head. The fields are those of the response schemas of
//! Kafka 4.4.

mod describe_cluster;
mod describe_quorum;
mod find_coordinator;
mod metadata;
mod node_endpoints;
mod scrubber;
mod splice;
mod walker;

#[cfg(test)]
mod tests;

use bytes::Bytes;

pub use scrubber::EndpointScrubber;

use crate::config::HostPort;
use crate::wire::api;
use crate::wire::reader::ReadError;

/// Where clients reach a node.
pub trait Addresses {
    /// What clients are told for this node, on the listener that the asking client uses. None: the node has no
    /// listener yet.
    fn advertised(&self, node_id: i32) -> Option<HostPort>;
}

/// Why an answer was not rewritten.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RewriteError {
    /// The answer names nodes that have no address here, each with the upstream's own address, by node id. Open
    /// listeners for them and call again.
    #[error("nodes without a listener: {}", list(.0))]
    UnknownNodes(Vec<(i32, HostPort)>),
    /// The answer cannot be read, so it cannot be passed on either.
    #[error("the upstream's answer cannot be read: {0}")]
    Malformed(#[from] Malformed),
}

/// What is wrong with an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("bytes behind its last field")]
    TrailingBytes,
    #[error("a node at port {0}")]
    Port(i32),
    #[error("node {0} is advertised by a host that does not fit into an answer")]
    AdvertisedHost(i32),
}

impl From<ReadError> for RewriteError {
    fn from(error: ReadError) -> Self {
        Self::Malformed(error.into())
    }
}

fn list(nodes: &[(i32, HostPort)]) -> String {
    let nodes: Vec<String> = nodes
        .iter()
        .map(|(id, at)| format!("{id} at {}:{}", at.host, at.port))
        .collect();
    nodes.join(", ")
}

/// How the answers of one API and version have to be handled on their way to a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treatment {
    /// No addresses in it: the bytes go through as they are.
    Untouched,
    /// Gather the answer and call [`response`].
    Gathered,
    /// Either gather it, or stream it through an [`EndpointScrubber`] if it is too large to be held. A client loses
    /// only a hint then: it asks for Metadata instead of following KIP-951 endpoints.
    GatheredOrScrubbed,
}

/// How to handle the answers of an API in a version that the API table allows.
#[must_use]
pub fn treatment(api_key: i16, version: i16) -> Treatment {
    if node_endpoints::schema(api_key, version).is_some() {
        return Treatment::GatheredOrScrubbed;
    }
    match api_key {
        api::METADATA | api::FIND_COORDINATOR | api::DESCRIBE_CLUSTER => Treatment::Gathered,
        api::DESCRIBE_QUORUM if version >= describe_quorum::FIRST_VERSION => Treatment::Gathered,
        _ => Treatment::Untouched,
    }
}

/// Whether an answer that is held whole has addresses in it, for APIs whose answers seldom have. If not, [`response`] would give
/// back the same bytes.
///
/// # Errors [`RewriteError::Malformed`] if it cannot be read.
pub fn has_endpoints(api_key: i16, version: i16, body: &[u8]) -> Result<bool, RewriteError> {
    match node_endpoints::schema(api_key, version) {
        Some(schema) => Ok(node_endpoints::are_in(schema, version, body)?),
        None => Ok(false),
    }
}

/// Rewrites an answer that is held whole. `body` follows the response head. Without addresses in it the same bytes
/// come back.
///
/// # Errors [`RewriteError::UnknownNodes`] if a node in it has no address yet, [`RewriteError::Malformed`] if it
/// cannot be read.
pub fn response(api_key: i16, version: i16, body: Bytes, addresses: &dyn Addresses) -> Result<Bytes, RewriteError> {
    if let Some(schema) = node_endpoints::schema(api_key, version) {
        return node_endpoints::rewrite(schema, version, body, addresses);
    }
    match api_key {
        api::METADATA => metadata::rewrite(version, body, addresses),
        api::FIND_COORDINATOR => find_coordinator::rewrite(version, body, addresses),
        api::DESCRIBE_CLUSTER => describe_cluster::rewrite(version, body, addresses),
        api::DESCRIBE_QUORUM if version >= describe_quorum::FIRST_VERSION => {
            describe_quorum::rewrite(version, body, addresses)
        }
        _ => Ok(body),
    }
}

/// The topics that an answer to Metadata says exist, each with the number of its partitions.
///
/// # Errors [`Malformed`] if it cannot be read.
pub fn topics_in_metadata(version: i16, body: &[u8]) -> Result<Vec<(&str, usize)>, Malformed> {
    Ok(metadata::topics(version, body)?)
}
