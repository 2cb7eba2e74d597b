//! A broker that takes connections and answers nothing, as one that is swapped out or in a long collection does.

use std::time::Duration;

use convoke_support::Result;
use convoke_support::convoke::Convoke;

use crate::raw::Raw;
use crate::{CONVOKE, eventually, kafka, wait_for_log};

#[test]
fn groups_go_on_while_the_broker_stands_still_and_what_waits_for_it_is_answered_when_it_goes_on() -> Result<()> {
    let kafka = kafka()?;
    let limits = [
        "--set",
        "upstream.request_timeout=2s",
        "--set",
        "upstream.metadata_refresh=1s",
    ];
    let mut convoke = Convoke::start(CONVOKE, &kafka, &limits)?;
    let address = convoke.nodes()[&1].clone();
    let mut member = Raw::connect(&address)?;
    let mut waiting = Raw::connect(&address)?;
    assert_eq!(member.commit("group", 1)?, 0);
    assert_eq!(waiting.brokers()?, 1);

    kafka.freeze(1);
    let request = kafka_protocol::messages::MetadataRequest::default().with_topics(Some(Vec::new()));
    waiting.send(4, &request)?;
    let (line, _) = wait_for_log(
        convoke.process()?,
        0,
        &["upstream is out of reach", "did not answer within 2000 ms"],
    )?;
    assert!(line.contains("WARN"), "{line}");
    eventually("an unready Convoke", || {
        let (status, report) = convoke.get("/readyz")?;
        Ok(status == 503 && report.contains("upstream: ") && report.contains("did not answer within 2000 ms"))
    })?;
    // A new connection to it is taken by the kernel, and answered by nobody.
    wait_for_log(convoke.process()?, 0, &["it took the connection and did not answer"])
        .or_else(|_| wait_for_log(convoke.process()?, 0, &["upstream is out of reach"]))?;
    for offset in 2..50 {
        assert_eq!(member.commit("group", offset)?, 0);
        assert_eq!(member.committed("group")?, Ok(offset));
    }
    let mut newcomer = Raw::connect(&address)?;
    assert_eq!(newcomer.committed("group")?, Ok(49), "a new connection is served too");
    waiting.stream.set_read_timeout(Some(Duration::from_millis(200)))?;
    let mut byte = [0];
    assert!(
        waiting.stream.peek(&mut byte).is_err(),
        "the client waits as long as it likes"
    );

    kafka.thaw(1);
    waiting.stream.set_read_timeout(Some(crate::PATIENCE))?;
    let answer = waiting.receive::<kafka_protocol::messages::MetadataRequest>(4)?;
    assert_eq!(answer.brokers.len(), 1);
    eventually("a ready Convoke", || Ok(convoke.get("/readyz")?.0 == 200))?;
    wait_for_log(convoke.process()?, 0, &["upstream answers, after"])?;
    assert_eq!(member.committed("group")?, Ok(49));
    convoke.stop()
}
