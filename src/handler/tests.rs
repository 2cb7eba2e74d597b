//! Bytes in, bytes out: every API in every version, through `handle`, with the real coordinator on a memory store.
//! kafka-protocol writes the requests and reads the answers; what it lacks is written and read by hand.

mod access;
mod assignment;
mod consumer_groups;
mod exact_answers;
mod group_configs;
mod groups;
mod kit;
mod letting_go;
mod listing;
mod membership;
mod offset_commit;
mod offset_fetch;
mod passing_on;
mod pattern_heartbeat;
mod unavailable;
