//! Listeners, client connections, routing, ordering, rewriting.

pub mod api_versions;
pub mod rewrite;
