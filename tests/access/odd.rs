//! Requests that no stock client sends and that a broker answers all the same: text that is not UTF-8, bytes after the end, the
//! same thing named twice, things that name nothing. Each goes straight to the broker and through Convoke, and the answers have
//! to be the same byte for byte.

mod asker;
mod cases;
mod requests;

use convoke::wire::api;
use convoke_support::Result;

use crate::rules::Side;
use crate::world::World;
use asker::{Asker, Outcome};
use requests::Odd;

/// What both sides answer to the same requests in the same order.
async fn differences(world: &World, user: &'static str) -> Result<(usize, Vec<String>)> {
    let mut askers = Vec::new();
    for side in Side::BOTH {
        askers.push(Asker::start(world, side, user).await?);
    }
    let mut all = cases::all(world)?;
    all.retain(|odd| {
        let range = world.versions.get(&odd.api_key);
        range.is_some_and(|(min, max)| (min..=max).contains(&&odd.version))
    });
    let mut differences = Vec::new();
    for odd in &all {
        let mut outcomes = Vec::new();
        for asker in &mut askers {
            let body = (odd.body)(asker)?;
            outcomes.push(asker.send(odd.api_key, odd.version, &body).await?);
        }
        let is_accepted = is_accepted(world, user, odd) || is_too_long(odd, &outcomes);
        if outcomes[0] != outcomes[1] && !is_accepted {
            let name = api::find(odd.api_key).map_or("?", |api| api.name);
            let shown = outcomes
                .iter()
                .map(Outcome::show)
                .collect::<Vec<_>>()
                .join("\n convoke: ");
            differences.push(format!(
                "{user}: {name} v{} of {}\n broker: {shown}\n",
                odd.version, odd.what
            ));
        }
    }
    Ok((all.len(), differences))
}

/// Where Kafka 3.8 and Kafka 4 differ Convoke answers as Kafka 4 does, whatever the upstream is. 3.8 keeps the topics and partitions
/// of the offset APIs in maps, in which what is named twice is named once and a topic without partitions is not named; it has
/// no answer at all for no groups; it deletes a group with its last offset; and it tells who may not fetch nothing in v1.
fn is_accepted(world: &World, user: &str, odd: &Odd) -> bool {
    if !world.kafka.version().starts_with("3.") {
        return false;
    }
    match odd.api_key {
        api::OFFSET_FETCH if user == "nobody" && odd.version == 1 => true,
        api::OFFSET_COMMIT | api::OFFSET_FETCH | api::OFFSET_DELETE => {
            const ONLY_4: [&str; 4] = [
                "twice",
                "a topic without partitions",
                "no groups",
                "so that offsets are there",
            ];
            ONLY_4.iter().any(|what| odd.what.contains(what))
        }
        api::DELETE_GROUPS => odd.what.contains("the same text"),
        _ => false,
    }
}

/// Text that is not UTF-8 grows when it is read, and Kafka cannot write text of more than 32767 bytes. A broker sees that only
/// where it has to: it answers what does not name the text, refuses what is to be stored with UNKNOWN_SERVER_ERROR, and where the
/// answer would name it, never answers at all. Convoke closes the connection each time, with a line in the log.
fn is_too_long(odd: &Odd, outcomes: &[Outcome]) -> bool {
    odd.what.contains(cases::TOO_LONG) && outcomes[1] == Outcome::Closed
}

async fn every_answer_is_the_brokers_own(version: &str) -> Result<()> {
    let world = World::start(version).await?;
    let mut all = Vec::new();
    for user in ["admin", "nobody"] {
        let (asked, found) = differences(&world, user).await?;
        println!(
            "Kafka {version}, {user}: {asked} odd requests on each side, {} answers differ",
            found.len()
        );
        all.extend(found);
    }
    if all.is_empty() {
        return Ok(());
    }
    Err(format!("{} answers differ:\n{}", all.len(), all.join("\n")).into())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn odd_requests_get_the_answers_of_kafka_3_8() -> Result<()> {
    every_answer_is_the_brokers_own("3.8.1").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn odd_requests_get_the_answers_of_kafka_4_4() -> Result<()> {
    every_answer_is_the_brokers_own("4.4.0").await
}
