//! Conversations with a shard under a virtual clock, one file for each kind of behaviour. Numbers in comments are the
//! scenarios of Kafka's own coordinator that a test stands for.

mod classic_assign;
mod classic_assign_changes;
mod consumer_client;
mod consumer_conversion;
mod consumer_describe;
mod consumer_downgrade;
mod consumer_join;
mod consumer_leave;
mod consumer_migration;
mod consumer_offsets;
mod consumer_random;
mod consumer_reconcile;
mod consumer_regex;
mod consumer_reload;
mod consumer_static;
mod consumer_target;
mod describe;
mod durability;
mod group_config;
mod group_test;
mod heartbeat;
mod join;
mod leave;
mod load;
mod offset_expiry;
mod offsets;
mod ownership;
mod random;
mod rebalance;
mod requests;
mod static_members;
mod sync;
