//! Clients that speak the protocol as it was years ago.

use convoke_support::Result;
use serde_json::json;

use super::sharing;
use crate::Trial;
use crate::stock::Stock;

/// Brokers of this version know JoinGroup v0 only, which has one timeout for everything.
const FIRST: &[i64] = &[0, 9];

/// Java 2.1.1, and kafka-python held to what brokers of those versions spoke.
pub fn all(pinned: &[&'static [i64]]) -> Vec<Trial> {
    let stock = Stock::Java211;
    let mut trials = vec![
        Trial::new("Java 2.1.1: reads everything once", move |stage| {
            sharing::reads_everything_once(stage, stock)
        }),
        Trial::new("Java 2.1.1: a member leaves and comes back", move |stage| {
            sharing::member_leaves_and_comes_back(stage, stock)
        }),
    ];
    if pinned.contains(&FIRST) {
        trials.push(Trial::new("kafka-python as for 0.9: two members share", move |stage| {
            sharing::two_members_share_with(stage, Stock::KafkaPython, &json!({"api_version": FIRST}))
        }));
    }
    for &version in pinned {
        let numbers: Vec<_> = version.iter().map(ToString::to_string).collect();
        trials.push(Trial::new(
            format!("kafka-python as for {}: reads everything once", numbers.join(".")),
            move |stage| -> Result<()> {
                let extra = json!({"api_version": version});
                sharing::reads_everything_once_with(stage, Stock::KafkaPython, &extra)
            },
        ));
    }
    trials
}
