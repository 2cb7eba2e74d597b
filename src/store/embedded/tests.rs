mod power_cut;

use std::io;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use bytes::Bytes;
use redb::backends::FileBackend;
use redb::{BackendError, StorageBackend};
use tempfile::TempDir;

use super::file::Attempt;
use super::*;

const SHARD: ShardId = ShardId(3);
const OTHER: ShardId = ShardId(4);

/// What the disk does.
#[derive(Debug, Default)]
struct Disk {
    full: AtomicBool,
    sync_fails: AtomicBool,
    panics: AtomicBool,
    /// Writes and syncs that are still done; negative: no limit, but a disk that panics does so at once.
    remaining: AtomicI64,
    held: Mutex<bool>,
    released: Condvar,
}

impl Disk {
    fn new() -> Arc<Self> {
        let disk = Self::default();
        disk.remaining.store(-1, Ordering::SeqCst);
        Arc::new(disk)
    }

    fn hold(&self, held: bool) {
        *self.held.lock().unwrap() = held;
        self.released.notify_all();
    }

    fn panic_if_planted(&self) {
        let due = self.remaining.load(Ordering::SeqCst) <= 0;
        assert!(!(due && self.panics.load(Ordering::SeqCst)), "planted panic");
    }

    /// One write or sync.
    fn spend(&self) -> io::Result<()> {
        self.panic_if_planted();
        match self.remaining.load(Ordering::SeqCst) {
            0 => return Err(io::Error::other("planted failure")),
            1.. => {
                self.remaining.fetch_sub(1, Ordering::SeqCst);
            }
            _ => {}
        }
        Ok(())
    }
}

#[derive(Debug)]
struct FaultyBackend {
    file: FileBackend,
    disk: Arc<Disk>,
}

impl StorageBackend for FaultyBackend {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.disk.panic_if_planted();
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        drop(
            self.disk
                .released
                .wait_while(self.disk.held.lock().unwrap(), |held| *held)
                .unwrap(),
        );
        self.disk.spend()?;
        if self.disk.sync_fails.load(Ordering::SeqCst) {
            return Err(io::Error::other("planted sync failure"));
        }
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.disk.spend()?;
        if self.disk.full.load(Ordering::SeqCst) {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        self.file.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }
}

struct Fixture {
    disk: Arc<Disk>,
    directory: TempDir,
}

impl Fixture {
    fn new() -> Self {
        Self {
            disk: Disk::new(),
            directory: TempDir::new().unwrap(),
        }
    }

    /// In memory where there is such a place.
    fn in_memory() -> Self {
        Self {
            disk: Disk::new(),
            directory: TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).unwrap(),
        }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("state.redb")
    }

    fn store(&self, queue_bytes: usize) -> EmbeddedStore {
        let disk = self.disk.clone();
        let file = self.path();
        let opener = move |attempt| open_on(&disk, &file, Wanted::Exactly(8), attempt);
        EmbeddedStore::start(&self.path(), queue_bytes, Box::new(opener)).unwrap()
    }
}

fn open_on(disk: &Arc<Disk>, path: &Path, shards: Wanted, attempt: Attempt) -> Result<LoggedFile, StoreError> {
    LoggedFile::open_with(path, shards, attempt, |file| FaultyBackend {
        file,
        disk: disk.clone(),
    })
}

fn batch(name: &str, value: u32) -> Vec<RawRecord> {
    let mut key = vec![0, 2, 0, name.len() as u8];
    key.extend_from_slice(name.as_bytes());
    vec![RawRecord {
        key: key.into(),
        value: Some(Bytes::copy_from_slice(&value.to_be_bytes())),
    }]
}

/// Loads until the pause after a failure is over.
async fn reload(store: &EmbeddedStore, shard: ShardId) -> (Incarnation, Vec<RawRecord>) {
    for _ in 0..1_000 {
        if let Ok(loaded) = store.load(shard).await {
            return loaded;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the store did not recover");
}

#[tokio::test]
async fn a_disk_with_room_again_needs_no_restart() {
    let fixture = Fixture::new();
    let store = fixture.store(QUEUE_BYTES);
    let (incarnation, _) = store.load(SHARD).await.unwrap();
    let (other, _) = store.load(OTHER).await.unwrap();
    store.append_and_wait(SHARD, incarnation, batch("a", 1)).await.unwrap();

    fixture.disk.full.store(true, Ordering::SeqCst);
    let error = store
        .append_and_wait(SHARD, incarnation, batch("a", 2))
        .await
        .unwrap_err();
    assert!(matches!(error, StoreError::Io { .. }), "{error}");
    assert!(error.to_string().contains("state.redb"), "{error}");
    let refused = store
        .append_and_wait(SHARD, incarnation, batch("a", 3))
        .await
        .unwrap_err();
    assert!(matches!(refused, StoreError::Superseded), "{refused}");
    assert!(store.load(SHARD).await.is_err());

    fixture.disk.full.store(false, Ordering::SeqCst);
    let (incarnation, records) = reload(&store, SHARD).await;
    assert_eq!(records, batch("a", 1));
    store.append_and_wait(SHARD, incarnation, batch("a", 4)).await.unwrap();
    // The other shard had nothing in the transaction that failed: it goes on as it was.
    store.append_and_wait(OTHER, other, batch("b", 1)).await.unwrap();
    drop(store);
    let store = fixture.store(QUEUE_BYTES);
    assert_eq!(store.load(SHARD).await.unwrap().1, batch("a", 4));
    assert_eq!(store.load(OTHER).await.unwrap().1, batch("b", 1));
}

#[tokio::test]
async fn a_failed_sync_acknowledges_nothing() {
    let fixture = Fixture::new();
    let store = fixture.store(QUEUE_BYTES);
    let (incarnation, _) = store.load(SHARD).await.unwrap();
    fixture.disk.sync_fails.store(true, Ordering::SeqCst);
    store
        .append_and_wait(SHARD, incarnation, batch("a", 1))
        .await
        .unwrap_err();
    assert_eq!((store.stats().batches(), store.stats().failures()), (0, 1));
    fixture.disk.sync_fails.store(false, Ordering::SeqCst);
    let (incarnation, _) = reload(&store, SHARD).await;
    store.append_and_wait(SHARD, incarnation, batch("a", 2)).await.unwrap();
}

#[tokio::test]
async fn whichever_write_fails_what_was_acknowledged_stays() {
    for limit in 0..60 {
        let fixture = Fixture::new();
        let store = fixture.store(QUEUE_BYTES);
        let (incarnation, _) = store.load(SHARD).await.unwrap();
        fixture.disk.remaining.store(limit, Ordering::SeqCst);
        let mut acknowledged = 0;
        for value in 1..=8 {
            match store.append_and_wait(SHARD, incarnation, batch("a", value)).await {
                Ok(()) => acknowledged = value,
                Err(_) => break,
            }
        }
        fixture.disk.remaining.store(-1, Ordering::SeqCst);
        let (_, records) = reload(&store, SHARD).await;
        let kept = records.first().and_then(|record| record.value.clone());
        let kept = kept.map_or(0, |value| u32::from_be_bytes(value.as_ref().try_into().unwrap()));
        // The batch that failed may have reached the disk all the same; nothing beyond it can have.
        assert!(
            (acknowledged..=acknowledged + 1).contains(&kept),
            "limit {limit}: {acknowledged}, {kept}"
        );
    }
}

#[tokio::test]
async fn a_panic_in_the_database_is_an_error_and_not_the_end() {
    let fixture = Fixture::new();
    let store = fixture.store(QUEUE_BYTES);
    let (incarnation, _) = store.load(SHARD).await.unwrap();
    store.append_and_wait(SHARD, incarnation, batch("a", 1)).await.unwrap();
    fixture.disk.panics.store(true, Ordering::SeqCst);
    let error = store
        .append_and_wait(SHARD, incarnation, batch("a", 2))
        .await
        .unwrap_err();
    let StoreError::Damaged { reason, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(reason, "planted panic");
    fixture.disk.panics.store(false, Ordering::SeqCst);
    let (_, records) = reload(&store, SHARD).await;
    assert_eq!(records, batch("a", 1));
}

/// Wherever it panics, and again when what is open is let go of: were a destructor to panic, this process would end.
#[tokio::test]
async fn a_panic_while_the_files_are_opened_is_an_error_and_not_the_end() {
    let killed = Fixture::new();
    let store = killed.store(QUEUE_BYTES);
    let (incarnation, _) = store.load(SHARD).await.unwrap();
    store.append_and_wait(SHARD, incarnation, batch("a", 1)).await.unwrap();
    let open_with_panic = |after, image: bool| {
        let fixture = Fixture::in_memory();
        if image {
            fs::copy(killed.path(), fixture.path()).unwrap();
            fs::copy(log::log_path(&killed.path()), log::log_path(&fixture.path())).unwrap();
        }
        fixture.disk.remaining.store(after, Ordering::SeqCst);
        fixture.disk.panics.store(true, Ordering::SeqCst);
        // Another number of shards, so that the records are moved as well.
        let opened = open_on(&fixture.disk, &fixture.path(), Wanted::Exactly(9), Attempt::First);
        let is_open = opened
            .as_ref()
            .is_ok_and(|_| fixture.disk.remaining.load(Ordering::SeqCst) > 0);
        if let Err(error) = opened {
            assert!(matches!(error, StoreError::Damaged { .. }), "{after}: {error}");
        }
        is_open
    };
    for image in [false, true] {
        let needed = (0..500).find(|after| open_with_panic(*after, image));
        assert!(needed.is_some_and(|needed| needed > 10), "{needed:?}");
    }
}

#[tokio::test]
async fn what_waits_for_the_disk_is_written_together() {
    let fixture = Fixture::new();
    let store = fixture.store(QUEUE_BYTES);
    let (incarnation, _) = store.load(SHARD).await.unwrap();
    let before = store.stats().commits();
    fixture.disk.hold(true);
    let waiting: Vec<_> = (0..100)
        .map(|value| store.append_and_wait(SHARD, incarnation, batch("a", value)))
        .collect();
    fixture.disk.hold(false);
    for append in waiting {
        append.await.unwrap();
    }
    assert!(store.stats().commits() - before <= 3, "{:?}", store.stats());
    assert_eq!(store.stats().batches(), 100);
    assert_eq!(store.load(SHARD).await.unwrap().1, batch("a", 99));
}

#[tokio::test]
async fn a_full_queue_refuses_and_so_does_all_that_builds_on_what_was_refused() {
    let fixture = Fixture::new();
    let store = fixture.store(4096);
    let (incarnation, _) = store.load(SHARD).await.unwrap();
    fixture.disk.hold(true);
    let large = |value| {
        let mut records = batch("a", value);
        records[0].value = Some(Bytes::from(vec![7; 3000]));
        records
    };
    let waiting: Vec<_> = (0..3)
        .map(|value| store.append_and_wait(SHARD, incarnation, large(value)))
        .collect();
    let last = store.append_and_wait(SHARD, incarnation, batch("a", 9));
    fixture.disk.hold(false);
    let mut results = Vec::new();
    for append in waiting {
        results.push(append.await);
    }
    // One or two fit, as the thread may or may not have taken the first before the second came.
    let refused = results.iter().position(Result::is_err).expect("one is refused");
    assert!(matches!(&results[refused], Err(StoreError::Io { .. })));
    assert!(results[refused + 1..].iter().all(Result::is_err));
    assert!(matches!(last.await, Err(StoreError::Superseded)));
    let (incarnation, _) = store.load(SHARD).await.unwrap();
    store.append_and_wait(SHARD, incarnation, batch("a", 10)).await.unwrap();
}

#[tokio::test]
async fn dropping_the_store_writes_what_waits() {
    let fixture = Fixture::new();
    let store = fixture.store(QUEUE_BYTES);
    let (incarnation, _) = store.load(SHARD).await.unwrap();
    let waiting = store.append_and_wait(SHARD, incarnation, batch("a", 5));
    drop(store);
    waiting.await.unwrap();
    assert_eq!(fixture.store(QUEUE_BYTES).load(SHARD).await.unwrap().1, batch("a", 5));
}

#[tokio::test]
async fn the_hook_hears_of_every_durable_batch() {
    let fixture = Fixture::new();
    let store = fixture.store(QUEUE_BYTES);
    let heard = Arc::new(AtomicI64::new(0));
    let count = heard.clone();
    store.stats().on_batch(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
    });
    let (incarnation, _) = store.load(SHARD).await.unwrap();
    for value in 0..3 {
        store
            .append_and_wait(SHARD, incarnation, batch("a", value))
            .await
            .unwrap();
    }
    assert_eq!(heard.load(Ordering::SeqCst), 3);
    assert!(store.stats().file_bytes() > 0);
}

#[test]
fn a_file_is_opened_with_the_shards_that_it_has_until_others_are_wanted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.redb");
    let shards = |opened: Result<EmbeddedStore, StoreError>| opened.unwrap().shards();
    assert_eq!(shards(EmbeddedStore::open_as_it_is(&path, 50)), 50);
    assert_eq!(shards(EmbeddedStore::open_as_it_is(&path, 7)), 50);
    assert_eq!(shards(EmbeddedStore::open(&path, 7)), 7);
    assert_eq!(shards(EmbeddedStore::open_as_it_is(&path, 50)), 7);
}

#[tokio::test]
async fn a_file_belongs_to_the_first_cluster_that_it_was_served_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.redb");
    let store = EmbeddedStore::open(&path, 1).unwrap();
    store.belong_to("one").await.unwrap();
    store.belong_to("one").await.unwrap();
    drop(store);
    let store = EmbeddedStore::open(&path, 2).unwrap();
    let error = store.belong_to("two").await.unwrap_err();
    assert!(matches!(error, StoreError::OtherCluster { .. }), "{error:?}");
    let said = error.to_string();
    for part in [&*path.display().to_string(), "\"one\"", "\"two\"", "upstream.bootstrap"] {
        assert!(said.contains(part), "{said}");
    }
    // The file itself is as good as before.
    store.load(SHARD).await.unwrap();
    store.belong_to("one").await.unwrap();
}
