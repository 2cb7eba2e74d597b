//! What is tried with each stock client on a cluster of one node.

mod durability;
mod sharing;
mod statics;
mod takeover;

use crate::Trial;
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
    let mut add = |what: &str, run: fn(&mut crate::stage::Stage, Stock) -> convoke_support::Result<()>| {
        trials.push(Trial::new(format!("{}: {what}", stock.name()), move |stage| {
            run(stage, stock)
        }));
    };
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
    trials
}

/// What is tried on every upstream version.
pub fn essentials(stock: Stock) -> Vec<Trial> {
    let mut trials = Vec::new();
    let mut add = |what: &str, run: fn(&mut crate::stage::Stage, Stock) -> convoke_support::Result<()>| {
        trials.push(Trial::new(format!("{}: {what}", stock.name()), move |stage| {
            run(stage, stock)
        }));
    };
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
