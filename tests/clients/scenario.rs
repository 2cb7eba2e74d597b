//! What is tried with each stock client on a cluster of one node.

pub mod consumer_groups;
mod durability;
pub mod external_assignors;
mod growth;
mod interruptions;
pub mod leaderless;
pub mod oldest;
mod sharing;
mod statics;
mod takeover;
mod transactions;

use convoke_support::Result;

use crate::Trial;
use crate::stage::{Stage, direct};
use crate::stock::Stock;

/// Every scenario that the client has the features for.
pub fn all(stock: Stock) -> Vec<Trial> {
    let mut trials = essentials(stock);
    for assignor in stock.assignors() {
        trials.push(Trial::new(
            format!("{}: two members share by {assignor}", stock.name()),
            move |stage| sharing::two_members_share(stage, stock, assignor),
        ));
    }
    let mut add = |what, run| trials.push(Trial::of(stock, what, run));
    add("produces with acks 0 and 1", sharing::produces_with_fewer_acks);
    add("a rolling restart loses nothing", sharing::rolling_restart);
    add(
        "a killed member's partitions move after its session",
        sharing::killed_member,
    );
    add(
        "a static member restarts without a rebalance",
        statics::restart_without_rebalance,
    );
    add(
        "new partitions of a topic are shared out",
        growth::new_partitions_are_shared,
    );
    add(
        "goes on when Convoke is stopped and started under load",
        interruptions::stopped_under_load,
    );
    if matches!(stock, Stock::Java381 | Stock::Java440) {
        // The others join again by themselves when they have heard nothing for the length of a session.
        add(
            "no member is thrown out when Convoke stands still",
            interruptions::suspended_longer_than_sessions,
        );
    }
    if stock == Stock::Java440 {
        add(
            "a static leader that came back finds new partitions",
            statics::leader_that_returned_finds_new_partitions,
        );
    }
    if matches!(stock, Stock::Java440 | Stock::Librdkafka) {
        add(
            "a member that stood still is out and comes in again",
            interruptions::suspended_member_comes_back,
        );
    }
    if matches!(stock, Stock::Java381 | Stock::Java440 | Stock::Librdkafka) {
        add("transactions commit and abort", transactions::commit_and_abort);
        add(
            "Convoke refuses a transaction's offsets at once",
            transactions::offsets_are_refused,
        );
    }
    trials
}

/// What is tried on every upstream version.
pub fn essentials(stock: Stock) -> Vec<Trial> {
    let mut trials = Vec::new();
    let mut add = |what, run| trials.push(Trial::of(stock, what, run));
    add("reads everything once", sharing::reads_everything_once);
    add("a member leaves and comes back", sharing::member_leaves_and_comes_back);
    add("commits survive kill -9 of Convoke", durability::commits_survive_kill);
    add(
        "goes on from the offsets that it had before Convoke",
        takeover::offsets_from_before,
    );
    add(
        "waits for Convoke while members at the upstream live",
        takeover::live_members_upstream,
    );
    trials
}

/// The generation as Convoke shows it; always the same in a direct run, where nobody shows it.
pub fn generation(stage: &mut Stage, group: &str) -> Result<i64> {
    if direct() {
        return Ok(0);
    }
    let shown = stage.convoke()?.group(group)?.ok_or("the group is not in /groups")?;
    shown["generation_id"]
        .as_i64()
        .ok_or_else(|| format!("no generation_id in {shown}").into())
}
