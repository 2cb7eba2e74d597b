//! Who may do what, on a real broker with SASL and StandardAuthorizer: the very same request through Convoke and straight to
//! the broker, by every user, in every version, and every field of the two answers.

mod answers;
mod assignment;
mod client;
mod group_configs;
mod odd;
mod questions;
mod rules;
mod world;

use std::time::{Duration, Instant};

use convoke::wire::api;
use convoke_support::Result;
use convoke_support::convoke::Convoke;
use convoke_support::kafka::{Kafka, Options};
use convoke_support::network::Network;
use kafka_protocol::messages::HeartbeatRequest;
use kafka_protocol::protocol::StrBytes;

use answers::normal;
use client::Client;
use questions::{APIS, CONSUMER_GROUP_APIS, about, about_all};
use rules::{GROUPS, Side, USERS};
use world::{LIMIT, World};

/// The oldest and the newest broker line that is supported.
const BROKERS: [&str; 2] = ["3.8.1", "4.4.0"];

/// One request, as each side gets it.
struct Question {
    what: String,
    api_key: i16,
    version: i16,
    bodies: [bytes::Bytes; 2],
}

fn questions(world: &World) -> Result<Vec<Question>> {
    let mut questions = Vec::new();
    let has_consumer_groups = !world.kafka.version().starts_with("3.");
    let more = CONSUMER_GROUP_APIS.into_iter().filter(|_| has_consumer_groups);
    for api_key in APIS.into_iter().chain(more) {
        let (min, max) = world.versions.get(&api_key).copied().ok_or("an API is missing")?;
        let name = api::find(api_key).map_or("?", |api| api.name);
        for version in min..=max {
            let mut add = |what: String, [broker, convoke]: [Vec<bytes::Bytes>; 2]| {
                for bodies in broker.into_iter().zip(convoke) {
                    questions.push(Question {
                        what: format!("{name} v{version} of {what}"),
                        api_key,
                        version,
                        bodies: bodies.into(),
                    });
                }
            };
            let about_several = [
                api::DESCRIBE_GROUPS,
                api::LIST_GROUPS,
                api::DELETE_GROUPS,
                api::CONSUMER_GROUP_DESCRIBE,
            ];
            if about_several.contains(&api_key) {
                let all = |side: Side| {
                    let group_ids = GROUPS.map(|group| side.group(group));
                    about_all(api_key, version, &group_ids).map(|body| vec![body])
                };
                add("all groups".to_owned(), [all(Side::Broker)?, all(Side::Convoke)?]);
                continue;
            }
            for group in GROUPS {
                let of = |side: Side| about(api_key, version, &side.group(group), &world.ids);
                add(format!("group {group:?}"), [of(Side::Broker)?, of(Side::Convoke)?]);
            }
        }
    }
    Ok(questions)
}

/// What a user is answered differently.
async fn differences(
    world: &World,
    user: &str,
    questions: &[Question],
    admins: &[(Side, Client)],
) -> Result<Vec<String>> {
    let clients = [
        world.login(Side::Broker, user).await?,
        world.login(Side::Convoke, user).await?,
    ];
    let mut differences = Vec::new();
    world.commit(admins).await?;
    for question in questions {
        let Question {
            what,
            api_key,
            version,
            bodies,
        } = question;
        let mut got = Vec::new();
        for ((side, client), body) in Side::BOTH.into_iter().zip(&clients).zip(bodies) {
            let answer = client.raw(*api_key, *version, body).await;
            let answer = answer.map_err(|error| format!("{user}, {what}, {side:?}: {error}"))?;
            got.push(normal(side, *api_key, *version, answer)?);
        }
        if let [broker, convoke] = got.as_slice()
            && broker != convoke
            && !is_accepted(world, question, broker)
        {
            differences.push(format!("{user}, {what}\nbroker: {broker}\nconvoke: {convoke}\n"));
        }
        if matches!(*api_key, api::OFFSET_DELETE | api::DELETE_GROUPS) {
            world.commit(admins).await?;
        }
    }
    Ok(differences)
}

/// Kafka 3.8 answers OffsetFetch v1, which has no place for an error of the group, with nothing at all to whoever may not
/// describe it: no topic, no error. Kafka 4 tells it at each partition, and so does Convoke.
fn is_accepted(world: &World, question: &Question, broker: &str) -> bool {
    let is_v1 = (question.api_key, question.version) == (api::OFFSET_FETCH, 1);
    is_v1 && world.kafka.version().starts_with("3.") && broker.contains("topics: [],")
}

async fn every_answer_is_the_brokers_own(version: &str) -> Result<()> {
    let world = World::start(version).await?;
    let questions = questions(&world)?;
    let mut admins = Vec::new();
    for side in Side::BOTH {
        let admin = world.login(side, "admin").await?;
        world.join(side, &admin).await?;
        admins.push((side, admin));
    }
    let mut all = Vec::new();
    for user in USERS {
        all.extend(differences(&world, user, &questions, &admins).await?);
        let client = world.login(Side::Convoke, user).await?;
        all.extend(assignment::differences(user, &client).await?);
    }
    let asked = USERS.len() * questions.len();
    println!(
        "Kafka {version}: {asked} requests on each side, {} answers differ",
        all.len()
    );
    if all.is_empty() {
        return Ok(());
    }
    let shown: Vec<String> = all.iter().take(5).cloned().collect();
    Err(format!(
        "{} of {asked} answers differ, for example:\n{}",
        all.len(),
        shown.join("\n")
    )
    .into())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_user_gets_the_answers_of_kafka_3_8() -> Result<()> {
    every_answer_is_the_brokers_own(BROKERS[0]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_user_gets_the_answers_of_kafka_4_4() -> Result<()> {
    every_answer_is_the_brokers_own(BROKERS[1]).await
}

fn heartbeat(group_id: &str) -> HeartbeatRequest {
    HeartbeatRequest::default()
        .with_group_id(StrBytes::from_string(group_id.to_owned()).into())
        .with_generation_id(1)
        .with_member_id(StrBytes::from_static_str("ghost"))
}

/// Asks until the answer is the wanted one, and says how long it took.
async fn until(client: &Client, group_id: &str, wanted: i16) -> Result<Duration> {
    let started = Instant::now();
    loop {
        let answer = client.ask(4, &heartbeat(group_id)).await?;
        if answer.error_code == wanted {
            return Ok(started.elapsed());
        }
        if started.elapsed() > LIMIT {
            return Err(format!("{group_id} is answered {}, not {wanted}", answer.error_code).into());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_rule_counts_within_seconds_and_heartbeats_are_cheap() -> Result<()> {
    let world = World::start("4.4.0").await?;
    let nobody = world.login(Side::Convoke, "nobody").await?;
    assert_eq!(nobody.ask(4, &heartbeat("c-one")).await?.error_code, 30);
    rules::allow_reading(&world.admin, "nobody", "c-one").await?;
    let took = until(&nobody, "c-one", 25).await?;
    assert!(took < Duration::from_secs(20), "a new right counted after {took:?}");

    let before = world.convoke.metric("convoke_access_probes_total", &[])?;
    for _ in 0..50 {
        assert_eq!(nobody.ask(4, &heartbeat("c-one")).await?.error_code, 25);
    }
    let asked = world.convoke.metric("convoke_access_probes_total", &[])? - before;
    assert!(asked <= 5.0, "{asked} questions for 50 heartbeats");
    assert!(
        world
            .convoke
            .metric("convoke_access_denied_total", &["api=\"Heartbeat\""])?
            >= 1.0
    );

    rules::deny_reading(&world.admin, "nobody", "c-one").await?;
    let took = until(&nobody, "c-one", 30).await?;
    assert!(took < Duration::from_secs(30), "a withdrawn right ended after {took:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_without_an_authorizer_is_asked_nothing() -> Result<()> {
    for version in BROKERS {
        let kafka = Kafka::start_in(Network::Loopback, Options::new(version))?;
        let convoke = Convoke::start(env!("CARGO_BIN_EXE_convoke"), &kafka, &[])?;
        let bootstrap = convoke.bootstrap();
        for address in convoke.nodes().values().chain([&bootstrap]) {
            let client = Client::connect(address).await?;
            assert_eq!(client.ask(4, &heartbeat("g")).await?.error_code, 25, "{version}");
        }
        let asked = convoke.metric("convoke_access_probes_total", &[])?;
        assert!(asked == 0.0, "{version}: {asked} questions");
    }
    Ok(())
}
