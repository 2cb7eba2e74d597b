//! One task for each node: keeps a connection to it and publishes the versions that it speaks, anew after each connect
//! (the broker may have been upgraded) and now and then in between (a feature may have been finalized).
//!
//! It also publishes whether the node checks ACLs, once for each connection: `authorizer.class.name` cannot be changed while
//! a broker runs, and a broker that restarts breaks its connections. While there is none, what it told last holds: groups
//! go on without a node that refused nobody anything. One that comes back with an authorizer is noticed as soon as it is
//! connected to again, after [`MAX_DELAY`] at most.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, info, warn};

use super::NodeVersions;
use super::shared::Shared;
use crate::config::HostPort;
use crate::upstream::UpstreamError;
use crate::upstream::backoff::Backoff;
use crate::upstream::node::Node;
use crate::upstream::settings;

const FIRST_DELAY: Duration = Duration::from_millis(200);
const MAX_DELAY: Duration = Duration::from_secs(3);

/// Keeps one node until it is aborted.
pub async fn keep(shared: Arc<Shared>, id: i32, address: HostPort, refresh: Duration) {
    let mut backoff = Backoff::new(FIRST_DELAY, MAX_DELAY);
    let mut down_since: Option<Instant> = None;
    loop {
        match shared.pool.node(&address).await {
            Ok(node) => {
                if let Some(since) = down_since.take()
                    && shared.snapshot().nodes.len() > 1
                {
                    info!(node = id, %address, "upstream node is back after {:.1} s", since.elapsed().as_secs_f64());
                }
                backoff.reset();
                publish(&shared, id, &address, node.versions());
                let mut told = publish_authorizer(&shared, id, &address, &node).await;
                while timeout(refresh, node.closed()).await.is_err() {
                    if !told {
                        told = publish_authorizer(&shared, id, &address, &node).await;
                    }
                    match node.ask_versions().await {
                        Ok(versions) => publish(&shared, id, &address, &Arc::new(versions)),
                        Err(error) => note_failure(&shared, id, &address, &error, &mut down_since),
                    }
                }
                // Whatever closed it, leaders may have moved.
                shared.request_refresh();
                // A broker that takes connections and closes them is not to be kept busy with it.
                sleep(FIRST_DELAY).await;
            }
            Err(error) => {
                note_failure(&shared, id, &address, &error, &mut down_since);
                sleep(backoff.delay()).await;
            }
        }
    }
}

fn publish(shared: &Shared, id: i32, address: &HostPort, versions: &Arc<NodeVersions>) {
    shared.update(|cluster| {
        if cluster.nodes.get(&id) == Some(address) {
            cluster.versions.insert(id, Arc::clone(versions));
        }
    });
}

/// A node that does not tell is taken for one that checks: asking it for nothing costs a little, and the other way round
/// somebody would be let in. Returns whether it told.
async fn publish_authorizer(shared: &Shared, id: i32, address: &HostPort, node: &Arc<Node>) -> bool {
    let told = settings::has_authorizer(node, id).await;
    if let Err(error) = &told {
        debug!(node = id, %address, "cannot learn whether the node checks ACLs, so it is asked: {error}");
    }
    let checks = *told.as_ref().unwrap_or(&true);
    shared.update(|cluster| {
        if cluster.nodes.get(&id) == Some(address) {
            cluster.authorizers.insert(id, checks);
        }
    });
    told.is_ok()
}

/// One line when a node goes, none for each try.
fn note_failure(shared: &Shared, id: i32, address: &HostPort, error: &UpstreamError, down_since: &mut Option<Instant>) {
    shared.pool.count_failure();
    if down_since.is_none() {
        *down_since = Some(Instant::now());
        // Of the only node the watcher speaks.
        if shared.snapshot().nodes.len() > 1 {
            warn!(node = id, %address, "upstream node is out of reach: {error}");
        }
    }
}
