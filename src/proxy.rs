//! Listeners, client connections, routing, ordering, rewriting.

pub mod rewrite;
