//! What single groups are given for themselves: Convoke in front of a broker that is too old for it answers what a broker of 4.4
//! answers, field by field.

use std::time::{Duration, Instant};

use convoke_support::Result;
use kafka_protocol::messages::alter_configs_request as whole;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use kafka_protocol::messages::{AlterConfigsRequest, DescribeConfigsRequest, IncrementalAlterConfigsRequest};
use kafka_protocol::protocol::StrBytes;

use crate::client::Client;
use crate::rules::{self, Side};
use crate::world::{LIMIT, World};

const TOPIC: i8 = 2;
const GROUP: i8 = 32;
const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;
const SESSION: &str = "consumer.session.timeout.ms";
const HEARTBEAT: &str = "consumer.heartbeat.interval.ms";
const ASSIGNMENT: &str = "consumer.assignment.interval.ms";
/// Those that there are on both sides.
const SETTINGS: [&str; 3] = [SESSION, ASSIGNMENT, HEARTBEAT];

/// A setting's name, what is to be done with it, and a value.
type Change = (&'static str, i8, Option<&'static str>);

/// What is to be done with resources, by type and name.
type Changes = Vec<(i8, &'static str, Vec<Change>)>;

/// A request that both sides get.
enum Ask {
    Alter(Changes),
    Validate(Changes),
    Replace(Changes),
    Describe(Vec<(i8, &'static str, Option<Vec<&'static str>>)>),
}

fn of_group(name: &'static str, changes: &[Change]) -> Changes {
    vec![(GROUP, name, changes.to_vec())]
}

fn set(name: &'static str, value: &'static str) -> Change {
    (name, SET, Some(value))
}

/// Every way of a request to be right or wrong, in an order in which later ones find what earlier ones left.
fn asks() -> Vec<Ask> {
    let one = |change: Change| Ask::Alter(of_group("open", &[change]));
    let shown = || Ask::Describe(vec![(GROUP, "open", None), (GROUP, "absent", Some(Vec::new()))]);
    let mut asks = vec![shown(), one(set(SESSION, "50000")), shown()];
    let values = [
        " 050000 ",
        "+50001",
        "\t50002\n",
        "-0",
        "abc",
        " abc ",
        "",
        "99999999999",
        "0x10",
        "-5",
        "0",
        "1",
        "44999",
        "60001",
        "15001",
        "4999",
        "\u{a0}50000",
        "++5",
        "5 0",
    ];
    for name in SETTINGS {
        asks.extend(values.map(|value| one(set(name, value))));
        asks.push(shown());
    }
    for operation in [SET, DELETE, APPEND, SUBTRACT, 4, -1] {
        for value in [None, Some("50000")] {
            asks.extend([SESSION, "nonsense"].map(|name| one((name, operation, value))));
        }
    }
    asks.push(shown());
    let several: &[&[Change]] = &[
        &[],
        &[set(SESSION, "50000"), set(SESSION, "50001")],
        &[set(SESSION, "1"), set(HEARTBEAT, "1"), set(ASSIGNMENT, "99999")],
        &[set(ASSIGNMENT, "99999"), set(SESSION, "1")],
        &[set(HEARTBEAT, "0"), set(SESSION, "s"), set(ASSIGNMENT, "-1")],
        &[set(HEARTBEAT, "99999"), set(ASSIGNMENT, "a")],
        &[set("zzz", "1"), set("aaa", "1"), set(SESSION, "1")],
        &[
            (SESSION, SET, None),
            ("x", SET, None),
            ("y", APPEND, None),
            ("z", DELETE, None),
        ],
        &[set("zzz", "1"), (HEARTBEAT, APPEND, Some("1"))],
        &[set(SESSION, "55000"), set(HEARTBEAT, "6000"), set(ASSIGNMENT, "0")],
        &[(SESSION, DELETE, None), set(HEARTBEAT, "7000")],
    ];
    for changes in several {
        asks.push(Ask::Validate(of_group("open", changes)));
        asks.push(Ask::Alter(of_group("open", changes)));
        asks.push(Ask::Alter(of_group("", changes)));
        asks.push(shown());
        if changes.iter().all(|(_, operation, _)| *operation == SET) {
            asks.push(Ask::Replace(of_group("open", changes)));
            asks.push(shown());
        }
    }
    let good = || vec![set(SESSION, "51000")];
    let mixed = || {
        vec![
            (GROUP, "shut", good()),
            (GROUP, "open", vec![set(SESSION, "1")]),
            (TOPIC, "absent", vec![set("retention.ms", "1")]),
            (GROUP, "other", good()),
            (TOPIC, "open", vec![set("retention.ms", "1")]),
        ]
    };
    let nameless = || [mixed(), of_group("", &good())].concat();
    let twice = vec![
        (GROUP, "open", good()),
        (GROUP, "open", good()),
        (GROUP, "other", good()),
    ];
    asks.extend([
        Ask::Alter(mixed()),
        Ask::Replace(mixed()),
        Ask::Alter(nameless()),
        Ask::Replace(nameless()),
        Ask::Alter(twice),
        shown(),
    ]);
    asks.push(Ask::Alter(vec![
        (GROUP, "open", vec![(SESSION, 9, Some("1"))]),
        (GROUP, "other", vec![set(SESSION, "52000")]),
    ]));
    let resources = vec![
        (GROUP, "shut", None),
        (GROUP, "other", None),
        (TOPIC, "absent", None),
        (GROUP, "open", Some(vec![HEARTBEAT, "nonsense", HEARTBEAT, SESSION])),
        (GROUP, "other", None),
    ];
    asks.push(Ask::Describe(resources.clone()));
    asks.push(Ask::Describe([vec![(GROUP, "", None)], resources].concat()));
    asks
}

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

impl Ask {
    /// The answer in its newest version, or an older one, as text, with everything left out that the sides need not share.
    async fn answer(&self, client: &Client, newest: bool) -> Result<String> {
        let text = match self {
            Self::Alter(changes) | Self::Validate(changes) => {
                let request = incremental(changes).with_validate_only(matches!(self, Self::Validate(_)));
                format!("{:#?}", client.ask(i16::from(newest), &request).await?.responses)
            }
            Self::Replace(changes) => {
                let version = if newest { 2 } else { 0 };
                format!("{:#?}", client.ask(version, &replacing(changes)).await?.responses)
            }
            Self::Describe(resources) => {
                let version = if newest { 4 } else { 1 };
                let mut request = describing(resources).with_include_synonyms(true);
                request.include_documentation = newest;
                let mut answer = client.ask(version, &request).await?;
                for result in answer.results.iter_mut().filter(|result| result.resource_type == GROUP) {
                    result.configs.retain(|config| SETTINGS.contains(&config.name.as_str()));
                    for config in result
                        .configs
                        .iter_mut()
                        .filter(|config| config.name.as_str() == ASSIGNMENT)
                    {
                        // Here it is shorter where nobody has set it.
                        config.synonyms.retain(|synonym| synonym.source != 5);
                        config.value = config.value.take().filter(|_| config.config_source != 5);
                    }
                }
                format!("{:#?}", answer.results)
            }
        };
        Ok(text)
    }

    /// Whether it is about the group without a name, of which only those know who may do all: no upstream can be asked about it.
    fn is_nameless(&self) -> bool {
        match self {
            Self::Alter(changes) | Self::Validate(changes) | Self::Replace(changes) => {
                changes.iter().any(|(_, name, _)| name.is_empty())
            }
            Self::Describe(resources) => resources.iter().any(|(_, name, _)| name.is_empty()),
        }
    }

    fn show(&self) -> String {
        match self {
            Self::Alter(changes) => format!("alter {changes:?}"),
            Self::Validate(changes) => format!("validate {changes:?}"),
            Self::Replace(changes) => format!("replace {changes:?}"),
            Self::Describe(resources) => format!("describe {resources:?}"),
        }
    }
}

fn incremental(changes: &Changes) -> IncrementalAlterConfigsRequest {
    let resources = changes.iter().map(|(resource_type, name, changes)| {
        let configs = changes.iter().map(|(name, operation, value)| {
            AlterableConfig::default()
                .with_name(text(name))
                .with_config_operation(*operation)
                .with_value(value.map(text))
        });
        AlterConfigsResource::default()
            .with_resource_type(*resource_type)
            .with_resource_name(text(name))
            .with_configs(configs.collect())
    });
    IncrementalAlterConfigsRequest::default().with_resources(resources.collect())
}

fn replacing(changes: &Changes) -> AlterConfigsRequest {
    let resources = changes.iter().map(|(resource_type, name, changes)| {
        let configs = changes.iter().map(|(name, _, value)| {
            whole::AlterableConfig::default()
                .with_name(text(name))
                .with_value(value.map(text))
        });
        whole::AlterConfigsResource::default()
            .with_resource_type(*resource_type)
            .with_resource_name(text(name))
            .with_configs(configs.collect())
    });
    AlterConfigsRequest::default().with_resources(resources.collect())
}

fn describing(resources: &[(i8, &'static str, Option<Vec<&'static str>>)]) -> DescribeConfigsRequest {
    let resources = resources.iter().map(|(resource_type, name, keys)| {
        let keys = keys.as_ref().map(|keys| keys.iter().map(|key| text(key)).collect());
        DescribeConfigsResource::default()
            .with_resource_type(*resource_type)
            .with_resource_name(text(name))
            .with_configuration_keys(keys)
    });
    DescribeConfigsRequest::default().with_resources(resources.collect())
}

/// What the two sides answer, asked until they answer the same: a broker hears a little later of what its controller was told.
async fn difference(ask: &Ask, newest: bool, clients: &[Client; 2]) -> Result<Option<String>> {
    let ours = ask.answer(&clients[1], newest).await?;
    let began = Instant::now();
    loop {
        let theirs = ask.answer(&clients[0], newest).await?;
        if theirs == ours {
            return Ok(None);
        }
        let can_come = matches!(ask, Ask::Describe(_)) && began.elapsed() < Duration::from_secs(5);
        if !can_come {
            return Ok(Some(format!("{}\nbroker: {theirs}\nconvoke: {ours}\n", ask.show())));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upstream_that_is_too_old_is_made_up_for() -> Result<()> {
    let (new, old) = tokio::try_join!(World::start("4.4.0"), World::start("3.8.1"))?;
    // Those who may, on either side: there it is a right with the group, here with the cluster and to know of the group.
    rules::allow_configs_of_group(&new.admin, "lister", "open").await?;
    rules::allow_configs_of_group(&new.admin, "lister", "other").await?;
    rules::allow_configs_of_cluster(&old.admin, "lister", &["open", "other"]).await?;
    until_allowed(&new, &old).await?;
    let (mut asked, mut differences) = (0, Vec::new());
    for (user, newest) in [("admin", true), ("admin", false), ("lister", true), ("nobody", false)] {
        let clients = [
            new.login(Side::Broker, user).await?,
            old.login(Side::Convoke, user).await?,
        ];
        for ask in asks().into_iter().filter(|ask| user != "lister" || !ask.is_nameless()) {
            asked += 1;
            if let Some(difference) = difference(&ask, newest, &clients).await? {
                differences.push(format!("{user}: {difference}"));
            }
        }
    }
    println!("{asked} requests on each side, {} answers differ", differences.len());
    if differences.is_empty() {
        return Ok(());
    }
    let shown: Vec<_> = differences.iter().take(5).cloned().collect();
    Err(format!(
        "{} answers differ, for example:\n{}",
        differences.len(),
        shown.join("\n")
    )
    .into())
}

/// Waits until both sides know of the new rights.
async fn until_allowed(new: &World, old: &World) -> Result<()> {
    let ask = Ask::Describe(vec![(GROUP, "open", None), (GROUP, "other", None)]);
    for (world, side) in [(new, Side::Broker), (old, Side::Convoke)] {
        let client = world.login(side, "lister").await?;
        let began = Instant::now();
        while ask.answer(&client, true).await?.contains("error_code: 30") {
            if began.elapsed() > LIMIT {
                return Err(format!("{side:?}: the new rights never counted").into());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    Ok(())
}
