//! What the figures were measured on and with.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use convoke_support::{Result, jars};

use crate::rig::{JVM, KAFKA_VERSION};
use crate::usage;

/// Names and values, for the head of the report.
pub type Description = BTreeMap<&'static str, String>;

/// Describes this machine and the versions of what runs on it. `data` is where the broker's log and Convoke's store are.
///
/// # Errors
/// When `data` is on a file system in memory, where no commit is durable.
pub fn describe(program: &str, data: &Path) -> Result<Description> {
    let (device, kind) = usage::file_system(data)?;
    if ["tmpfs", "ramfs"].contains(&kind.as_str()) {
        return Err(format!(
            "{} is on {kind}, where nothing is synced to disk; set TMPDIR to a directory on a real disk",
            data.display()
        )
        .into());
    }
    let cores = std::thread::available_parallelism()?;
    Ok([
        (
            "processor",
            format!("{}, {cores} cores", field("/proc/cpuinfo", "model name", ':')),
        ),
        ("memory", field("/proc/meminfo", "MemTotal", ':')),
        (
            "system",
            format!(
                "{}, Linux {}",
                field("/etc/os-release", "PRETTY_NAME", '=').trim_matches('"'),
                text("/proc/sys/kernel/osrelease")
            ),
        ),
        (
            "tcp",
            format!(
                "loopback, congestion control {}",
                text("/proc/sys/net/ipv4/tcp_congestion_control")
            ),
        ),
        (
            "data",
            format!("{} on {device} ({kind}), not in memory", data.display()),
        ),
        (
            "load before",
            text("/proc/loadavg").split(' ').take(3).collect::<Vec<_>>().join(" "),
        ),
        (
            "convoke",
            format!("{}, release build, commit {}", said(program, &["--version"]), commit()),
        ),
        ("kafka", format!("{KAFKA_VERSION}, one node, {}", JVM.join(" "))),
        ("java", said("java", &["-version"])),
        ("haproxy", said("haproxy", &["-v"])),
    ]
    .into())
}

fn commit() -> String {
    let checkout = jars::cache();
    let folder = checkout.ancestors().find(|folder| folder.join("Cargo.toml").exists());
    let folder = folder.unwrap_or(Path::new(".")).to_string_lossy().into_owned();
    said("git", &["-C", &folder, "describe", "--always", "--dirty"])
}

/// The first line that a program prints.
fn said(program: &str, arguments: &[&str]) -> String {
    let Ok(output) = Command::new(program).args(arguments).output() else {
        return "not installed".to_owned();
    };
    let both = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&both)
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned()
}

fn field(file: &str, name: &str, separator: char) -> String {
    let text = text(file);
    let value = text.lines().find_map(|line| {
        let (key, value) = line.split_once(separator)?;
        (key.trim() == name).then(|| value.trim().to_owned())
    });
    value.unwrap_or_else(|| "unknown".to_owned())
}

fn text(file: &str) -> String {
    std::fs::read_to_string(file).unwrap_or_default().trim().to_owned()
}
