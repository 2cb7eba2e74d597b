//! What single groups are given for themselves, where the upstream has no place for it: one request, answered in part here and in
//! part there.

use bytes::Bytes;
use kafka_protocol::messages::alter_configs_request as whole;
use kafka_protocol::messages::alter_configs_response as whole_answer;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_configs_response::{DescribeConfigsResourceResult, DescribeConfigsResult};
use kafka_protocol::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use kafka_protocol::messages::incremental_alter_configs_response::AlterConfigsResourceResponse;
use kafka_protocol::messages::{
    AlterConfigsRequest, AlterConfigsResponse, DescribeConfigsRequest, DescribeConfigsResponse,
    IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse,
};

use super::access::rules::{DESCRIBE, Rules};
use super::kit::*;
use super::unavailable::setups;
use crate::handler::{Answer, splits};
use crate::wire::api::*;
use crate::wire::frame::RequestHead;

const TOPIC: i8 = 2;
const BROKER: i8 = 4;
const GROUP: i8 = 32;
const SESSION: &str = "consumer.session.timeout.ms";
const HEARTBEAT_INTERVAL: &str = "consumer.heartbeat.interval.ms";
const DESCRIBE_CLUSTER_CONFIGS: i32 = 1 << 10;
const ALTER_CLUSTER_CONFIGS: i32 = 1 << 11;

/// Resources by type and name, each with settings and their new values.
type Resources<'a> = &'a [(i8, &'a str, &'a [(&'a str, Option<&'a str>)])];

fn incremental(resources: Resources<'_>) -> IncrementalAlterConfigsRequest {
    let resources = resources.iter().map(|(resource_type, name, configs)| {
        let configs = configs.iter().map(|(name, value)| {
            AlterableConfig::default()
                .with_name(string(name))
                .with_config_operation(i8::from(value.is_none()))
                .with_value(value.map(string))
        });
        AlterConfigsResource::default()
            .with_resource_type(*resource_type)
            .with_resource_name(string(name))
            .with_configs(configs.collect())
    });
    IncrementalAlterConfigsRequest::default().with_resources(resources.collect())
}

fn replacing(resources: Resources<'_>) -> AlterConfigsRequest {
    let resources = resources.iter().map(|(resource_type, name, configs)| {
        let configs = configs.iter().map(|(name, value)| {
            whole::AlterableConfig::default()
                .with_name(string(name))
                .with_value(value.map(string))
        });
        whole::AlterConfigsResource::default()
            .with_resource_type(*resource_type)
            .with_resource_name(string(name))
            .with_configs(configs.collect())
    });
    AlterConfigsRequest::default().with_resources(resources.collect())
}

fn describing(resources: &[(i8, &str)]) -> DescribeConfigsRequest {
    let resources = resources.iter().map(|(resource_type, name)| {
        DescribeConfigsResource::default()
            .with_resource_type(*resource_type)
            .with_resource_name(string(name))
            .with_configuration_keys(None)
    });
    DescribeConfigsRequest::default().with_resources(resources.collect())
}

/// The answer of a broker that knows of nothing but topics and brokers: the last letter of the request's first resource and
/// error 7 for each of its resources, which then cannot be taken for answers of ours.
fn upstream() -> Upstream {
    Upstream::answering(|asked| match asked.api_key {
        INCREMENTAL_ALTER_CONFIGS => {
            let request: IncrementalAlterConfigsRequest = asked.decode();
            let responses = request.resources.iter().map(|resource| {
                assert_ne!(resource.resource_type, GROUP);
                AlterConfigsResourceResponse::default()
                    .with_error_code(7)
                    .with_resource_type(resource.resource_type)
                    .with_resource_name(resource.resource_name.clone())
            });
            let response = IncrementalAlterConfigsResponse::default().with_responses(responses.collect());
            encode(&response, asked.version)
        }
        ALTER_CONFIGS => {
            let request: AlterConfigsRequest = asked.decode();
            let responses = request.resources.iter().map(|resource| {
                assert_ne!(resource.resource_type, GROUP);
                whole_answer::AlterConfigsResourceResponse::default()
                    .with_error_code(7)
                    .with_resource_type(resource.resource_type)
                    .with_resource_name(resource.resource_name.clone())
            });
            encode(
                &AlterConfigsResponse::default().with_responses(responses.collect()),
                asked.version,
            )
        }
        DESCRIBE_CONFIGS => {
            let request: DescribeConfigsRequest = asked.decode();
            // As Kafka does: what the user may not see comes last.
            let mut results: Vec<_> = request
                .resources
                .iter()
                .map(|resource| {
                    assert_ne!(resource.resource_type, GROUP);
                    let is_hidden = resource.resource_name.as_str() == "hidden";
                    DescribeConfigsResult::default()
                        .with_error_code(if is_hidden { 29 } else { 7 })
                        .with_resource_type(resource.resource_type)
                        .with_resource_name(resource.resource_name.clone())
                })
                .collect();
            results.sort_by_key(|result| result.error_code);
            encode(&DescribeConfigsResponse::default().with_results(results), asked.version)
        }
        other => panic!("api {other} is not to be asked"),
    })
}

/// What is shown of one setting: value, source, synonyms by name, value and source, type and documentation.
type Shown = (String, i8, Vec<(String, String, i8)>, i8, bool);

fn shown(config: &DescribeConfigsResourceResult) -> Shown {
    let text = |value: &Option<kafka_protocol::protocol::StrBytes>| value.as_ref().expect("a value").to_string();
    let synonyms = config.synonyms.iter();
    let synonyms = synonyms.map(|synonym| (synonym.name.to_string(), text(&synonym.value), synonym.source));
    assert!(!config.read_only && !config.is_sensitive);
    let is_documented = config.documentation.as_ref().is_some_and(|text| !text.is_empty());
    (
        text(&config.value),
        config.config_source,
        synonyms.collect(),
        config.config_type,
        is_documented,
    )
}

async fn described(setup: &Setup, version: i16, request: DescribeConfigsRequest) -> Vec<DescribeConfigsResult> {
    let response: DescribeConfigsResponse = setup.ask(DESCRIBE_CONFIGS, version, &request).await;
    response.results
}

#[tokio::test]
async fn only_an_upstream_without_settings_of_groups_has_requests_looked_into() {
    let head = |api_key, api_version| RequestHead {
        api_key,
        api_version,
        correlation_id: 1,
        client_id: None,
        body_offset: 0,
    };
    let (old, new) = ([(DESCRIBE_CONFIGS, (0, 4))], [(DESCRIBE_CONFIGS, (1, 4))]);
    for (first, second, expected) in [(old, old, true), (new, old, true), (new, new, false)] {
        let setup = Setup::with(Options {
            versions: first.into(),
            second_versions: Some(second.into()),
            ..Options::default()
        });
        let cluster = setup.services.cluster.snapshot();
        for (api_key, versions) in [
            (DESCRIBE_CONFIGS, 1..=4),
            (ALTER_CONFIGS, 0..=2),
            (INCREMENTAL_ALTER_CONFIGS, 0..=1),
        ] {
            for version in versions {
                assert_eq!(
                    splits(&head(api_key, version), &cluster),
                    expected,
                    "api {api_key} v{version}"
                );
            }
        }
        assert!(!splits(&head(DESCRIBE_CONFIGS, 0), &cluster));
    }
}

#[tokio::test]
async fn a_request_that_names_no_group_of_ours_goes_on_as_it_came() {
    let setup = Setup::new().await;
    for (resource_type, name) in [(TOPIC, "orders"), (BROKER, ""), (99, "g"), (GROUP, "delegated-g")] {
        let bodies = [
            (DESCRIBE_CONFIGS, 4, encode(&describing(&[(resource_type, name)]), 4)),
            (ALTER_CONFIGS, 2, encode(&replacing(&[(resource_type, name, &[])]), 2)),
            (
                INCREMENTAL_ALTER_CONFIGS,
                1,
                encode(&incremental(&[(resource_type, name, &[])]), 1),
            ),
        ];
        for (api_key, version, body) in bodies {
            let answer = setup.handle(api_key, version, body, &mut Upstream::unused()).await;
            assert!(
                matches!(answer, Answer::Forward),
                "api {api_key} {resource_type} {name}: {answer:?}"
            );
        }
    }
    // Nor is what cannot be read ours to refuse.
    for (api_key, version) in [
        (DESCRIBE_CONFIGS, 4),
        (ALTER_CONFIGS, 2),
        (INCREMENTAL_ALTER_CONFIGS, 1),
    ] {
        let body = Bytes::from_static(&[0xff; 64]);
        let answer = setup.handle(api_key, version, body, &mut Upstream::unused()).await;
        assert!(matches!(answer, Answer::Forward), "api {api_key}: {answer:?}");
    }
}

#[tokio::test]
async fn what_a_group_is_given_is_shown_in_every_version() {
    for version in 0..=1 {
        let setup = Setup::new().await;
        let request = incremental(&[(GROUP, "g", &[(SESSION, Some(" 50000 ")), ("nonsense", None)])]);
        let response: IncrementalAlterConfigsResponse = setup.ask(INCREMENTAL_ALTER_CONFIGS, version, &request).await;
        let errors: Vec<_> = response.responses.iter().map(|resource| resource.error_code).collect();
        assert_eq!(errors, [0], "v{version}");
        for version in 1..=4 {
            let mut request = describing(&[(GROUP, "g"), (GROUP, "other")]).with_include_synonyms(true);
            request.include_documentation = version >= 3;
            let results = described(&setup, version, request).await;
            let names: Vec<_> = results[0]
                .configs
                .iter()
                .map(|config| config.name.to_string())
                .collect();
            assert_eq!(names, [SESSION, "consumer.assignment.interval.ms", HEARTBEAT_INTERVAL]);
            let default = ("group.consumer.session.timeout.ms".to_owned(), "45000".to_owned(), 5);
            let own = (SESSION.to_owned(), "50000".to_owned(), 8);
            let (kind, is_documented) = if version >= 3 { (3, true) } else { (0, true) };
            let expected = ("50000".to_owned(), 8, vec![own, default.clone()], kind, is_documented);
            let got = shown(&results[0].configs[0]);
            assert_eq!(
                (&got.0, got.1, &got.2, got.3),
                (&expected.0, expected.1, &expected.2, expected.3),
                "v{version}"
            );
            let got = shown(&results[1].configs[0]);
            assert_eq!(
                (got.0.as_str(), got.1, got.2),
                ("45000", 5, vec![default]),
                "v{version}"
            );
        }
    }
}

#[tokio::test]
async fn only_what_is_asked_for_is_shown() {
    let setup = Setup::new().await;
    for keys in [vec![], vec![HEARTBEAT_INTERVAL, HEARTBEAT_INTERVAL, "nonsense"]] {
        let mut request = describing(&[(GROUP, "g")]);
        request.resources[0].configuration_keys = Some(keys.iter().map(|key| string(key)).collect());
        let results = described(&setup, 4, request).await;
        let names: Vec<_> = results[0]
            .configs
            .iter()
            .map(|config| config.name.to_string())
            .collect();
        assert_eq!(names.len(), if keys.is_empty() { 3 } else { 1 }, "{names:?}");
        assert!(names.contains(&HEARTBEAT_INTERVAL.to_owned()));
        let config = &results[0].configs[0];
        assert!(config.synonyms.is_empty() && config.documentation.is_none());
    }
}

#[tokio::test]
async fn answers_of_both_sides_stand_in_the_order_of_the_request() {
    let setup = Setup::new().await;
    let good: &[(&str, Option<&str>)] = &[(HEARTBEAT_INTERVAL, Some("6000"))];
    let bad: &[(&str, Option<&str>)] = &[(HEARTBEAT_INTERVAL, Some("1"))];
    let resources: Resources<'_> = &[
        (GROUP, "b", bad),
        (TOPIC, "g", good),
        (GROUP, "g", good),
        (BROKER, "1", good),
        (GROUP, "a", good),
        (TOPIC, "g", good),
    ];
    let expected =
        [("b", 40), ("g", 7), ("g", 0), ("1", 7), ("a", 0), ("g", 7)].map(|(name, error)| (name.to_owned(), error));
    let mut side = upstream();
    for version in 0..=1 {
        let body = encode(&incremental(resources), version);
        let (response, error): (IncrementalAlterConfigsResponse, _) = setup
            .exchange(INCREMENTAL_ALTER_CONFIGS, version, body, &mut side)
            .await;
        let got = response.responses.iter();
        let got: Vec<_> = got
            .map(|resource| (resource.resource_name.to_string(), resource.error_code))
            .collect();
        assert_eq!((&got[..], error.0), (&expected[..], 40), "v{version}");
    }
    for version in 0..=2 {
        let body = encode(&replacing(resources), version);
        let (response, _): (AlterConfigsResponse, _) = setup.exchange(ALTER_CONFIGS, version, body, &mut side).await;
        let got = response.responses.iter();
        let got: Vec<_> = got
            .map(|resource| (resource.resource_name.to_string(), resource.error_code))
            .collect();
        assert_eq!(got, expected, "v{version}");
    }
    for version in 1..=4 {
        let request = describing(&[
            (GROUP, "b"),
            (TOPIC, "hidden"),
            (GROUP, ""),
            (TOPIC, "seen"),
            (GROUP, "b"),
        ]);
        let (response, _): (DescribeConfigsResponse, _) = setup
            .exchange(DESCRIBE_CONFIGS, version, encode(&request, version), &mut side)
            .await;
        let got = response.results.iter();
        let got: Vec<_> = got
            .map(|result| (result.resource_name.to_string(), result.error_code))
            .collect();
        let expected = [("b", 0), ("", 42), ("seen", 7), ("b", 0), ("hidden", 29)];
        assert_eq!(
            got,
            expected.map(|(name, error)| (name.to_owned(), error)),
            "v{version}"
        );
    }
    assert_eq!(side.asked.len(), 9, "each once");
}

#[tokio::test]
async fn what_is_not_named_any_more_is_taken_away_by_the_older_api() {
    let setup = Setup::new().await;
    let both: &[(&str, Option<&str>)] = &[(SESSION, Some("50000")), (HEARTBEAT_INTERVAL, Some("6000"))];
    let one: &[(&str, Option<&str>)] = &[(HEARTBEAT_INTERVAL, Some("7000"))];
    for (given, expected) in [
        (both, ["50000", "6000"]),
        (one, ["45000", "7000"]),
        (&[][..], ["45000", "5000"]),
    ] {
        let _: AlterConfigsResponse = setup.ask(ALTER_CONFIGS, 2, &replacing(&[(GROUP, "g", given)])).await;
        let results = described(&setup, 4, describing(&[(GROUP, "g")])).await;
        let value = |place: usize| results[0].configs[place].value.as_ref().expect("a value").to_string();
        assert_eq!([value(0), value(2)], expected);
    }
    let only_looked_at = replacing(&[(GROUP, "g", both)]).with_validate_only(true);
    let response: AlterConfigsResponse = setup.ask(ALTER_CONFIGS, 2, &only_looked_at).await;
    assert_eq!(response.responses[0].error_code, 0);
    let results = described(&setup, 4, describing(&[(GROUP, "g")])).await;
    assert_eq!(results[0].configs[0].config_source, 5);
}

#[tokio::test]
async fn the_user_has_to_be_allowed_with_the_cluster_and_to_know_of_the_group() {
    let may_all = DESCRIBE_CLUSTER_CONFIGS | ALTER_CLUSTER_CONFIGS;
    for (cluster, group, elsewhere, alters, describes) in [
        (may_all, DESCRIBE, None, 0, 0),
        // The node coordinates another part of the groups, and yet says who may know of them.
        (may_all, DESCRIBE, Some(16), 0, 0),
        (DESCRIBE_CLUSTER_CONFIGS, DESCRIBE, None, 30, 0),
        (ALTER_CLUSTER_CONFIGS, DESCRIBE, None, 0, 30),
        (!may_all, DESCRIBE, None, 30, 30),
        (may_all, !DESCRIBE, None, 30, 30),
    ] {
        let setup = super::access::checking().await;
        let rules = || Rules {
            groups: [("g", group)].into(),
            cluster,
            elsewhere,
            ..Rules::default()
        };
        let given = incremental(&[(GROUP, "g", &[(SESSION, Some("50000"))])]);
        let (response, _): (IncrementalAlterConfigsResponse, _) = setup
            .exchange(
                INCREMENTAL_ALTER_CONFIGS,
                1,
                encode(&given, 1),
                &mut super::access::rules::upstream(rules()),
            )
            .await;
        let case = format!("{cluster:b} {group:b} {elsewhere:?}");
        assert_eq!(response.responses[0].error_code, alters, "{case}");
        let (response, _): (DescribeConfigsResponse, _) = setup
            .exchange(
                DESCRIBE_CONFIGS,
                4,
                encode(&describing(&[(GROUP, "g")]), 4),
                &mut super::access::rules::upstream(rules()),
            )
            .await;
        assert_eq!(response.results[0].error_code, describes, "{case}");
    }
}

#[tokio::test]
async fn nobody_is_let_in_while_nobody_can_be_asked() {
    let setup = super::access::checking().await;
    let given = incremental(&[(GROUP, "g", &[(SESSION, Some("50000"))])]);
    let (response, _): (IncrementalAlterConfigsResponse, _) = setup
        .exchange(INCREMENTAL_ALTER_CONFIGS, 1, encode(&given, 1), &mut Upstream::gone())
        .await;
    assert_eq!(response.responses[0].error_code, 15);
    let (response, _): (DescribeConfigsResponse, _) = setup
        .exchange(
            DESCRIBE_CONFIGS,
            4,
            encode(&describing(&[(GROUP, "g")]), 4),
            &mut Upstream::gone(),
        )
        .await;
    assert_eq!(
        (response.results[0].error_code, response.results[0].configs.len()),
        (15, 0)
    );
}

#[tokio::test]
async fn a_shard_that_cannot_be_asked_is_an_error_of_its_groups() {
    for (setup, error) in setups().await {
        let given = incremental(&[(GROUP, "a", &[(SESSION, Some("50000"))]), (GROUP, "b", &[])]);
        let response: IncrementalAlterConfigsResponse = setup.ask(INCREMENTAL_ALTER_CONFIGS, 1, &given).await;
        let errors: Vec<_> = response.responses.iter().map(|resource| resource.error_code).collect();
        assert_eq!(errors, [error, error]);
        let results = described(&setup, 4, describing(&[(GROUP, "a")])).await;
        assert_eq!(results[0].error_code, error);
    }
}
