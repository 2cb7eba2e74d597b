//! Reading a shard back from the store.

use std::sync::Arc;
use std::time::Duration;

use super::active_shard::ActiveShard;
use super::shard_task::Shared;
use crate::coordinator::record::{Record, RecordError};
use crate::coordinator::settings::Settings;
use crate::coordinator::shard::{Shard, ShardNumber};
use crate::store::{Incarnation, ShardId, StoreError};

/// Records that are applied in one go; then other tasks get their turn.
const CHUNK: usize = 1_024;

/// Why a shard could not be loaded.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoadError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("a stored record cannot be read ({0}); was it written by a newer version, or is the file damaged?")]
    Record(#[from] RecordError),
}

/// Waits, reads every record and applies it. A record that cannot be read fails the whole: to leave out an offset in silence
/// would send its consumer back to the start.
pub(super) async fn load(
    shared: Arc<Shared>,
    id: ShardId,
    settings: Arc<Settings>,
    wait: Duration,
) -> Result<ActiveShard, LoadError> {
    if !wait.is_zero() {
        tokio::time::sleep(wait).await;
    }
    let (incarnation, raw) = shared.store.load(id).await?;
    let mut shard = Shard::new(ShardNumber(id.0), settings, seed(shared.seed, id, incarnation));
    for chunk in raw.chunks(CHUNK) {
        for raw in chunk {
            if let Some(record) = Record::from_raw(raw)? {
                shard.replay(&record);
            }
        }
        tokio::task::yield_now().await;
    }
    shard.loaded(shared.clock.now());
    Ok(ActiveShard::new(id, incarnation, shard, shared))
}

/// Another seed for each shard and each time that it is loaded, so that no member id comes twice.
fn seed(process: u64, shard: ShardId, incarnation: Incarnation) -> u64 {
    [u64::from(shard.0), incarnation.0].iter().fold(process, |seed, part| {
        let mixed = (seed ^ part).wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    })
}
