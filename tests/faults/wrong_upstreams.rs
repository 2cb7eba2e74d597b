//! An upstream.bootstrap at which something answers that is no broker.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use convoke_support::convoke::Convoke;
use convoke_support::kafka::{Kafka, Options};
use convoke_support::network::Network;
use convoke_support::{Result, ports};

use crate::raw::Raw;
use crate::{CONVOKE, PATIENCE, eventually, kafka, run_at, wait_for_log};

/// Something that answers its first bytes with these and closes, or says nothing at all.
fn answering(bytes: Option<&'static [u8]>) -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        let mut silent = Vec::new();
        // Ends with the test's process.
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            match bytes {
                Some(bytes) => {
                    let _ = stream.read(&mut [0; 1024]);
                    let _ = stream.write_all(bytes);
                }
                None => silent.push(stream),
            }
        }
    });
    Ok(address)
}

/// The line in the log of a Convoke in front of it, which comes soon and only once, and ends with a SIGTERM.
fn said_of(upstream: &str, listen: &str, words: &[&str]) -> Result<String> {
    let data = tempfile::tempdir()?;
    let began = Instant::now();
    let arguments = ["--set", "upstream.request_timeout=2s"];
    let mut convoke = run_at(data.path(), upstream, listen, &arguments)?;
    let (line, next) = wait_for_log(&convoke, 0, words)?;
    let took = began.elapsed();
    assert!(took < Duration::from_secs(20), "{took:?}");
    assert!(convoke.stdout.is_empty(), "{}", convoke.report());
    std::thread::sleep(Duration::from_secs(1));
    let again = convoke.stderr.tail(convoke.stderr.len() - next);
    assert!(
        !again.contains(words[words.len() - 1]),
        "said again within a second: {again}"
    );
    convoke.stop(PATIENCE)?;
    Ok(line)
}

#[test]
fn what_is_no_broker_is_said_in_one_line_with_what_to_do() -> Result<()> {
    let to_do = "give the HOST:PORT of a Kafka listener";
    for (bytes, level, words) in [
        (
            Some(&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..]),
            "ERROR",
            ["it answers with HTTP", to_do],
        ),
        (
            Some(&b"\x15\x03\x03\0\x02\x02\x50"[..]),
            "ERROR",
            ["it answers with TLS", "PLAINTEXT or SASL_PLAINTEXT listener"],
        ),
        (
            Some(&b"SSH-2.0-OpenSSH_9.2\r\n"[..]),
            "ERROR",
            ["\"SSH-2.0-OpenSSH_\" are no answer of a broker", to_do],
        ),
        (
            None,
            "WARN",
            [
                "it took the connection and did not answer within 2000 ms",
                "what is no broker",
            ],
        ),
    ] {
        let address = answering(bytes)?.to_string();
        let line = said_of(&address, "127.0.0.1:0", &words)?;
        assert!(line.contains(level) && line.contains(&address), "{line}");
    }
    Ok(())
}

#[test]
fn its_own_address_under_another_name_is_recognised() -> Result<()> {
    let port = ports::free(1)?;
    let words = ["ERROR", "it is this Convoke itself", "set upstream.bootstrap"];
    // 127.0.0.2 is no address of the listener by its text; on a wildcard listener it ends there.
    let said = said_of(&format!("127.0.0.2:{port}"), &format!("0.0.0.0:{port}"), &words)?;
    assert!(said.contains(&format!("127.0.0.2:{port}")), "{said}");
    Ok(())
}

#[test]
fn another_convoke_is_recognised_by_both() -> Result<()> {
    let kafka = kafka()?;
    let mut first = Convoke::start(CONVOKE, &kafka, &[])?;
    let words = ["ERROR", "a Convoke answers there", "set upstream.bootstrap"];
    for address in [first.bootstrap(), first.nodes()[&1].clone()] {
        let said = said_of(&address, "127.0.0.1:0", &words)?;
        assert!(said.contains(&address), "{said}");
    }
    // ApiVersions is refused with POLICY_VIOLATION.
    let refused = first.metric("convoke_request_errors_total", &["api=\"ApiVersions\""])?;
    assert!(refused >= 2.0, "{refused}");
    first.stop()
}

/// Its listener is reached by the bootstrap address, and advertised to be where nobody listens.
#[test]
fn a_broker_that_says_an_address_that_leads_nowhere_is_named_with_what_to_do() -> Result<()> {
    let nowhere = format!("127.0.0.1:{}", ports::free(1)?);
    let options = Options::new("4.4.0").set("advertised.listeners", &format!("CLIENT://{nowhere}"));
    let kafka = Kafka::start_in(Network::Loopback, options)?;
    let mut convoke = Convoke::launch(CONVOKE, &kafka, &[])?;
    let said = ["WARN", &nowhere, "advertised.listeners"];
    wait_for_log(convoke.process()?, 0, &said)?;
    eventually("a Convoke that says so", || {
        let (status, report) = convoke.get("/readyz")?;
        Ok(status == 503 && report.contains(&nowhere) && report.contains("advertised.listeners"))
    })?;
    // Whoever comes meanwhile is neither refused nor sent to where nobody is.
    let mut client = Raw::connect(&convoke.bootstrap())?;
    client.stream.set_read_timeout(Some(Duration::from_millis(300)))?;
    assert!(client.brokers().is_err(), "nobody answers yet");
    convoke.stop()
}
