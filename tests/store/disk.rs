//! A disk that is full or read-only. Real file systems where this process may mount them; the same by planted failures is
//! tested beside the store.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use bytes::Bytes;
use convoke::store::embedded::EmbeddedStore;
use convoke::store::{Incarnation, ShardId, StateStore, StoreError};
use tempfile::TempDir;

use crate::samples::{by_key, offset};

/// A small file system of its own, unmounted at the end.
struct Tmpfs {
    directory: TempDir,
}

impl Tmpfs {
    /// `None` where mounting is not allowed.
    fn mount() -> Option<Self> {
        let directory = TempDir::new().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"])
            .arg(directory.path())
            .output();
        mounted
            .is_ok_and(|output| output.status.success())
            .then(|| Self { directory })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn remount(&self, mode: &str) {
        let options = format!("remount,{mode}");
        let output = Command::new("mount")
            .args(["-o", &options])
            .arg(self.directory.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.directory.path()).output();
    }
}

/// Takes all the room there is.
fn fill(path: &Path) {
    let mut file = fs::File::create(path).unwrap();
    while std::io::Write::write_all(&mut file, &[0; 4096]).is_ok() {}
}

#[tokio::test]
async fn a_full_disk_refuses_and_room_again_is_enough() {
    let Some(tmpfs) = Tmpfs::mount() else {
        eprintln!("not allowed to mount a tmpfs: skipped");
        return;
    };
    let path = tmpfs.path("state.redb");
    let store = EmbeddedStore::open(&path, 1).unwrap();
    let (incarnation, _) = store.load(ShardId(0)).await.unwrap();
    let batch = |value| {
        (0..200)
            .map(|n| offset(&format!("group-{n}"), 0, value))
            .collect::<Vec<_>>()
    };
    store.append_and_wait(ShardId(0), incarnation, batch(1)).await.unwrap();
    fill(&tmpfs.path("filler"));

    // Pages that were freed before may still take a commit or two.
    let mut kept = 1;
    let mut failed = None;
    for value in 2..100 {
        let mut larger = batch(value);
        larger.extend((0..100 * value).map(|n| offset(&format!("more-{n}"), 0, value)));
        match store.append_and_wait(ShardId(0), incarnation, larger).await {
            Ok(()) => kept = value,
            Err(error) => {
                failed = Some(error);
                break;
            }
        }
    }
    let error = failed.expect("a full disk takes no more");
    assert!(matches!(error, StoreError::Io { .. }), "{error}");
    assert!(error.to_string().contains("No space left on device"), "{error}");
    let refused = store
        .append_and_wait(ShardId(0), incarnation, batch(1000))
        .await
        .unwrap_err();
    assert!(matches!(refused, StoreError::Superseded), "{refused}");
    // Reading would go well; a shard that is loaded and fails with its next write would come and go.
    for _ in 0..20 {
        let error = store.load(ShardId(0)).await.unwrap_err();
        assert!(error.to_string().contains("No space left on device"), "{error}");
        let failing = store.stats().failing().expect("nothing can be written");
        assert!(failing.to_string().contains("No space left on device"), "{failing}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }

    fs::remove_file(tmpfs.path("filler")).unwrap();
    let (incarnation, records) = loaded_when_tried_again(&store).await;
    assert!(store.stats().failing().is_none());
    for record in batch(kept) {
        assert_eq!(records.get(&record.key), Some(&record.value));
    }
    store
        .append_and_wait(ShardId(0), incarnation, batch(2000))
        .await
        .unwrap();
    drop(store);
    let store = EmbeddedStore::open(&path, 1).unwrap();
    let records = by_key(store.load(ShardId(0)).await.unwrap().1);
    for record in batch(2000) {
        assert_eq!(records.get(&record.key), Some(&record.value));
    }
}

#[tokio::test]
async fn a_read_only_disk_is_told_at_the_start() {
    let Some(tmpfs) = Tmpfs::mount() else {
        eprintln!("not allowed to mount a tmpfs: skipped");
        return;
    };
    let path = tmpfs.path("state.redb");
    drop(EmbeddedStore::open(&path, 1).unwrap());
    tmpfs.remount("ro");
    for path in [path, tmpfs.path("new/state.redb"), tmpfs.path("new.redb")] {
        let error = EmbeddedStore::open(&path, 1).unwrap_err();
        assert!(matches!(error, StoreError::Io { .. }), "{error}");
        assert!(error.to_string().contains("Read-only file system"), "{error}");
    }
    tmpfs.remount("rw");
    EmbeddedStore::open(&tmpfs.path("state.redb"), 1).unwrap();
}

#[tokio::test]
async fn a_directory_that_cannot_be_is_told_at_the_start() {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("file"), b"").unwrap();
    let error = EmbeddedStore::open(&directory.path().join("file/state.redb"), 1).unwrap_err();
    assert!(matches!(error, StoreError::Io { .. }), "{error}");
}

#[tokio::test]
async fn the_directory_is_made_and_the_file_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;

    let directory = TempDir::new().unwrap();
    let path = directory.path().join("a/b/state.redb");
    drop(EmbeddedStore::open(&path, 1).unwrap());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn a_file_that_was_removed_under_its_process_is_not_written_to_and_not_made_anew() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("state.redb");
    let store = EmbeddedStore::open(&path, 1).unwrap();
    let (incarnation, _) = store.load(ShardId(0)).await.unwrap();
    store
        .append_and_wait(ShardId(0), incarnation, records(0))
        .await
        .unwrap();
    let kept = directory.path().join("kept");
    fs::rename(&path, &kept).unwrap();

    let error = store
        .append_and_wait(ShardId(0), incarnation, records(1000))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("removed or replaced"), "{error}");
    let error = store.load(ShardId(0)).await.unwrap_err();
    assert!(error.to_string().contains("removed or replaced"), "{error}");
    assert!(!path.exists(), "a new file would hide what is gone");
    let error = EmbeddedStore::open(&path, 1).unwrap_err();
    assert!(matches!(error, StoreError::InUse { .. }), "{error}");

    // Put back, it is used again.
    fs::rename(&kept, &path).unwrap();
    let (_, loaded) = loaded_when_tried_again(&store).await;
    for record in records(0) {
        assert!(loaded.contains_key(&record.key));
    }
}

fn records(first: i64) -> Vec<convoke::coordinator::record::RawRecord> {
    (0..10).map(|partition| offset("group", partition, first)).collect()
}

/// A file that could not be opened is not tried again at once.
async fn loaded_when_tried_again(store: &EmbeddedStore) -> (Incarnation, BTreeMap<Bytes, Option<Bytes>>) {
    loop {
        if let Ok((incarnation, records)) = store.load(ShardId(0)).await {
            return (incarnation, by_key(records));
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}
