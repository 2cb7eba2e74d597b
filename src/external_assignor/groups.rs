//! Which groups are registered for: those that are named at once, and those of a pattern all together where Convoke knows the
//! pattern, else when a listing finds them.

use std::collections::{BTreeMap, BTreeSet};
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use kafka_protocol::protocol::StrBytes;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::Assignor;
use super::pattern::{self, Ended};
use super::registration;

/// How often the groups are listed where there are patterns that Convoke does not know.
const LIST_EVERY: Duration = Duration::from_secs(5);

/// The registrations of one process.
pub(super) struct Groups {
    assignor: Arc<Assignor>,
    named: BTreeSet<String>,
    patterns: Vec<String>,
    /// Of the patterns that Convoke has no rule for: their groups are found by listing.
    prefixes: Vec<String>,
    registered: BTreeMap<String, CancellationToken>,
    tasks: JoinSet<()>,
}

impl Groups {
    /// Names, or prefixes that end in `*`.
    pub(super) fn new(assignor: Arc<Assignor>, groups: Vec<String>) -> Self {
        let (patterns, named): (Vec<_>, Vec<_>) = groups.into_iter().partition(|group| group.ends_with('*'));
        Self {
            assignor,
            named: named.into_iter().collect(),
            patterns,
            prefixes: Vec::new(),
            registered: BTreeMap::new(),
            tasks: JoinSet::new(),
        }
    }

    /// Serves until it is stopped and every group has been left.
    pub(super) async fn serve(mut self, stop: CancellationToken) {
        for group in self.named.clone() {
            self.register(group, &stop);
        }
        let mut patterns = self.register_patterns(&stop);
        let mut ticks = interval(LIST_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut said = String::new();
        while !stop.is_cancelled() {
            tokio::select! {
                Some(ended) = patterns.join_next() => {
                    if let Ok(Ended::NotKnown(pattern)) = ended {
                        tracing::info!(
                            groups = pattern,
                            "Convoke has no rule of assignors with this pattern for each --name: the groups that it means are looked for"
                        );
                        self.prefixes.push(pattern.trim_end_matches('*').to_owned());
                        ticks.reset_immediately();
                    }
                }
                _ = ticks.tick(), if !self.prefixes.is_empty() => {
                    tokio::select! {
                        () = self.look_for_groups(&stop, &mut said) => {}
                        () = stop.cancelled() => {}
                    }
                }
                () = stop.cancelled() => {}
            }
        }
        while patterns.join_next().await.is_some() {}
        while self.tasks.join_next().await.is_some() {}
    }

    fn register_patterns(&self, stop: &CancellationToken) -> JoinSet<Ended> {
        let mut patterns = JoinSet::new();
        for pattern in &self.patterns {
            match member_id() {
                Ok(member_id) => {
                    let assignor = Arc::clone(&self.assignor);
                    patterns.spawn(pattern::run(assignor, pattern.clone(), member_id, stop.child_token()));
                }
                Err(error) => {
                    tracing::error!(groups = pattern, "no random member id: {error}");
                    patterns.spawn(ready(Ended::NotKnown(pattern.clone())));
                }
            }
        }
        patterns
    }

    async fn look_for_groups(&mut self, stop: &CancellationToken, said: &mut String) {
        match self.assignor.cluster.groups().await {
            Ok(groups) => {
                said.clear();
                self.follow(groups, stop);
            }
            // Who is registered stays so.
            Err(error) => {
                let problem = error.to_string();
                if problem != *said {
                    tracing::warn!("groups cannot be listed, and it is tried again: {problem}");
                    *said = problem;
                }
            }
        }
    }

    fn follow(&mut self, listed: Vec<String>, stop: &CancellationToken) {
        let fits = |group: &String| self.prefixes.iter().any(|prefix| group.starts_with(prefix));
        let wanted: BTreeSet<String> = listed.into_iter().filter(fits).collect();
        self.registered.retain(|group, registered| {
            let stays = wanted.contains(group) || self.named.contains(group);
            if !stays {
                registered.cancel();
            }
            stays
        });
        for group in wanted {
            if !self.registered.contains_key(&group) {
                self.register(group, stop);
            }
        }
        // Those that ended are let go of.
        while self.tasks.try_join_next().is_some() {}
    }

    fn register(&mut self, group: String, stop: &CancellationToken) {
        let stop = stop.child_token();
        self.registered.insert(group.clone(), stop.clone());
        match member_id() {
            Ok(member_id) => {
                self.tasks
                    .spawn(registration::run(Arc::clone(&self.assignor), group, member_id, stop));
            }
            Err(error) => {
                tracing::error!(group, "no random member id, tried again with the next listing: {error}");
                self.registered.remove(&group);
            }
        }
    }
}

/// An id of our own making, as KIP-1082 has it.
fn member_id() -> Result<StrBytes, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(StrBytes::from_string(Uuid::from_bytes(bytes).to_string()))
}
