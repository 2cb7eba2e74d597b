//! Listeners, client connections, routing, ordering, rewriting.

pub mod api_versions;
pub mod listeners;
pub mod rewrite;
pub mod stop;
