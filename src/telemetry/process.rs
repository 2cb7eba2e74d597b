//! The process's own figures under the names that every Prometheus client library gives them, read from `/proc/self`.
//!
//! What cannot be read (another system, a hardened `/proc`) is left out.

use std::fs;

use prometheus::core::Collector;
use prometheus::proto::MetricFamily;
use prometheus::{Counter, Gauge};

/// Linux reports times in `/proc/self/stat` in ticks of a hundredth of a second on every architecture (USER_HZ).
const TICKS_PER_SECOND: f64 = 100.0;

/// The `process_…` metrics of this moment.
pub(super) fn families() -> Vec<MetricFamily> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let boot = fs::read_to_string("/proc/stat").unwrap_or_default();
    [
        (
            "process_resident_memory_bytes",
            "Resident memory.",
            kilobytes(&status, "VmRSS:").map(|kb| kb * 1024.0),
        ),
        (
            "process_virtual_memory_bytes",
            "Virtual memory.",
            kilobytes(&status, "VmSize:").map(|kb| kb * 1024.0),
        ),
        ("process_threads", "Threads.", kilobytes(&status, "Threads:")),
        ("process_open_fds", "Open file descriptors.", open_fds()),
        ("process_max_fds", "Limit of open file descriptors.", max_fds(&limits)),
        (
            "process_cpu_seconds_total",
            "Processor time used, user and system.",
            cpu_seconds(&stat),
        ),
        (
            "process_start_time_seconds",
            "When the process started, in seconds since the Unix epoch.",
            start_seconds(&stat, &boot),
        ),
    ]
    .into_iter()
    .filter_map(|(name, help, value)| family(name, help, value?))
    .flatten()
    .collect()
}

fn family(name: &str, help: &str, value: f64) -> Option<Vec<MetricFamily>> {
    if name.ends_with("_total") {
        let counter = Counter::new(name, help).ok()?;
        counter.inc_by(value);
        return Some(counter.collect());
    }
    let gauge = Gauge::new(name, help).ok()?;
    gauge.set(value);
    Some(gauge.collect())
}

/// The number after `key` at the start of a line of `/proc/self/status`.
fn kilobytes(status: &str, key: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    line.split_whitespace().next()?.parse().ok()
}

fn open_fds() -> Option<f64> {
    let count = fs::read_dir("/proc/self/fd").ok()?.count();
    // The directory itself is open while it is read.
    u32::try_from(count.saturating_sub(1)).ok().map(f64::from)
}

fn max_fds(limits: &str) -> Option<f64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The fields of `/proc/self/stat` after the command's closing parenthesis, the first being field 3 of proc(5).
fn stat_field(stat: &str, number: usize) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(number.checked_sub(3)?)?.parse().ok()
}

fn cpu_seconds(stat: &str) -> Option<f64> {
    Some((stat_field(stat, 14)? + stat_field(stat, 15)?) / TICKS_PER_SECOND)
}

fn start_seconds(stat: &str, boot: &str) -> Option<f64> {
    let boot_seconds: f64 = boot
        .lines()
        .find_map(|line| line.strip_prefix("btime "))?
        .trim()
        .parse()
        .ok()?;
    Some(boot_seconds + stat_field(stat, 22)? / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_from_their_fields() {
        let stat = "7 (a (b) c) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 4 0 1000 1 1";
        assert_eq!(cpu_seconds(stat), Some(3.0));
        assert_eq!(
            start_seconds(stat, "cpu 1 2\nbtime 1700000000\n"),
            Some(1_700_000_010.0)
        );
        assert_eq!(kilobytes("Name:\tx\nVmRSS:\t   2048 kB\n", "VmRSS:"), Some(2048.0));
        let limited = "Max open files            1024                 4096                 files\n";
        assert_eq!(max_fds(limited), Some(1024.0));
    }
}
