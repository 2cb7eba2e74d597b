//! One connection for each address, made when first wanted and made again when it broke, with a back-off between tries
//! that everybody who asks for the address shares.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::UpstreamError;
use super::backoff::Backoff;
use super::node::{Dialer, Node};
use crate::config::HostPort;

const FIRST_DELAY: Duration = Duration::from_millis(100);
const MAX_DELAY: Duration = Duration::from_secs(1);

/// The connections of our own.
#[derive(Debug)]
pub struct Pool {
    dialer: Dialer,
    slots: Mutex<HashMap<HostPort, Arc<tokio::sync::Mutex<Slot>>>>,
    failures: AtomicU64,
}

#[derive(Debug)]
struct Slot {
    node: Option<Arc<Node>>,
    /// The last try's error, answered instead of a new try until then.
    failed: Option<(UpstreamError, Instant)>,
    backoff: Backoff,
}

impl Pool {
    #[must_use]
    pub fn new(dialer: Dialer) -> Self {
        Self {
            dialer,
            slots: Mutex::default(),
            failures: AtomicU64::new(0),
        }
    }

    /// The working connection to an address; those who ask while it is being made share it.
    ///
    /// # Errors
    /// Why there is none, without a new try soon after the last one failed.
    pub async fn node(&self, address: &HostPort) -> Result<Arc<Node>, UpstreamError> {
        let slot = self.slot(address);
        let mut slot = slot.lock().await;
        if let Some(node) = slot.node.as_ref().filter(|node| !node.is_closed()) {
            return Ok(Arc::clone(node));
        }
        if let Some((error, until)) = &slot.failed
            && Instant::now() < *until
        {
            return Err(error.clone());
        }
        match self.dialer.dial(address).await {
            Ok(node) => {
                slot.backoff.reset();
                slot.failed = None;
                slot.node = Some(Arc::clone(&node));
                Ok(node)
            }
            Err(error) => {
                self.count_failure();
                slot.node = None;
                let until = Instant::now() + slot.backoff.delay();
                slot.failed = Some((error.clone(), until));
                Err(error)
            }
        }
    }

    /// Whether there is a working connection to an address at this moment.
    #[must_use]
    pub fn is_live(&self, address: &HostPort) -> bool {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = slots.get(address).and_then(|slot| slot.try_lock().ok());
        slot.is_some_and(|slot| slot.node.as_ref().is_some_and(|node| !node.is_closed()))
    }

    /// Lets go of the connections to addresses that are no longer wanted.
    pub fn retain(&self, wanted: impl Fn(&HostPort) -> bool) {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.retain(|address, _| wanted(address));
    }

    /// Requests and dials of our own that failed, since the start.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    pub fn count_failure(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    fn slot(&self, address: &HostPort) -> Arc<tokio::sync::Mutex<Slot>> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = slots.get(address) {
            return Arc::clone(slot);
        }
        let slot = Arc::new(tokio::sync::Mutex::new(Slot {
            node: None,
            failed: None,
            backoff: Backoff::new(FIRST_DELAY, MAX_DELAY),
        }));
        slots.insert(address.clone(), Arc::clone(&slot));
        slot
    }
}
