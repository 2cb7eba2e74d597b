//! What the command prints: on standard output for scripts, on standard error for people. A reader that went away does not
//! matter to either.

use std::fmt::Display;
use std::io::{self, Write};
use std::net::SocketAddr;

use crate::config::{Effective, HostPort, Place};
use crate::server::Announce;

/// The lines of `convoke run`, each flushed at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lines;

impl Announce for Lines {
    fn node(&self, node_id: i32, upstream: &HostPort, listen: SocketAddr) {
        print(&format!("node id={node_id} upstream={upstream} listen={listen}"));
    }

    fn ready(&self, bootstrap: SocketAddr, admin: SocketAddr) {
        print(&format!("ready bootstrap={bootstrap} admin={admin}"));
    }
}

/// One line on standard output.
pub(super) fn print(line: &dyn Display) {
    let mut out = io::stdout().lock();
    // Nobody reads it: nothing to be done.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// One line (or several) on standard error.
pub(super) fn complain(message: &dyn Display) {
    // Nobody reads it: nothing to be done.
    let _ = writeln!(io::stderr().lock(), "{message}");
}

/// Every key with the value in force and where it comes from, aligned.
pub(super) fn print_effective(effective: &[Effective]) {
    let width = effective.iter().map(|entry| entry.key.len()).max().unwrap_or_default();
    let text: Vec<String> = effective
        .iter()
        .map(|entry| {
            let origin = match &entry.place {
                Place::Nowhere => "default".to_owned(),
                place => place.to_string(),
            };
            format!("{:width$} = {}  # {origin}", entry.key, entry.value)
        })
        .collect();
    print(&text.join("\n"));
}
