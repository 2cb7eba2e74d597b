//! A damaged file is told, with its name and what to do; it is never taken for an empty one.

use std::fs;
use std::path::{Path, PathBuf};

use convoke::store::embedded::EmbeddedStore;
use convoke::store::{ShardId, StateStore, StoreError};
use tempfile::TempDir;

use crate::samples::{by_key, offset};

/// In memory where there is such a place: these tests open files hundreds of times.
pub(crate) fn scratch() -> TempDir {
    TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).unwrap()
}

/// Writes some hundred records and closes the file; returns its bytes.
async fn good_file(path: &Path) -> Vec<u8> {
    let store = EmbeddedStore::open(path, 1).unwrap();
    let (incarnation, _) = store.load(ShardId(0)).await.unwrap();
    for value in 0..20 {
        let batch = (0..50).map(|partition| offset("group", partition, value)).collect();
        store.append_and_wait(ShardId(0), incarnation, batch).await.unwrap();
    }
    drop(store);
    fs::read(path).unwrap()
}

/// What the file held when it was closed.
pub(crate) fn expected() -> Vec<convoke::coordinator::record::RawRecord> {
    (0..50).map(|partition| offset("group", partition, 19)).collect()
}

fn is_told(path: &Path, error: &StoreError) {
    assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains(&path.display().to_string()), "{text}");
    assert!(text.contains("restore it from a backup, or move it away"), "{text}");
}

#[tokio::test]
async fn a_truncated_file_is_damaged_wherever_it_was_cut() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("state.redb");
    let good = good_file(&path).await;
    for end in [
        0,
        1,
        8,
        9,
        64,
        320,
        511,
        512,
        4095,
        4096,
        4097,
        good.len() / 2,
        good.len() - 4096,
        good.len() - 1,
    ] {
        fs::write(&path, &good[..end]).unwrap();
        let error = EmbeddedStore::open(&path, 1).expect_err(&format!("cut at {end}"));
        is_told(&path, &error);
        assert_eq!(
            fs::metadata(&path).unwrap().len(),
            end as u64,
            "the file is left as it is"
        );
    }
}

/// The file is refused, or the byte meant nothing and all is there.
async fn flip(path: &Path, good: &[u8], at: usize, mask: u8) -> bool {
    let mut bad = good.to_vec();
    bad[at] ^= mask;
    fs::write(path, &bad).unwrap();
    match EmbeddedStore::open(path, 1) {
        Err(error) => {
            is_told(path, &error);
            true
        }
        Ok(store) => {
            let (_, records) = store.load(ShardId(0)).await.unwrap();
            assert_eq!(by_key(records), by_key(expected()), "byte {at} was flipped unseen");
            false
        }
    }
}

#[tokio::test]
async fn a_flipped_byte_is_damage_or_means_nothing() {
    let directory = scratch();
    let path = directory.path().join("state.redb");
    let good = good_file(&path).await;
    let mut refused = 0;
    for at in (0..320).chain((320..good.len()).step_by(311)) {
        refused += usize::from(flip(&path, &good, at, 0xff).await);
    }
    assert!(refused > 20, "only {refused} were refused");
}

/// What a killed process leaves behind: the database, and the log with what the database has not taken in.
pub(crate) struct Image {
    directory: TempDir,
    pub(crate) database: Vec<u8>,
    pub(crate) log: Vec<u8>,
}

impl Image {
    /// Of a process that has written some hundred records, before and after the database took some in.
    pub(crate) async fn of_a_killed_process() -> Self {
        let running = scratch();
        let path = running.path().join("state.redb");
        let store = EmbeddedStore::open(&path, 1).unwrap();
        for values in [0..10, 10..20] {
            // To be loaded, everything has to be in the database.
            let (incarnation, _) = store.load(ShardId(0)).await.unwrap();
            for value in values {
                let batch = (0..50).map(|partition| offset("group", partition, value)).collect();
                store.append_and_wait(ShardId(0), incarnation, batch).await.unwrap();
            }
        }
        Self {
            directory: scratch(),
            database: fs::read(&path).unwrap(),
            log: fs::read(log_of(&path)).unwrap(),
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("image.redb")
    }

    pub(crate) fn write(&self, database: &[u8], log: &[u8]) {
        fs::write(self.path(), database).unwrap();
        fs::write(log_of(&self.path()), log).unwrap();
    }

    /// Whether the image is refused as damaged; else everything must be there.
    async fn is_refused(&self) -> bool {
        match EmbeddedStore::open(&self.path(), 1) {
            Err(error) => {
                is_told(&self.path(), &error);
                true
            }
            Ok(store) => {
                let (_, records) = store.load(ShardId(0)).await.unwrap();
                assert_eq!(by_key(records), by_key(expected()));
                false
            }
        }
    }
}

pub(crate) fn log_of(path: &Path) -> PathBuf {
    path.with_extension("redb.log")
}

fn flipped(bytes: &[u8], at: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at] ^= 0xff;
    bytes
}

/// As a killed process leaves it: the newest commit is not to be taken for a torn one. Byte 9 is left out: its lowest bit
/// says which of the two newest commits counts, and a crash between the two phases of a commit looks like that bit flipped.
#[tokio::test]
async fn a_flipped_byte_is_damage_or_means_nothing_after_a_crash_too() {
    let image = Image::of_a_killed_process().await;
    image.write(&image.database, &image.log);
    assert!(!image.is_refused().await, "the image itself is good");
    let mut refused = 0;
    for at in (0..9).chain(10..320).chain((320..image.database.len()).step_by(311)) {
        image.write(&flipped(&image.database, at), &image.log);
        refused += usize::from(image.is_refused().await);
    }
    assert!(refused > 20, "only {refused} were refused");
}

#[tokio::test]
async fn a_flipped_byte_of_the_log_is_damage_or_means_nothing() {
    let image = Image::of_a_killed_process().await;
    let mut refused = 0;
    for at in (0..64).chain(4096..4200).chain((4200..image.log.len()).step_by(97)) {
        image.write(&image.database, &flipped(&image.log, at));
        refused += usize::from(image.is_refused().await);
    }
    assert!(refused > 300, "only {refused} were refused");
}

#[tokio::test]
async fn a_log_that_is_cut_or_gone_is_damaged() {
    let image = Image::of_a_killed_process().await;
    for end in [0, 1, 27, 28, 4095, 4096, 4100, image.log.len() / 2, image.log.len() - 1] {
        image.write(&image.database, &image.log[..end]);
        assert!(image.is_refused().await, "cut at {end}");
        assert_eq!(
            fs::read(log_of(&image.path())).unwrap().len(),
            end,
            "the log is left as it is"
        );
    }
    fs::remove_file(log_of(&image.path())).unwrap();
    assert!(image.is_refused().await, "gone");
}

/// The power went in the middle of a write that nobody was told of.
#[tokio::test]
async fn half_an_entry_that_was_never_acknowledged_means_nothing() {
    let image = Image::of_a_killed_process().await;
    let entry = (image.log.len() - 4096) / 10;
    for torn in [1, 8, 24, 25, entry / 2, entry - 1] {
        let mut log = image.log.clone();
        log.extend_from_slice(&image.log[4096..4096 + torn]);
        image.write(&image.database, &log);
        assert!(!image.is_refused().await, "{torn} bytes");
    }
}

#[tokio::test]
async fn something_else_under_the_name_is_damaged() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("state.redb");
    for content in [&b"hello"[..], &[0; 8192], "x".repeat(100_000).as_bytes()] {
        fs::write(&path, content).unwrap();
        is_told(&path, &EmbeddedStore::open(&path, 1).unwrap_err());
        assert_eq!(fs::read(&path).unwrap(), content, "the file is left as it is");
    }
}

#[tokio::test]
async fn a_database_of_something_else_is_damaged() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("state.redb");
    drop(redb::Database::create(&path).unwrap());
    is_told(&path, &EmbeddedStore::open(&path, 1).unwrap_err());
}

/// Changes what a closed file says of itself.
pub(crate) fn change_meta(path: &Path, change: impl FnOnce(&mut redb::Table<'_, &'static str, u64>)) {
    let database = redb::Database::create(path).unwrap();
    let transaction = database.begin_write().unwrap();
    change(&mut transaction.open_table(redb::TableDefinition::new("meta")).unwrap());
    transaction.commit().unwrap();
}

#[tokio::test]
async fn a_file_of_a_later_format_is_not_touched() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("state.redb");
    good_file(&path).await;
    change_meta(&path, |meta| {
        meta.insert("format", 4).unwrap();
    });
    let error = EmbeddedStore::open(&path, 1).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("its format is 4, this version of Convoke reads up to 3"),
        "{error}"
    );
}

#[tokio::test]
async fn a_file_from_before_there_were_logs_is_taken_over() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("state.redb");
    good_file(&path).await;
    change_meta(&path, |meta| {
        meta.insert("format", 1).unwrap();
        meta.remove("log").unwrap();
    });
    let store = EmbeddedStore::open(&path, 1).unwrap();
    let (_, records) = store.load(ShardId(0)).await.unwrap();
    assert_eq!(by_key(records), by_key(expected()));
}

#[tokio::test]
async fn a_start_that_did_not_finish_leaves_nothing_in_the_way() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("state.redb");
    fs::write(directory.path().join("state.redb.new"), b"half").unwrap();
    drop(EmbeddedStore::open(&path, 1).unwrap());
    assert!(path.exists());
    assert!(!directory.path().join("state.redb.new").exists());
}
