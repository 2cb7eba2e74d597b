//! Who is let in: so many connections in all, so many from one address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// Counts the connections of the process.
#[derive(Debug)]
pub struct Admissions {
    max: usize,
    max_per_ip: usize,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    all: usize,
    by_ip: HashMap<IpAddr, usize>,
}

/// The limit that is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LimitReached {
    #[error("limits.connections_max ({0})")]
    All(usize),
    #[error("limits.connections_max_per_ip ({0})")]
    PerIp(usize),
}

/// One connection's place; it is free again when this is dropped.
#[derive(Debug)]
pub struct Place {
    admissions: Arc<Admissions>,
    ip: IpAddr,
}

impl Admissions {
    #[must_use]
    pub fn new(max: usize, max_per_ip: usize) -> Arc<Self> {
        Arc::new(Self {
            max,
            max_per_ip,
            open: Mutex::default(),
        })
    }

    /// Takes a place for a connection from `ip`.
    ///
    /// # Errors
    /// The limit, if one is reached.
    pub fn admit(self: &Arc<Self>, ip: IpAddr) -> Result<Place, LimitReached> {
        let ip = ip.to_canonical();
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.all >= self.max {
            return Err(LimitReached::All(self.max));
        }
        if open.by_ip.get(&ip).is_some_and(|count| *count >= self.max_per_ip) || self.max_per_ip == 0 {
            return Err(LimitReached::PerIp(self.max_per_ip));
        }
        open.all += 1;
        *open.by_ip.entry(ip).or_default() += 1;
        Ok(Place {
            admissions: Arc::clone(self),
            ip,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.admissions.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.all -= 1;
        if let Some(count) = open.by_ip.get_mut(&self.ip) {
            *count -= 1;
            if *count == 0 {
                open.by_ip.remove(&self.ip);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn places_are_limited_in_all_and_by_address_and_free_again_when_dropped() {
        let admissions = Admissions::new(3, 2);
        let first = admissions.admit(ip("10.0.0.1")).expect("the first");
        let _second = admissions
            .admit(ip("::ffff:10.0.0.1"))
            .expect("the same address, the second");
        assert_eq!(
            admissions.admit(ip("10.0.0.1")).expect_err("a third"),
            LimitReached::PerIp(2)
        );
        let _third = admissions.admit(ip("10.0.0.2")).expect("another address");
        assert_eq!(
            admissions.admit(ip("10.0.0.3")).expect_err("a fourth"),
            LimitReached::All(3)
        );
        drop(first);
        let _again = admissions.admit(ip("10.0.0.1")).expect("a place is free");
        assert_eq!(admissions.open.lock().expect("not poisoned").by_ip.len(), 2);
    }
}
