//! The power goes: of what was written since the last sync each write may be there or not.

use std::sync::atomic::AtomicU64;

use super::*;

/// Writes and syncs that are done before the power goes, at most; the runs take all numbers up to it.
const OPERATIONS_MAX: i64 = 150;

/// A file as the disk has it.
#[derive(Debug, Default)]
struct Medium {
    /// What it held at the last sync.
    synced: Vec<u8>,
    unsynced: Vec<Change>,
}

#[derive(Debug)]
enum Change {
    Write(usize, Vec<u8>),
    Length(usize),
}

impl Medium {
    /// What is found later: each change that was not synced is there or not.
    fn left(&self, mut is_there: impl FnMut() -> bool) -> Vec<u8> {
        let mut bytes = self.synced.clone();
        for change in self.unsynced.iter().filter(|_| is_there()) {
            apply(&mut bytes, change);
        }
        bytes
    }

    fn sync(&mut self) {
        for change in std::mem::take(&mut self.unsynced) {
            apply(&mut self.synced, &change);
        }
    }
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Write(at, written) => {
            let end = at + written.len();
            bytes.resize(bytes.len().max(end), 0);
            bytes[*at..end].copy_from_slice(written);
        }
        Change::Length(length) => bytes.resize(*length, 0),
    }
}

#[derive(Debug)]
struct PoweredBackend {
    file: FaultyBackend,
    medium: Arc<Mutex<Medium>>,
}

impl StorageBackend for PoweredBackend {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)?;
        self.medium.lock().unwrap().unsynced.push(Change::Length(len as usize));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()?;
        self.medium.lock().unwrap().sync();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write(offset, data)?;
        let change = Change::Write(offset as usize, data.to_vec());
        self.medium.lock().unwrap().unsynced.push(change);
        Ok(())
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

/// Opens the files; the media are those of the database and the log.
fn open(fixture: &Fixture, media: &Mutex<Vec<Arc<Mutex<Medium>>>>) -> Result<LoggedFile, StoreError> {
    LoggedFile::open_with(&fixture.path(), Wanted::Exactly(8), Attempt::First, |file| {
        let mut synced = vec![0; file.len().unwrap() as usize];
        file.read(0, &mut synced).unwrap();
        let medium = Medium {
            synced,
            unsynced: Vec::new(),
        };
        let medium = Arc::new(Mutex::new(medium));
        media.lock().unwrap().push(medium.clone());
        let disk = fixture.disk.clone();
        PoweredBackend {
            file: FaultyBackend { file, disk },
            medium,
        }
    })
}

/// Commits 1, 2, 3 and so on until the power goes, after so many operations; the database takes them in after every third. Says
/// what was acknowledged last, and whether the power went at all.
fn run(fixture: &Fixture, from: u32, operations: i64, seed: u64) -> (u32, bool) {
    let media = Mutex::default();
    fixture.disk.remaining.store(operations, Ordering::SeqCst);
    let mut acknowledged = from;
    let mut power_went = true;
    if let Ok(mut file) = open(fixture, &media) {
        for value in from + 1..from + 12 {
            let batch = batch("a", value);
            if file.commit(batch.iter().map(|record| (SHARD, record))).is_err() {
                break;
            }
            acknowledged = value;
            if value.is_multiple_of(3) && file.load(SHARD).is_err() {
                break;
            }
        }
        power_went = fixture.disk.remaining.load(Ordering::SeqCst) == 0;
    }
    fixture.disk.remaining.store(-1, Ordering::SeqCst);
    let random = AtomicU64::new(seed);
    let mut is_there = || {
        let next = random
            .load(Ordering::SeqCst)
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        random.store(next, Ordering::SeqCst);
        next >> 63 == 1
    };
    let paths = [fixture.path(), log::log_path(&fixture.path())];
    for (medium, path) in media.into_inner().unwrap().iter().zip(paths) {
        fs::write(path, medium.lock().unwrap().left(&mut is_there)).unwrap();
    }
    (acknowledged, power_went)
}

#[test]
fn what_was_acknowledged_is_there_whenever_the_power_goes() {
    let mut cuts = 0;
    for operations in (1..OPERATIONS_MAX).step_by(3) {
        let fixture = Fixture::in_memory();
        drop(open(&fixture, &Mutex::default()).unwrap());
        let mut acknowledged = 0;
        // Each life begins with what the one before has left.
        for life in 0..3 {
            let power_went;
            (acknowledged, power_went) = run(&fixture, acknowledged, operations + life, operations as u64);
            cuts += u32::from(power_went);
            let mut file = open(&fixture, &Mutex::default())
                .unwrap_or_else(|error| panic!("{operations} operations, life {life}: {error}"));
            let records = file.load(SHARD).unwrap();
            let kept = records.first().and_then(|record| record.value.clone());
            let kept = kept.map_or(0, |value| u32::from_be_bytes(value.as_ref().try_into().unwrap()));
            // What was under way when the power went may be there.
            assert!(
                (acknowledged..=acknowledged + 1).contains(&kept),
                "{operations} operations, life {life}: {acknowledged}, {kept}"
            );
            acknowledged = kept;
        }
    }
    assert!(cuts > 50, "only {cuts}");
}
