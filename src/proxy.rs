//! Listeners, client connections, routing, ordering, rewriting.
//!
//! | module | its one job |
//! |---|---|
//! | [`listeners`] | the addresses clients use: bound, advertised, one for each upstream node |
//! | `listener` | accept, within the limits |
//! | [`lanes`] | the threads that serve connections |
//! | `connection` | one client connection and its upstream connection |
//! | [`sasl`] | what passing SASL frames tell about a client |
//! | [`api_versions`] | what a client is offered |
//! | [`rewrite`] | addresses in answers |
//! | `owned_memory` | the memory that long requests which end here share |
//! | `pipes` | what large frames go through without being copied |
//! | [`stop`] | draining |
//!
//! Start order: [`listeners::Listeners::bind`], the upstream, [`listeners::Listeners::follow`] with its first picture, the
//! coordinator, then [`serve`].

pub mod api_versions;
mod connection;
pub mod lanes;
mod listener;
pub mod listeners;
mod owned_memory;
mod pipes;
pub mod rewrite;
pub mod sasl;
pub mod services;
pub mod stop;
mod stream;

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::runtime::Handle;

use self::listener::Admissions;
use self::listeners::ListenerError;
use self::services::Services;

/// Begins to serve clients on every listener, those of nodes that appear later included, until [`stop::Stop::drain`].
pub fn serve(services: &Arc<Services>) {
    let limits = &services.limits;
    let admissions = Admissions::new(limits.connections_max, limits.connections_max_per_ip);
    let weak = Arc::downgrade(services);
    // A connection may find a node, but it is not for its thread to accept there.
    let shared = Handle::current();
    services.listeners.serve(Box::new(move |bound| {
        if let Some(services) = weak.upgrade() {
            let _on_shared = shared.enter();
            listener::serve(bound, &services, &admissions);
        }
    }));
    services.stop.tasks().spawn(follow_cluster(Arc::clone(services)));
}

/// Gives listeners to nodes as the cluster watcher finds them. One that cannot be had is said once, and tried again with each
/// new picture.
async fn follow_cluster(services: Arc<Services>) {
    let mut changes = services.cluster.subscribe();
    let mut said = BTreeSet::new();
    loop {
        changes.borrow_and_update();
        let errors = services.listeners.follow(&services.cluster.snapshot());
        services.metrics.listener_failures.inc_by(errors.len() as u64);
        let texts: BTreeSet<String> = errors.iter().map(ListenerError::to_string).collect();
        for text in texts.difference(&said) {
            tracing::error!("{text}");
        }
        said = texts;
        tokio::select! {
            () = services.stop.draining().begun() => return,
            changed = changes.changed() => if changed.is_err() { return },
        }
    }
}
