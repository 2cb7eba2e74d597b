//! The external assignors that are heard on one connection. When it ends they are gone: nobody would come for what they are told, and
//! groups need not wait until their sessions or their time are over.

use std::collections::BTreeMap;

use crate::coordinator::request::{Request, Text};
use crate::runtime::Coordinator;

/// As many as one connection answers for; of more the sessions end.
const OF_CONNECTION_MAX: usize = 100;

/// Those of one connection.
#[derive(Debug, Default)]
pub(super) struct Registrations {
    /// By group, or pattern, and id.
    heard: BTreeMap<(Text, Text), Registration>,
}

#[derive(Debug)]
struct Registration {
    coordinator: Coordinator,
    is_pattern: bool,
}

impl Registrations {
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
                };
                match is_pattern {
                    true => drop(coordinator.call_all(gone).await),
                    false => drop(coordinator.call(&group_id, gone).await),
                }
            });
        }
    }
}
