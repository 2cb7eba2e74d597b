//! What changes behind a conversation, for both sides at once: its own topic, and the settings of its group.

use convoke_support::Result;
use tokio::time::{Instant, sleep};

use crate::admin;
use crate::conversation::Talker;
use crate::probe;
use crate::step::{SHORT_SESSION_MS, TopicChange};
use crate::world::{OWN_TOPIC, World};

/// What members are told where sessions are short.
const SHORT_INTERVAL_MS: i32 = 1_000;

/// Changes the conversation's own topic, and lets both sides hear of it.
pub async fn topic(world: &World, sides: &mut [Talker<'_>; 2], change: TopicChange) -> Result<()> {
    let has = sides[0].topics.own_partitions();
    let is_possible = match change {
        TopicChange::Created(_) => has == 0,
        TopicChange::Grown(partitions) => (1..partitions).contains(&has),
        TopicChange::Deleted => has > 0,
    };
    if !is_possible {
        // In a conversation that was shrunk.
        return Ok(());
    }
    let topic = sides[0].topics.called(OWN_TOPIC).to_owned();
    let id = world.admin.change(&topic, change).await?;
    for side in sides {
        side.topics.own_is(id, change.partitions());
        probe::until_known(side, &topic, change).await?;
    }
    Ok(())
}

/// Gives the first group a session timeout of its own, and waits until both sides go by it. Somebody comes and goes on both
/// sides as often, so that the group is the same on both.
pub async fn sessions(sides: &mut [Talker<'_>; 2]) -> Result<()> {
    let settings = [
        ("consumer.session.timeout.ms", SHORT_SESSION_MS.to_string()),
        ("consumer.heartbeat.interval.ms", SHORT_INTERVAL_MS.to_string()),
    ];
    for side in &mut *sides {
        probe::configure(side, 0, &settings).await?;
    }
    let deadline = Instant::now() + admin::LIMIT;
    loop {
        let [broker, convoke] = &mut *sides;
        let intervals = [
            probe::interval_ms(broker, 0).await?,
            probe::interval_ms(convoke, 0).await?,
        ];
        if intervals == [SHORT_INTERVAL_MS; 2] {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(format!("sessions do not become short: {intervals:?}").into());
        }
        sleep(admin::AGAIN).await;
    }
}
