//! What people meet when they configure Convoke: where values come from, and what is said about mistakes. What ships and each
//! list of rules have modules of their own.

mod assign;
mod assignors;
mod shipped;

use std::fs;
use std::path::PathBuf;

use convoke::config::{ConfigError, Flag, HostPort, Loaded, NodePorts, Sources, load};

/// Loads a text as a file called `convoke.yaml`, so that messages are the same in every directory.
fn load_text(
    text: impl AsRef<[u8]>,
    environment: &[(&str, &str)],
    flags: &[(&str, &str, &str)],
) -> Result<Loaded, String> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("convoke.yaml");
    fs::write(&path, text).expect("a file in it");
    let sources = Sources {
        file: Some(path),
        environment: environment
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        flags: flags
            .iter()
            .map(|(flag, key, value)| Flag {
                flag: (*flag).to_owned(),
                key: (*key).to_owned(),
                value: (*value).to_owned(),
            })
            .collect(),
    };
    load(&sources).map_err(|error| {
        let said = error.to_string();
        said.replace(&format!("{}/", directory.path().display()), "")
    })
}

fn expect_messages(text: &str, expected: &[&str]) {
    let said = load_text(text, &[], &[]).expect_err("problems");
    let said: Vec<&str> = said.lines().collect();
    assert_eq!(said, expected);
}

const MINIMAL: &str = "upstream: {bootstrap: 'kafka:9092'}\nstore: {data: d}\n";

#[test]
fn all_problems_are_reported_at_once_with_file_line_and_key() {
    let text = "\
upstream:
  bootstrap: [kafka:9092, kafka]
  conect_timeout: 10s
listen:
  bootstrap: 127.0.0.1:19092
  nodes: 19090-19099
  advertized: kafka
limits:
  frame_max: six
  idle_timeout: 10
  buffer: 1
settings:
  group.max.size: 0
  group.max.sise: 7
  offsets.load.buffer.size: 7
retention: 7
";
    expect_messages(
        text,
        &[
            "convoke.yaml:2:27: upstream.bootstrap: `kafka` is not HOST:PORT: the port is missing",
            "convoke.yaml:3:3: upstream.conect_timeout: unknown key; did you mean upstream.connect_timeout?",
            "convoke.yaml:7:3: listen.advertized: unknown key; did you mean listen.advertise?",
            "convoke.yaml:9:14: limits.frame_max: `six` is not a size; write a number of bytes, or one with a unit such as 64KiB or 100MiB",
            "convoke.yaml:10:17: limits.idle_timeout: `10` is not a duration; write a number and a unit, such as 500ms, 10s, 5m, 1h or 7d",
            "convoke.yaml:11:11: limits.buffer: 1 is out of range; it may be 4096 to 16777216 bytes",
            "convoke.yaml:13:19: settings.group.max.size: 0 is out of range; Kafka takes 1 to 2147483647",
            "convoke.yaml:14:3: settings.group.max.sise: unknown key; did you mean group.max.size?",
            "convoke.yaml:15:3: settings.offsets.load.buffer.size: unknown key; of Kafka's settings these can be given: \
             group.consumer.assignors, group.consumer.assignment.interval.ms, group.consumer.heartbeat.interval.ms, \
             group.consumer.max.assignment.interval.ms, group.consumer.max.heartbeat.interval.ms, \
             group.consumer.max.session.timeout.ms, group.consumer.max.size, group.consumer.migration.policy, \
             group.consumer.min.assignment.interval.ms, group.consumer.min.heartbeat.interval.ms, \
             group.consumer.min.session.timeout.ms, group.consumer.regex.refresh.interval.ms, \
             group.consumer.session.timeout.ms, group.coordinator.rebalance.protocols, group.initial.rebalance.delay.ms, \
             group.max.session.timeout.ms, group.max.size, group.min.session.timeout.ms, offset.metadata.max.bytes, \
             offsets.commit.timeout.ms, offsets.retention.check.interval.ms, offsets.retention.minutes, \
             offsets.topic.num.partitions",
            "convoke.yaml:16:1: retention: unknown key; here can stand: upstream, listen, admin, store, groups, assignors, limits, \
             drain_timeout, log, settings",
            "configuration: store.data: missing; give --data DIR, CONVOKE_STORE_DATA or the key in the file",
        ],
    );
}

#[test]
fn wrong_shapes_are_named() {
    expect_messages(
        "upstream: kafka:9092\nlisten:\n  bootstrap: [a, b]\ngroups:\n  delegate: {a: b}\nstore: {data: d}\nstore: {data: e}\n",
        &[
            "convoke.yaml:1:11: upstream: expected a section with keys, found a single value",
            "convoke.yaml:3:14: listen.bootstrap: expected a single value, found a list",
            "convoke.yaml:5:13: groups.delegate: expected a list, found a section with keys",
            "convoke.yaml:7:1: store: given twice; it stands in line 6 already",
            "configuration: upstream.bootstrap: missing; give --upstream HOST:PORT, CONVOKE_UPSTREAM_BOOTSTRAP or the key in the file",
        ],
    );
}

#[test]
fn contradictions_are_found() {
    let text = format!(
        "{MINIMAL}\
listen:
  bootstrap: 0.0.0.0:19092
  nodes: 19090-19099
admin:
  listen: 127.0.0.1:19092
settings:
  group.min.session.timeout.ms: 20
  group.max.session.timeout.ms: 10
limits:
  frame_max: 1MiB
  owned_request_max: 2MiB
  owned_memory_max: 1536KiB
  group_memory_max: 1535KiB
"
    );
    expect_messages(
        &text,
        &[
            "convoke.yaml:5:10: listen.nodes: 19090-19099 holds the port of listen.bootstrap (19092); choose a range without it",
            "convoke.yaml:5:10: listen.nodes: 19090-19099 holds the port of admin.listen (19092); move one of them",
            "convoke.yaml:7:11: admin.listen: 127.0.0.1:19092 is the port of listen.bootstrap (0.0.0.0:19092) too; give it another",
            "convoke.yaml:9:33: settings.group.min.session.timeout.ms: 20 is larger than group.max.session.timeout.ms (10)",
            "convoke.yaml:13:22: limits.owned_request_max: larger than limits.frame_max, which every request must fit in",
            "convoke.yaml:14:21: limits.owned_memory_max: smaller than limits.owned_request_max, so the largest request would wait for ever",
            "convoke.yaml:15:21: limits.group_memory_max: smaller than limits.owned_request_max, so the largest join would always be refused",
        ],
    );
}

#[test]
fn an_upstream_that_is_convoke_itself_is_found() {
    let said = |listen: &str, upstream: &str| {
        let text = format!("upstream:\n  bootstrap: [kafka:9092, '{upstream}']\nstore: {{data: d}}\n");
        load_text(&text, &[], &[("--listen", "listen.bootstrap", listen)]).map(drop)
    };
    for (listen, upstream, key) in [
        ("127.0.0.1:19092", "127.0.0.1:19092", "listen.bootstrap"),
        ("127.0.0.1:19092", "LocalHost:19092", "listen.bootstrap"),
        ("0.0.0.0:19092", "127.0.0.1:19092", "listen.bootstrap"),
        ("0.0.0.0:19092", "localhost:19092", "listen.bootstrap"),
        ("[::]:19092", "[::1]:19092", "listen.bootstrap"),
        ("sidecar.example:19092", "sidecar.example:19092", "listen.bootstrap"),
        ("127.0.0.1:19092", "127.0.0.1:9190", "admin.listen"),
    ] {
        let expected = format!(
            "convoke.yaml:2:27: upstream.bootstrap: {upstream} is Convoke's own address ({key}), so it would connect to itself; \
             give the brokers' own HOST:PORT"
        );
        assert_eq!(said(listen, upstream), Err(expected));
    }
    for (listen, upstream) in [
        ("127.0.0.1:19092", "127.0.0.1:9092"),
        ("127.0.0.1:19092", "127.0.0.2:19092"),
        ("0.0.0.0:19092", "kafka:19092"),
        ("127.0.0.1:0", "127.0.0.1:19092"),
    ] {
        assert_eq!(said(listen, upstream), Ok(()), "{listen} {upstream}");
    }
}

#[test]
fn a_sidecar_in_front_of_some_nodes_is_refused_with_the_reason() {
    let said = load_text(
        format!("{MINIMAL}listen:\n  nodes_in_front: [1]\n  elsewhere: kafka-{{node}}:19092\n"),
        &[],
        &[],
    )
    .expect_err("refused");
    assert_eq!(
        said.matches("needs a store that all sidecars share").count(),
        2,
        "{said}"
    );
}

#[test]
fn sasl_is_whole_or_absent_and_passwords_are_never_printed() {
    let said = load_text(
        format!("{MINIMAL}x: 1\n"),
        &[("CONVOKE_UPSTREAM_SASL_PASSWORD", "hunter2")],
        &[],
    );
    let said = said.expect_err("problems");
    assert!(said.contains("upstream.sasl.mechanism: missing"), "{said}");
    assert!(said.contains("upstream.sasl.username: missing"), "{said}");
    assert!(!said.contains("hunter2"), "{said}");
    let text =
        "upstream:\n  bootstrap: k:1\n  sasl: {mechanism: PLAIN, username: u, password: hunter2}\nstore: {data: d}\n";
    let loaded = load_text(text, &[], &[]).expect("a whole section");
    assert_eq!(
        loaded.config.upstream.sasl.as_ref().map(|sasl| sasl.password.as_str()),
        Some("hunter2")
    );
    assert!(!format!("{loaded:?}").contains("hunter2"));
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let text = format!("{MINIMAL}listen: {{bootstrap: 'a:1'}}\ndrain_timeout: 1s\nlog: {{level: warn}}\n");
    let environment = [
        ("CONVOKE_LISTEN_BOOTSTRAP", "b:2"),
        ("CONVOKE_DRAIN_TIMEOUT", "2s"),
        ("CONVOKE_LOG_LEVEL", ""),
        ("CONVOKE_SETTINGS_GROUP_MAX_SIZE", "5"),
        ("CONVOKE_GROUPS_DELEGATE", "a, b*"),
    ];
    let flags = [
        ("--listen", "listen.bootstrap", "c:3"),
        ("--set", "group.initial.rebalance.delay.ms", "0"),
        ("--set", "listen.nodes", "40000+{node}"),
    ];
    let config = load_text(&text, &environment, &flags).expect("valid").config;
    let bootstrap = HostPort {
        host: "c".to_owned(),
        port: 3,
    };
    assert_eq!(config.listen.bootstrap, bootstrap);
    assert_eq!(config.listen.nodes, NodePorts::Base(40_000));
    assert_eq!(config.drain_timeout.as_secs(), 2);
    assert_eq!(config.log.filter, "warn");
    assert_eq!(config.groups.delegate, ["a", "b*"]);
    let settings: Vec<_> = config
        .settings
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    assert_eq!(settings, ["group.initial.rebalance.delay.ms=0", "group.max.size=5"]);
}

#[test]
fn variables_that_set_nothing_are_warned_of_but_not_those_of_kubernetes() {
    let environment = [
        ("CONVOKE_LIMITS_FRAME_MX", "1"),
        ("CONVOKE_SERVICE_HOST", "10.0.0.1"),
        ("CONVOKE_PORT_9092_TCP", "tcp://10.0.0.1:9092"),
        ("CONVOKE_CONFIG", "x"),
        ("PATH", "/bin"),
    ];
    let warnings = load_text(MINIMAL, &environment, &[]).expect("valid").warnings;
    let said: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        ["environment variable CONVOKE_LIMITS_FRAME_MX: sets no key; did you mean CONVOKE_LIMITS_FRAME_MAX?"]
    );
}

#[test]
fn what_is_no_yaml_or_no_file_is_said_with_its_place() {
    let said = load_text("upstream:\n  bootstrap: [a\nstore: 1\n", &[], &[]).expect_err("problems");
    assert!(said.starts_with("convoke.yaml:3:"), "{said}");
    let absent = Sources {
        file: Some(PathBuf::from("/nonexistent/convoke.yaml")),
        ..Sources::default()
    };
    let error: ConfigError = load(&absent).expect_err("absent");
    assert!(
        error.to_string().contains("cannot read /nonexistent/convoke.yaml"),
        "{error}"
    );
}

/// What is said of the file, and nothing of keys that it may hold.
#[test]
fn files_that_cannot_be_read_say_why_and_nothing_else() {
    let large = "#".repeat(64 * 1024 + 1);
    for (text, said) in [
        (
            &b"upstream: {}\n\xff\xfe\x00"[..],
            "cannot read convoke.yaml: it is no text (UTF-8), from line 2 on",
        ),
        (
            large.as_bytes(),
            "cannot read convoke.yaml: it is longer than 65536 bytes",
        ),
        (
            &b"[".repeat(60_000),
            "convoke.yaml:1:101: more than 100 brackets are open",
        ),
        (
            &b"{a: ".repeat(15_000),
            "convoke.yaml:1:401: more than 100 brackets are open",
        ),
        (b"upstream:\n\tbootstrap: k:1\n", "spaces, not by tabs"),
        (b"upstream: {bootstrap: 'k:1}\n", "while scanning a quoted scalar"),
        (b"a: 1\n---\nb: 2\n", "more than one document"),
    ] {
        let error = load_text(text, &[], &[]).expect_err("no configuration");
        assert!(error.contains(said) && error.lines().count() == 1, "{error}");
    }
    for path in ["/", "/dev/zero", "/nonexistent/convoke.yaml"] {
        let sources = Sources {
            file: Some(PathBuf::from(path)),
            ..Sources::default()
        };
        let error = load(&sources).expect_err("no file").to_string();
        assert!(
            error.contains(&format!("cannot read {path}: ")) && error.lines().count() == 1,
            "{error}"
        );
    }
}

#[test]
fn what_editors_leave_in_a_file_does_not_matter() {
    let marked = format!("\u{feff}{MINIMAL}").replace('\n', "\r\n");
    assert!(load_text(marked, &[], &[]).is_ok());
}

#[test]
fn a_file_full_of_mistakes_is_answered_soon_and_in_few_lines() {
    let began = std::time::Instant::now();
    let numbered = |line: &dyn Fn(usize) -> String, count: usize| (0..count).map(line).collect::<String>();
    let unknown = numbered(&|number| format!("k{number}: 1\n"), 6_000);
    let twice = "store: {data: d}\n".repeat(3_500);
    let rules = numbered(&|number| format!("  - g*{number}x\n"), 4_000);
    for text in [unknown, twice, format!("{MINIMAL}groups:\n  delegate:\n{rules}")] {
        let said = load_text(text, &[], &[]).expect_err("problems");
        assert!((50..55).contains(&said.lines().count()), "{said}");
        assert!(said.contains("these are the first"), "{said}");
    }
    // Some seconds where nothing is optimised; reading everything for each problem would take hours.
    assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
}

#[test]
fn values_that_look_right_and_are_not_are_found() {
    let text = "\
upstream: {bootstrap: ['http://kafka:9092']}
store: {data: ''}
listen: {bootstrap: '127.0.0.1:9190'}
limits: {connections_max: 99999999999999999999999, buffer: 64k}
log: {level: lound}
? [a]
: 1
";
    expect_messages(
        text,
        &[
            "convoke.yaml:1:24: upstream.bootstrap: `http://kafka:9092` is not HOST:PORT: leave out the protocol, as in kafka-1:9092",
            "convoke.yaml:2:15: store.data: it is empty; give the directory of the state",
            "convoke.yaml:4:27: limits.connections_max: `99999999999999999999999` is not a whole number",
            "convoke.yaml:4:60: limits.buffer: `64k` is not a size; write a number of bytes, or one with a unit such as 64KiB or 100MiB",
            "convoke.yaml:5:14: log.level: cannot read the log filter \"lound\": \"lound\" is none of trace, debug, info, warn, error and \
             off; give a level such as `info`, or `info,convoke::upstream=debug`",
            "convoke.yaml:6:3: (a list): unknown key; here can stand: upstream, listen, admin, store, groups, assignors, limits, drain_timeout, log, \
             settings",
        ],
    );
    let said = load_text(format!("{MINIMAL}listen: {{bootstrap: '127.0.0.1:9190'}}\n"), &[], &[]).expect_err("a clash");
    assert_eq!(
        said,
        "convoke.yaml:3:21: admin.listen: 127.0.0.1:9190 is the port of listen.bootstrap (127.0.0.1:9190) too; give it another"
    );
}

#[test]
fn unknown_flags_of_set_name_the_nearest_key() {
    let said = load_text(MINIMAL, &[], &[("--set", "limit.frame_max", "1MiB")]).expect_err("unknown");
    assert_eq!(
        said,
        "flag --set: limit.frame_max: unknown key; did you mean limits.frame_max?"
    );
}
