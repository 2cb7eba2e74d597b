//! How many files this process may open. Service managers and shells give few by default (often 1024) and let the process
//! itself take more.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::warn;

/// One to the client and one to the upstream.
const FILES_PER_CONNECTION: u64 = 2;
/// The store, the log, listeners and our own connections, in a cluster of many nodes.
const OTHER_FILES: u64 = 256;

/// Takes as many as the process may have, and says so if those are too few for `limits.connections_max`.
pub(super) fn take_all(connections_max: usize) {
    let limit = getrlimit(Resource::Nofile);
    let wanted = u64::try_from(connections_max)
        .unwrap_or(u64::MAX)
        .saturating_mul(FILES_PER_CONNECTION)
        .saturating_add(OTHER_FILES);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    let taken = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => raised.current,
        Err(error) => {
            warn!("cannot raise the limit of open files: {error}");
            limit.current
        }
    };
    if let Some(taken) = taken
        && taken < wanted
    {
        warn!(
            "this process may open {taken} files, limits.connections_max ({connections_max}) needs {wanted}; raise the hard \
             limit (ulimit -Hn, LimitNOFILE=, docker --ulimit nofile=) or lower limits.connections_max"
        );
    }
}
