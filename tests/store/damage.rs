//! A damaged file is told, with its name and what to do; it is never taken for an empty one.

use std::fs;
use std::path::Path;

use convoke::store::embedded::EmbeddedStore;
use convoke::store::{ShardId, StateStore, StoreError};
use tempfile::TempDir;

use crate::samples::{by_key, offset};

/// In memory where there is such a place: these tests open files hundreds of times.
fn scratch() -> TempDir {
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
fn expected() -> Vec<convoke::coordinator::record::RawRecord> {
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

/// As a killed process leaves it: the newest commit is not to be taken for a torn one. Byte 9 is left out: its lowest bit
/// says which of the two newest commits counts, and a crash between the two phases of a commit looks like that bit flipped.
#[tokio::test]
async fn a_flipped_byte_is_damage_or_means_nothing_after_a_crash_too() {
    let directory = scratch();
    let path = directory.path().join("state.redb");
    let elsewhere = scratch();
    let image = elsewhere.path().join("image.redb");
    let store = EmbeddedStore::open(&path, 1).unwrap();
    let (incarnation, _) = store.load(ShardId(0)).await.unwrap();
    for value in 0..20 {
        let batch = (0..50).map(|partition| offset("group", partition, value)).collect();
        store.append_and_wait(ShardId(0), incarnation, batch).await.unwrap();
    }
    let good = fs::read(&path).unwrap();
    assert!(!flip(&image, &good, 0, 0).await, "the image itself is good");
    let mut refused = 0;
    for at in (0..9).chain(10..320).chain((320..good.len()).step_by(311)) {
        refused += usize::from(flip(&image, &good, at, 0xff).await);
    }
    assert!(refused > 20, "only {refused} were refused");
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

#[tokio::test]
async fn a_file_of_a_later_format_is_not_touched() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("state.redb");
    good_file(&path).await;
    let database = redb::Database::create(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    {
        let meta: redb::TableDefinition<'_, &str, u64> = redb::TableDefinition::new("meta");
        transaction.open_table(meta).unwrap().insert("format", 2).unwrap();
    }
    transaction.commit().unwrap();
    drop(database);
    let error = EmbeddedStore::open(&path, 1).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("its format is 2, this version of Convoke reads 1"),
        "{error}"
    );
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
