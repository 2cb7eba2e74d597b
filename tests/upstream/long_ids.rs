//! Text that is not UTF-8 grows when a broker reads it, and can become longer than a broker can write. What such a group id does
//! to a broker is its own affair; other groups are still to be taken over.

use bytes::BufMut;
use convoke::coordinator::input::Presence;
use convoke_support::Result;
use convoke_support::kafka::{Kafka, Options};
use convoke_support::network::Network;
use kafka_protocol::messages::ListGroupsRequest;

use crate::groups::{commit, join};
use crate::raw::Raw;
use crate::world::{World, broker_versions};

const OFFSET_COMMIT: i16 = 8;
/// Each of these bytes becomes three.
const BAD_BYTES: usize = 12_000;

/// An OffsetCommit (v2) from outside a generation, of a group whose id is not UTF-8.
fn odd_commit() -> Vec<u8> {
    let mut body = Vec::new();
    body.put_i16(i16::try_from(BAD_BYTES).expect("it fits"));
    body.put_bytes(0xff, BAD_BYTES);
    body.put_i32(-1);
    body.put_i16(0);
    body.put_i64(-1);
    body.put_i32(1);
    body.put_i16(6);
    body.put_slice(b"orders");
    body.put_i32(1);
    body.put_i32(0);
    body.put_i64(42);
    body.put_i16(0);
    body
}

#[test]
fn a_group_id_that_no_broker_can_write_hurts_no_other_group() -> Result<()> {
    for version in broker_versions() {
        let kafka = Kafka::start_in(Network::Loopback, Options::new(version))?;
        kafka.create_topic("orders", 3)?;
        let world = World::new(&kafka, None);
        world.wait("orders", |cluster| cluster.topics.by_name.contains_key("orders"))?;
        world.run(inspect_after(&world, &kafka, version))?;
    }
    Ok(())
}

async fn inspect_after(world: &World, kafka: &Kafka, version: &str) -> Result<()> {
    let inspect = async |id: &str| world.upstream.inspect(id).await.map_err(|failure| failure.reason);
    // Has the broker make its offsets topic.
    inspect("before").await?;
    let raw = Raw::connect(&kafka.address(1)).await?;
    commit(&raw, "plain", 1, 7).await?;
    join(&raw, "busy").await?;
    let answer = raw.send(OFFSET_COMMIT, 2, &odd_commit()).await?;
    let error = i16::from_be_bytes([answer[answer.len() - 2], answer[answer.len() - 1]]);
    assert_eq!(error, -1, "{version}: UNKNOWN_SERVER_ERROR");
    let listed = raw.call(4, &ListGroupsRequest::default()).await?;
    let lists = version != "3.8.1";
    assert_eq!(listed.error_code, if lists { 0 } else { -1 }, "{version}");

    assert_eq!(inspect("other").await?.presence, Presence::Vacant, "{version}");
    let plain = inspect("plain").await?;
    assert_eq!(
        (plain.presence, plain.offsets.len()),
        (Presence::Vacant, 1),
        "{version}"
    );
    let busy = inspect("busy").await?.presence;
    assert!(matches!(busy, Presence::Live { .. }), "{version}: {busy:?}");
    Ok(())
}
