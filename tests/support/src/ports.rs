//! Free ports below the range that the kernel hands out, so that a port found free stays free until it is bound.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

use crate::Result;

const FIRST: u16 = 15_000;
const LAST: u16 = 32_000;

static NEXT: AtomicU16 = AtomicU16::new(0);

/// `count` neighbouring ports that nobody listens on, and that this process has not handed out before.
///
/// # Errors
/// When no such run of ports is left.
pub fn free(count: u16) -> Result<u16> {
    let span = LAST - FIRST - count;
    // Test processes that run at the same time start at different places.
    let offset = u16::try_from((u64::from(std::process::id()) * 211) % u64::from(span))?;
    for _ in 0..span {
        let step = NEXT.fetch_add(count, Ordering::Relaxed);
        let first = FIRST + (offset.wrapping_add(step)) % span;
        if (first..first + count).all(|port| TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).is_ok()) {
            return Ok(first);
        }
    }
    Err("no free ports between 15000 and 32000".into())
}
