//! The database and the log beside it belong together; of two lives they are refused.

use std::fs;

use convoke::store::embedded::EmbeddedStore;
use convoke::store::{ShardId, StateStore, StoreError};

use crate::damage::{Image, change_meta, expected, log_of};
use crate::samples::{by_key, offset};

/// The files of the image are refused, and left as they are.
fn are_refused(image: &Image, why: &str) {
    let (database, log) = (image.path(), log_of(&image.path()));
    let before = fs::read(&log).unwrap();
    let error = EmbeddedStore::open(&database, 1).unwrap_err();
    assert!(matches!(error, StoreError::NotTogether { .. }), "{error:?}");
    let text = error.to_string();
    for part in [
        &format!("{} does not belong to {}: {why}", log.display(), database.display()),
        "put both files back from the same backup, or move both away",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(fs::read(&log).unwrap(), before);
}

/// Opens the image, commits once more, and gives database and log as a kill would leave them then.
async fn later(image: &Image) -> (Vec<u8>, Vec<u8>) {
    let store = EmbeddedStore::open(&image.path(), 1).unwrap();
    let (incarnation, _) = store.load(ShardId(0)).await.unwrap();
    for value in [100, 101] {
        let batch = vec![offset("group", 0, value)];
        store.append_and_wait(ShardId(0), incarnation, batch).await.unwrap();
    }
    (
        fs::read(image.path()).unwrap(),
        fs::read(log_of(&image.path())).unwrap(),
    )
}

#[tokio::test]
async fn a_log_of_another_store_is_refused() {
    let (image, other) = (Image::of_a_killed_process().await, Image::of_a_killed_process().await);
    image.write(&image.database, &other.log);
    are_refused(&image, "it was made for another database");
}

#[tokio::test]
async fn a_log_of_an_earlier_or_later_run_of_the_same_store_is_refused() {
    let image = Image::of_a_killed_process().await;
    image.write(&image.database, &image.log);
    // It stops in peace, and so the next run has another log.
    drop(EmbeddedStore::open(&image.path(), 1).unwrap());
    let (database, log) = later(&image).await;
    image.write(&database, &image.log);
    are_refused(
        &image,
        "it was made for another database, or for this one at another time",
    );
    image.write(&image.database, &log);
    are_refused(
        &image,
        "it was made for another database, or for this one at another time",
    );
}

#[tokio::test]
async fn a_log_of_another_time_of_the_same_run_is_refused() {
    let image = Image::of_a_killed_process().await;
    image.write(&image.database, &image.log);
    let (_, log) = later(&image).await;
    image.write(&image.database, &log);
    are_refused(&image, "it is newer than the database");
    image.write(&image.database, &image.log);
    let (mut database, mut log) = later(&image).await;
    // Once more, so that the database has taken in what the log said before.
    for _ in 0..2 {
        image.write(&database, &log);
        (database, log) = later(&image).await;
    }
    image.write(&database, &image.log);
    are_refused(&image, "it is older than the database");
    image.write(&database, &log);
    EmbeddedStore::open(&image.path(), 1).unwrap();
}

/// The log as it was written before logs had ids.
fn without_id(log: &[u8]) -> Vec<u8> {
    let mut head = b"CNVKLOG1".to_vec();
    head.extend_from_slice(&log[16..32]);
    let sum = crc32c::crc32c(&head);
    head.extend_from_slice(&sum.to_be_bytes());
    let mut old = log.to_vec();
    old[..36].fill(0);
    old[..head.len()].copy_from_slice(&head);
    old
}

#[tokio::test]
async fn files_from_before_there_were_ids_are_taken_over_with_what_the_log_holds() {
    let image = Image::of_a_killed_process().await;
    let log = without_id(&image.log);
    image.write(&image.database, &log);
    are_refused(&image, "it was made for another database");
    change_meta(&image.path(), |meta| {
        meta.insert("format", 2).unwrap();
        for name in ["log_id", "log_seen_epoch", "log_seen_entries"] {
            meta.remove(name).unwrap();
        }
    });
    let former = fs::read(image.path()).unwrap();
    for _ in 0..2 {
        let store = EmbeddedStore::open(&image.path(), 1).unwrap();
        let (_, records) = store.load(ShardId(0)).await.unwrap();
        assert_eq!(by_key(records), by_key(expected()));
        // The new log has an id: with the database of before it is refused.
        let new = fs::read(log_of(&image.path())).unwrap();
        drop(store);
        let taken_over = fs::read(image.path()).unwrap();
        image.write(&former, &new);
        are_refused(&image, "it was made for another database");
        image.write(&taken_over, &new);
    }
}
