//! Many clients that commit one offset after the other, each on a connection and to a group of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use convoke_support::Result;

use crate::is_retriable;
use crate::raw::Raw;

/// The clients of one address. They end when they are told to, or when their connections do.
pub struct Committers {
    clients: Vec<(Arc<Progress>, JoinHandle<Result<()>>)>,
    stop: Arc<AtomicBool>,
}

/// How far one has come.
#[derive(Default)]
struct Progress {
    /// The last offset that was acknowledged; 0 for none.
    acknowledged: AtomicI64,
    /// Commits that were answered with an error that is retried.
    refused: AtomicU64,
}

/// The group of the client of that number.
pub fn group(number: usize) -> String {
    format!("committer-{number}")
}

impl Committers {
    pub fn start(address: &str, count: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let clients = (0..count).map(|number| {
            let progress = Arc::new(Progress::default());
            let (address, told, stop) = (address.to_owned(), Arc::clone(&progress), Arc::clone(&stop));
            (progress, thread::spawn(move || commit(&address, number, &told, &stop)))
        });
        let clients = clients.collect();
        Self { clients, stop }
    }

    /// Whether each of them was acknowledged more than it was then.
    pub fn all_beyond(&self, before: &[i64]) -> bool {
        self.acknowledged().iter().zip(before).all(|(now, before)| now > before)
    }

    pub fn acknowledged(&self) -> Vec<i64> {
        let clients = self.clients.iter();
        clients
            .map(|(progress, _)| progress.acknowledged.load(Ordering::SeqCst))
            .collect()
    }

    /// How often each was refused.
    pub fn refused(&self) -> Vec<u64> {
        let clients = self.clients.iter();
        clients
            .map(|(progress, _)| progress.refused.load(Ordering::SeqCst))
            .collect()
    }

    /// Ends them and says what was acknowledged to each.
    ///
    /// # Errors
    /// One got an answer that it should not get.
    pub fn end(self) -> Result<Vec<i64>> {
        self.stop.store(true, Ordering::SeqCst);
        let mut acknowledged = Vec::new();
        for (progress, client) in self.clients {
            client.join().map_err(|_| "a client panicked")??;
            acknowledged.push(progress.acknowledged.load(Ordering::SeqCst));
        }
        Ok(acknowledged)
    }
}

fn commit(address: &str, number: usize, progress: &Progress, stop: &AtomicBool) -> Result<()> {
    let mut client = Raw::connect(address)?;
    let group = group(number);
    let mut next = 1;
    while !stop.load(Ordering::SeqCst) {
        // A connection that ends leaves open whether its last commit counts.
        let Ok(error) = client.commit(&group, next) else {
            return Ok(());
        };
        if error == 0 {
            progress.acknowledged.store(next, Ordering::SeqCst);
            next += 1;
        } else if is_retriable(error) {
            progress.refused.fetch_add(1, Ordering::SeqCst);
            thread::sleep(Duration::from_millis(5));
        } else {
            return Err(format!("{group}: a commit was answered with {error}").into());
        }
    }
    Ok(())
}

/// What is committed is what was acknowledged, or the one commit after it that got no answer.
pub fn expect_kept(address: &str, acknowledged: &[i64]) -> Result<()> {
    let mut client = Raw::connect(address)?;
    for (number, acknowledged) in acknowledged.iter().enumerate() {
        let kept = client.committed(&group(number))?;
        let is_so = kept.is_ok_and(|kept| (*acknowledged..=acknowledged + 1).contains(&kept.max(0)));
        if !is_so {
            return Err(format!("{}: {kept:?}, and {acknowledged} was acknowledged", group(number)).into());
        }
    }
    Ok(())
}
