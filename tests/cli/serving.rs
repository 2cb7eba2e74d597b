//! `convoke run` in front of a real broker: the lines that scripts rely on, and how it ends while clients wait.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

use bytes::{BufMut, BytesMut};
use convoke_support::Result;
use convoke_support::kafka::{Kafka, Options};
use convoke_support::network::Network;
use convoke_support::process::Process;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::{ApiKey, BrokerId, FetchRequest, GroupId, JoinGroupRequest, RequestHeader, TopicName};
use kafka_protocol::protocol::{Encodable, HeaderVersion, StrBytes};
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(60);

/// A broker, and data for Convokes in front of it.
struct World {
    kafka: Kafka,
    data: TempDir,
}

/// What `node` and `ready` said.
struct Addresses {
    node: SocketAddr,
    admin: String,
}

impl World {
    fn start() -> Result<Self> {
        Ok(Self {
            kafka: Kafka::start_in(Network::Loopback, Options::new("4.4.0"))?,
            data: tempfile::tempdir()?,
        })
    }

    fn convoke(&self, extra: &[&str]) -> Result<Process> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_convoke"));
        command.args(["run", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--data"]);
        command
            .arg(self.data.path())
            .args(["--upstream", &self.kafka.bootstrap()])
            .args(extra);
        Process::spawn("convoke", command)
    }

    /// Waits for the two lines and holds them to their form.
    fn ready(&self, convoke: &Process) -> Result<Addresses> {
        let (_, lines) = convoke
            .stdout
            .wait(0, LIMIT, |line| line.starts_with("ready ").then_some(()))
            .map_err(|error| format!("{error}\n{}", convoke.report()))?;
        let said = convoke.stdout.tail(lines);
        let said: Vec<Vec<&str>> = said.lines().map(|line| line.split(' ').collect()).collect();
        let [node, ready] = said.as_slice() else {
            return Err(format!("{said:?}").into());
        };
        assert_eq!(node[..2], ["node", "id=1"], "{said:?}");
        assert_eq!(node[2], format!("upstream={}", self.kafka.address(1)));
        let listen = node[3].strip_prefix("listen=").ok_or("no listen=")?;
        let bootstrap = ready[1].strip_prefix("bootstrap=").ok_or("no bootstrap=")?;
        let admin = ready[2].strip_prefix("admin=").ok_or("no admin=")?;
        let _: SocketAddr = bootstrap.parse()?;
        assert_eq!((node.len(), ready.len()), (4, 3), "{said:?}");
        Ok(Addresses {
            node: listen.parse()?,
            admin: admin.to_owned(),
        })
    }
}

/// A frame with a request whose header is not flexible.
fn frame<R: Encodable + HeaderVersion>(api: ApiKey, version: i16, request: &R) -> Result<BytesMut> {
    let header = RequestHeader::default()
        .with_request_api_key(api as i16)
        .with_request_api_version(version)
        .with_correlation_id(7)
        .with_client_id(Some(StrBytes::from_static_str("t")));
    let mut body = BytesMut::new();
    header.encode(&mut body, R::header_version(version))?;
    request.encode(&mut body, version)?;
    let mut frame = BytesMut::new();
    frame.put_u32(u32::try_from(body.len())?);
    frame.extend_from_slice(&body);
    Ok(frame)
}

/// A join that is admitted at once and then waits for the initial rebalance delay.
fn parked_join() -> Result<BytesMut> {
    let protocol = JoinGroupRequestProtocol::default().with_name(StrBytes::from_static_str("range"));
    let request = JoinGroupRequest::default()
        .with_group_id(GroupId(StrBytes::from_static_str("parked")))
        .with_session_timeout_ms(30_000)
        .with_rebalance_timeout_ms(60_000)
        .with_protocol_type(StrBytes::from_static_str("consumer"))
        .with_protocols(vec![protocol]);
    frame(ApiKey::JoinGroup, 2, &request)
}

/// A fetch that the broker holds for minutes.
fn long_fetch() -> Result<BytesMut> {
    let topic = FetchTopic::default()
        .with_topic(TopicName(StrBytes::from_static_str("quiet")))
        .with_partitions(vec![FetchPartition::default().with_partition_max_bytes(1 << 20)]);
    let request = FetchRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_max_wait_ms(300_000)
        .with_min_bytes(1 << 20)
        .with_max_bytes(1 << 20)
        .with_topics(vec![topic]);
    frame(ApiKey::Fetch, 4, &request)
}

fn connect(address: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(LIMIT))?;
    Ok(stream)
}

/// Waits until a metric of the admin page has the value.
fn wait_for_metric(addresses: &Addresses, line: &str) -> Result<()> {
    let admin: SocketAddr = addresses.admin.parse()?;
    let deadline = std::time::Instant::now() + LIMIT;
    loop {
        let (_, page) = convoke_support::http::get(admin, "/metrics")?;
        if page.lines().any(|shown| shown == line) {
            return Ok(());
        }
        if std::time::Instant::now() > deadline {
            return Err(format!("no {line:?} in\n{page}").into());
        }
        // The page cannot be awaited; this only paces the look.
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn it_waits_for_an_upstream_that_comes_later_and_prints_only_the_promised_lines() -> Result<()> {
    let mut world = World::start()?;
    world.kafka.stop(1)?;
    let mut convoke = world.convoke(&[])?;
    let bound = |line: &str| line.contains("waiting for the upstream").then_some(());
    convoke.stderr.wait(0, LIMIT, bound)?;
    convoke
        .stderr
        .wait(0, LIMIT, |line| line.contains("out of reach").then_some(()))?;
    assert!(convoke.stdout.is_empty(), "{}", convoke.report());
    world.kafka.restart(1)?;
    let addresses = world.ready(&convoke)?;
    let health = Command::new(env!("CARGO_BIN_EXE_convoke"))
        .args(["health", "--ready", "--admin", &addresses.admin])
        .output()?;
    assert!(health.status.success(), "{}", String::from_utf8_lossy(&health.stderr));
    convoke.stop(LIMIT)?;
    assert_eq!(convoke.stdout.len(), 2, "{}", convoke.report());
    Ok(())
}

#[test]
fn a_stop_answers_a_parked_join_and_ends_at_once() -> Result<()> {
    let world = World::start()?;
    let extra = [
        "--set",
        "group.initial.rebalance.delay.ms=600000",
        "--set",
        "drain_timeout=5m",
    ];
    let mut convoke = world.convoke(&extra)?;
    let addresses = world.ready(&convoke)?;
    let mut client = connect(addresses.node)?;
    client.write_all(&parked_join()?)?;
    wait_for_metric(&addresses, "convoke_parked_requests{api=\"JoinGroup\"} 1")?;
    convoke.terminate();
    let mut answer = [0; 4 + 4 + 4 + 2];
    client.read_exact(&mut answer)?;
    // Length, correlation id, throttle time, error.
    assert_eq!(answer[4..8], 7_i32.to_be_bytes());
    let error = i16::from_be_bytes([answer[12], answer[13]]);
    assert!([14, 15, 16].contains(&error), "a retriable error, not {error}");
    assert_eq!(convoke.wait(LIMIT)?.code(), Some(0), "{}", convoke.report());
    Ok(())
}

#[test]
fn a_stop_cuts_off_what_takes_too_long_and_a_second_signal_does_not_wait_for_that() -> Result<()> {
    let world = World::start()?;
    world.kafka.create_topic("quiet", 1)?;
    let under_way = "convoke_requests_total{api=\"Fetch\"} 1";
    for (timeout, second, code) in [("300ms", false, 0), ("5m", true, 1)] {
        let mut convoke = world.convoke(&["--set", &format!("drain_timeout={timeout}")])?;
        let addresses = world.ready(&convoke)?;
        let mut client = connect(addresses.node)?;
        client.write_all(&long_fetch()?)?;
        wait_for_metric(&addresses, under_way)?;
        convoke.terminate();
        convoke
            .stderr
            .wait(0, LIMIT, |line| line.contains("draining").then_some(()))?;
        if second {
            convoke.terminate();
        }
        assert_eq!(convoke.wait(LIMIT)?.code(), Some(code), "{}", convoke.report());
        let mut rest = Vec::new();
        // A reset is a cut as well.
        let _ = client.read_to_end(&mut rest);
        assert!(rest.is_empty(), "{} bytes", rest.len());
    }
    Ok(())
}
