//! The picture of the upstream cluster: one watcher keeps it, everybody reads it without a lock.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use uuid::Uuid;

use crate::config::HostPort;
use crate::coordinator::request::Text;

/// One look at the cluster.
#[derive(Debug, Clone, Default)]
pub struct Cluster {
    pub cluster_id: Option<Text>,
    /// Nodes as the upstream advertises them on the listener that we use.
    pub nodes: BTreeMap<i32, HostPort>,
    pub topics: Topics,
    /// The node that coordinates each partition of `__consumer_offsets` (-1: none now). Empty while the topic does not exist.
    pub coordinators: Vec<i32>,
    /// The api versions and features that each node was last heard to speak.
    pub versions: BTreeMap<i32, Arc<NodeVersions>>,
}

/// Topics by name and by id.
#[derive(Debug, Clone, Default)]
pub struct Topics {
    pub by_name: HashMap<Text, Topic>,
    pub name_by_id: HashMap<Uuid, Text>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic {
    pub name: Text,
    /// Nil where the upstream has no topic ids.
    pub id: Uuid,
    pub partitions: i32,
}

/// What a node answers to ApiVersions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeVersions {
    /// Key to (min, max).
    pub apis: BTreeMap<i16, (i16, i16)>,
    /// Name, min, max.
    pub supported_features: Vec<(String, i16, i16)>,
    /// Name, max level, min level.
    pub finalized_features: Vec<(String, i16, i16)>,
    /// -1 when unknown.
    pub finalized_features_epoch: i64,
}
