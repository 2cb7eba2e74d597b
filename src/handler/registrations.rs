//! The external assignors that are heard on one connection. When it ends they are gone: nobody would come for what they are told, and
//! groups need not wait until their sessions or their time are over. One that has registered on another connection since stays.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::coordinator::request::{Request, Text};
use crate::runtime::Coordinator;

/// As many as one connection answers for; of more the sessions end.
const OF_CONNECTION_MAX: usize = 100;

/// Numbers connections.
static CONNECTIONS: AtomicU64 = AtomicU64::new(1);

/// Those of one connection.
#[derive(Debug)]
pub(super) struct Registrations {
    connection: u64,
    /// By group, or pattern, and id.
    heard: BTreeMap<(Text, Text), Registration>,
}

#[derive(Debug)]
struct Registration {
    coordinator: Coordinator,
    is_pattern: bool,
}

impl Default for Registrations {
    fn default() -> Self {
        Self {
            connection: CONNECTIONS.fetch_add(1, Ordering::Relaxed),
            heard: BTreeMap::new(),
        }
    }
}

impl Registrations {
    /// A number that no other connection has.
    pub(super) const fn connection(&self) -> u64 {
        self.connection
    }

    /// Whoever sent this is registered.
    pub(super) fn note(&mut self, coordinator: &Coordinator, group_id: Text, member_id: Text, is_pattern: bool) {
        if self.heard.len() < OF_CONNECTION_MAX {
            self.heard.entry((group_id, member_id)).or_insert_with(|| Registration {
                coordinator: coordinator.clone(),
                is_pattern,
            });
        }
    }
}

impl Drop for Registrations {
    fn drop(&mut self) {
        // Without a runtime the process ends, and whoever registers again does so at another.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let connection = self.connection;
        for ((group_id, member_id), registration) in std::mem::take(&mut self.heard) {
            runtime.spawn(async move {
                let Registration {
                    coordinator,
                    is_pattern,
                } = registration;
                let gone = Request::ExternalGone {
                    group_id: group_id.clone(),
                    is_pattern,
                    member_id,
                    connection,
                };
                match is_pattern {
                    true => drop(coordinator.call_all(gone).await),
                    false => drop(coordinator.call(&group_id, gone).await),
                }
            });
        }
    }
}
