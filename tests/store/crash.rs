//! The process is killed; what it had acknowledged is there when the next one starts.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use convoke::runtime::shard_of;
use convoke::store::embedded::EmbeddedStore;
use convoke::store::{Incarnation, ShardId, StateStore, StoreError};
use tempfile::TempDir;

use crate::samples::{by_key, offset, value_of};

const FILE: &str = "CONVOKE_TEST_STORE_FILE";
const SHARDS: u32 = 4;

/// Not a test of its own: what a child process runs, until it is killed. It commits 1, 2, 3 and so on to a group of each
/// shard, and prints `shard value` for each that is acknowledged.
#[test]
fn child_that_commits() {
    let Some(path) = std::env::var_os(FILE) else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(async {
        let store: std::sync::Arc<dyn StateStore> =
            std::sync::Arc::new(EmbeddedStore::open(Path::new(&path), SHARDS).unwrap());
        say("ready");
        let tasks: Vec<_> = (0..SHARDS)
            .map(|shard| {
                let store = store.clone();
                tokio::spawn(async move {
                    let (incarnation, records) = store.load(ShardId(shard)).await.unwrap();
                    let from = records.iter().map(value_of).max().unwrap_or(0);
                    // Four batches are on their way at any time.
                    let mut waiting = std::collections::VecDeque::new();
                    for value in from + 1.. {
                        waiting.push_back((value, append(&*store, shard, incarnation, value)));
                        if waiting.len() == 4 {
                            let (value, done) = waiting.pop_front().unwrap();
                            done.await.unwrap();
                            say(&format!("{shard} {value}"));
                        }
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
}

/// The value goes to two partitions, so that half a batch would show.
fn append(store: &dyn StateStore, shard: u32, incarnation: Incarnation, value: i64) -> convoke::store::StoreFuture<()> {
    let group = group_of(shard);
    let batch = vec![offset(&group, 0, value), offset(&group, 1, value)];
    store.append_and_wait(ShardId(shard), incarnation, batch)
}

/// A group that belongs to the shard.
fn group_of(shard: u32) -> String {
    let mut names = (0..).map(|n| format!("group-{n}"));
    names.find(|name| shard_of(name, SHARDS) == ShardId(shard)).unwrap()
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").unwrap();
    out.flush().unwrap();
}

fn start(path: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "crash::child_that_commits",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(FILE, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[tokio::test]
async fn kill_9_loses_nothing_acknowledged() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("state.redb");
    let mut acknowledged = [0_i64; SHARDS as usize];
    for lines in [1, 2, 3, 5, 10, 50, 100, 200, 400] {
        let mut child = start(&path);
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        // It is killed in the middle of its work, after so many acknowledgements; those still in the pipe count too.
        let mut seen = 0;
        for line in output {
            let line = line.unwrap();
            let Some((shard, value)) = line.split_once(' ') else {
                continue;
            };
            let (Ok(shard), Ok(value)) = (shard.parse::<usize>(), value.parse::<i64>()) else {
                continue;
            };
            acknowledged[shard] = acknowledged[shard].max(value);
            seen += 1;
            if seen == lines {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        let store = open_when_free(&path).await;
        for shard in 0..SHARDS {
            let (_, records) = store.load(ShardId(shard)).await.unwrap();
            let kept: Vec<i64> = records.iter().map(value_of).collect();
            let promised = acknowledged[shard as usize];
            let Some(&[first, second]) = kept.first_chunk() else {
                assert_eq!(promised, 0, "shard {shard} lost all");
                continue;
            };
            assert_eq!(first, second, "shard {shard}: half a batch");
            assert!(
                (promised..=promised + 4).contains(&first),
                "shard {shard}: {promised} promised, {first} kept"
            );
            // What was not acknowledged may be there; the next child goes on from it.
            acknowledged[shard as usize] = first;
        }
    }
    assert!(acknowledged.iter().all(|&value| value > 1), "{acknowledged:?}");
}

/// The kernel lets go of a killed process's lock soon, not at once.
async fn open_when_free(path: &Path) -> EmbeddedStore {
    for _ in 0..200 {
        match EmbeddedStore::open(path, SHARDS) {
            Err(StoreError::InUse { .. }) => tokio::time::sleep(Duration::from_millis(10)).await,
            opened => return opened.unwrap(),
        }
    }
    panic!("{} stays locked", path.display());
}

#[tokio::test]
async fn a_second_process_is_refused_and_the_first_goes_on() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("state.redb");
    let mut child = start(&path);
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(output.by_ref().any(|line| line.unwrap().contains("ready")));
    let error = EmbeddedStore::open(&path, SHARDS).unwrap_err();
    assert!(matches!(error, StoreError::InUse { .. }), "{error}");
    assert!(
        error.to_string().contains("state.redb is in use by another process"),
        "{error}"
    );
    assert!(output.by_ref().take(10).all(|line| line.is_ok()));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[tokio::test]
async fn a_second_store_of_the_same_process_is_refused_too() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("state.redb");
    let store = EmbeddedStore::open(&path, 1).unwrap();
    assert!(matches!(EmbeddedStore::open(&path, 1), Err(StoreError::InUse { .. })));
    drop(store);
    EmbeddedStore::open(&path, 1).unwrap();
}

#[tokio::test]
async fn another_number_of_shards_moves_every_record_to_its_group_s_shard() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("state.redb");
    let groups: Vec<String> = (0..100)
        .map(|n| format!("g{n}"))
        .chain(["".into(), "größe \u{1f680}".into()])
        .collect();
    let mut shards = 50;
    {
        let store = EmbeddedStore::open(&path, shards).unwrap();
        for (n, group) in (0..).zip(&groups) {
            let shard = shard_of(group, shards);
            let (incarnation, _) = store.load(shard).await.unwrap();
            store
                .append_and_wait(shard, incarnation, vec![offset(group, 0, n), offset(group, 1, n)])
                .await
                .unwrap();
        }
    }
    for next in [1, 7, 50, 128, 50] {
        shards = next;
        let store = EmbeddedStore::open(&path, shards).unwrap();
        let mut found = 0;
        for shard in 0..shards {
            let (_, records) = store.load(ShardId(shard)).await.unwrap();
            found += records.len();
            let expected = (0..)
                .zip(&groups)
                .filter(|(_, group)| shard_of(group, shards) == ShardId(shard));
            let expected = expected.flat_map(|(n, group)| [offset(group, 0, n), offset(group, 1, n)]);
            assert_eq!(by_key(records), by_key(expected.collect()), "shard {shard} of {shards}");
        }
        assert_eq!(found, groups.len() * 2);
    }
}

/// More than the log may hold, so that the database takes it in again and again in between.
#[tokio::test]
async fn much_is_written_and_the_last_of_it_is_there_after_the_next_start() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("state.redb");
    let group = group_of(1);
    let batch = |value| {
        (0..2_000)
            .map(|partition| offset(&group, partition, value))
            .collect::<Vec<_>>()
    };
    {
        let store = EmbeddedStore::open(&path, SHARDS).unwrap();
        let (incarnation, _) = store.load(ShardId(1)).await.unwrap();
        for value in 0..60 {
            store
                .append_and_wait(ShardId(1), incarnation, batch(value))
                .await
                .unwrap();
        }
        let log = std::fs::metadata(path.with_extension("redb.log")).unwrap().len();
        assert!((1 << 20..6 << 20).contains(&log), "{log} bytes");
    }
    assert!(!path.with_extension("redb.log").exists(), "a log after a stop in peace");
    let store = EmbeddedStore::open(&path, SHARDS).unwrap();
    let (_, records) = store.load(ShardId(1)).await.unwrap();
    assert_eq!(by_key(records), by_key(batch(59)));
}
