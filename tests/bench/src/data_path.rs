//! Produce and Fetch through each route.

use std::time::{Duration, Instant};

use convoke_support::Result;
use uuid::Uuid;

use crate::closed_loop::{Repeated, Walk};
use crate::messages;
use crate::wire::{Client, frame};
use crate::work::Work;

/// Connections that produce 1 KB; each has a partition of its own.
pub const SMALL_CONNECTIONS: i32 = 8;
/// Connections of the other works.
pub const LARGE_CONNECTIONS: i32 = 4;

const PRODUCE_TOPIC: &str = "bench-produce";
const CONSUME_TOPIC: &str = "bench-consume";

/// Records of about a kilobyte: a batch of the prefilled topic is half a fetch of 64 KiB.
const RECORD_SIZE: usize = 1_000;
const RECORDS_PER_BATCH: u16 = 32;
/// 64 MB a partition: in the page cache, and in one segment, so that no fetch ends early.
const BATCHES: i32 = 2_048;

const LEADING_LIMIT: Duration = Duration::from_secs(30);
const LEADING_PAUSE: Duration = Duration::from_millis(50);

/// The topics that are produced to and consumed from.
#[derive(Debug)]
pub struct Topics {
    produce: Uuid,
    consume: Uuid,
}

impl Topics {
    /// Creates them and fills the one that is consumed.
    ///
    /// # Errors
    /// When the broker refuses.
    pub fn prepare(client: &mut Client) -> Result<Self> {
        // What was produced is deleted within seconds, mostly before it is written back to disk.
        let short_lived = [
            ("retention.ms", "-1"),
            ("retention.bytes", "67108864"),
            ("segment.bytes", "33554432"),
            ("file.delete.delay.ms", "0"),
        ];
        let produce = messages::create_topic(client, PRODUCE_TOPIC, SMALL_CONNECTIONS, &short_lived)?;
        let consume = messages::create_topic(client, CONSUME_TOPIC, LARGE_CONNECTIONS, &[("retention.ms", "-1")])?;
        let batch = messages::batch(RECORDS_PER_BATCH.into(), RECORD_SIZE)?;
        let fill = frame(
            &messages::produce(consume, 0..LARGE_CONNECTIONS, &batch),
            messages::PRODUCE,
        )?;
        let deadline = Instant::now() + LEADING_LIMIT;
        let mut batches = 0;
        while batches < BATCHES {
            match messages::verify_produce(&client.exchange(&fill)?) {
                Ok(()) => batches += 1,
                // Metadata tell of a leader before the broker leads.
                Err(_) if batches == 0 && Instant::now() < deadline => std::thread::sleep(LEADING_PAUSE),
                Err(error) => return Err(error),
            }
        }
        Ok(Self { produce, consume })
    }

    /// The requests of a work, one a connection; none for works of another kind.
    ///
    /// # Errors
    /// When one cannot be encoded.
    pub fn requests(&self, work: Work) -> Result<Vec<Repeated>> {
        match work {
            Work::Produce1K => self.produce(SMALL_CONNECTIONS, 1, 1024),
            Work::Produce64K => self.produce(LARGE_CONNECTIONS, 64, 1024),
            Work::Consume64K => self.consume(64 * 1024),
            Work::Consume1M => self.consume(1024 * 1024),
            _ => Ok(Vec::new()),
        }
    }

    fn produce(&self, connections: i32, records: usize, value_size: usize) -> Result<Vec<Repeated>> {
        let batch = messages::batch(records, value_size)?;
        let repeated = |partition| {
            Ok(Repeated {
                frame: frame(&messages::produce(self.produce, [partition], &batch), messages::PRODUCE)?,
                verify: messages::verify_produce,
                walk: None,
            })
        };
        (0..connections).map(repeated).collect()
    }

    fn consume(&self, bytes: i32) -> Result<Vec<Repeated>> {
        // A fetch holds a little less than a record a kilobyte; the next one starts behind what it held.
        let batch = i64::from(RECORDS_PER_BATCH);
        let step = i64::from(bytes / 1024) / batch * batch;
        let last = i64::from(BATCHES) * batch - 2 * step;
        let repeated = |partition| {
            let request = |offset| {
                frame(
                    &messages::fetch(self.consume, partition, offset, bytes),
                    messages::FETCH,
                )
            };
            let mark = 0x0102_0304_0506_0708_i64;
            let marked = request(mark)?;
            let at = marked
                .windows(size_of::<i64>())
                .position(|window| window == mark.to_be_bytes());
            Ok(Repeated {
                frame: request(0)?,
                verify: messages::verify_fetch,
                walk: Some(Walk {
                    at: at.ok_or("a Fetch without its offset")?,
                    step,
                    last,
                }),
            })
        };
        (0..LARGE_CONNECTIONS).map(repeated).collect()
    }
}
