//! A disk that fills up under a running Convoke, and one that is read-only from the start.

use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use convoke_support::{Result, http};
use tempfile::TempDir;

use crate::raw::Raw;
use crate::{PATIENCE, eventually, kafka, run, wait_for_log};

/// A small file system of its own, unmounted at the end.
struct Tmpfs(TempDir);

impl Tmpfs {
    /// `None` where mounting is not allowed.
    fn mount(options: &str) -> Result<Option<Self>> {
        let directory = tempfile::tempdir()?;
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "tmpfs"])
            .arg(directory.path())
            .output()?;
        if !mounted.status.success() {
            eprintln!("not allowed to mount a tmpfs: skipped");
        }
        Ok(mounted.status.success().then_some(Self(directory)))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).output();
    }
}

/// Takes all the room there is.
fn fill(path: &Path) -> Result<()> {
    let mut file = fs::File::create(path)?;
    while file.write_all(&[0; 4096]).is_ok() {}
    Ok(())
}

const SIGTERM: i32 = 15;

/// Errors that make a client try again: load in progress, not available, not coordinator.
fn is_retriable(error: i16) -> bool {
    [14, 15, 16].contains(&error)
}

#[test]
fn a_full_disk_makes_it_unready_for_as_long_as_it_is_full_and_loses_nothing() -> Result<()> {
    let Some(disk) = Tmpfs::mount("size=4m")? else {
        return Ok(());
    };
    let kafka = kafka()?;
    let upstream = kafka.bootstrap();
    let mut convoke = run(disk.path(), &upstream, &[])?;
    let field = |line: &str, start: &str, name: &str| {
        let field = line
            .strip_prefix(start)?
            .split(' ')
            .find_map(|field| field.strip_prefix(name))?;
        Some(field.to_owned())
    };
    let (node, _) = convoke
        .stdout
        .wait(0, PATIENCE, |line| field(line, "node ", "listen="))?;
    let (admin, _) = convoke
        .stdout
        .wait(0, PATIENCE, |line| field(line, "ready ", "admin="))?;
    let admin: SocketAddr = admin.parse()?;
    let mut client = Raw::connect(&node)?;
    assert_eq!(client.commit("group", 1)?, 0);
    assert_eq!(http::get(admin, "/readyz")?.0, 200);

    fill(&disk.path().join("filler"))?;
    let mut acknowledged = 1;
    eventually("a refused commit", || {
        // What was freed before may still take some.
        let error = client.commit("group", acknowledged + 1)?;
        if error == 0 {
            acknowledged += 1;
        } else {
            assert!(is_retriable(error), "{error}");
        }
        Ok(error != 0)
    })?;
    for _ in 0..40 {
        let (status, report) = http::get(admin, "/readyz")?;
        assert_eq!(status, 503, "{report}");
        assert!(report.contains("No space left on device"), "{report}");
        let error = client.commit("group", acknowledged + 1)?;
        assert!(is_retriable(error), "{error}");
        // What is not Convoke's goes on, on the same connection.
        assert_eq!(client.brokers()?, 1);
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let said = [
        "ERROR",
        "convoke.redb",
        "No space left on device",
        "clients retry meanwhile",
    ];
    wait_for_log(&convoke, 0, &said)?;

    fs::remove_file(disk.path().join("filler"))?;
    // Without anybody's writing anything.
    eventually("readiness", || Ok(http::get(admin, "/readyz")?.0 == 200))?;
    wait_for_log(&convoke, 0, &["INFO", "the groups of the shard are served again"])?;
    let kept = client.committed("group")?;
    assert!(
        kept == Ok(acknowledged) || kept == Ok(acknowledged + 1),
        "{kept:?}, and {acknowledged} was acknowledged"
    );
    assert_eq!(client.commit("group", 100)?, 0);
    assert_eq!(client.committed("group")?, Ok(100));
    convoke.signal(SIGTERM);
    assert_eq!(convoke.wait(PATIENCE)?.code(), Some(0), "{}", convoke.report());
    Ok(())
}

#[test]
fn a_read_only_disk_is_named_at_the_start() -> Result<()> {
    let Some(disk) = Tmpfs::mount("size=4m,ro")? else {
        return Ok(());
    };
    for data in [disk.path().to_owned(), disk.path().join("data")] {
        let mut convoke = run(&data, "127.0.0.1:1", &[])?;
        assert_eq!(convoke.wait(PATIENCE)?.code(), Some(1), "{}", convoke.report());
        let (line, _) = wait_for_log(&convoke, 0, &["ERROR", "Read-only file system"])?;
        assert!(line.contains(&data.display().to_string()), "{line}");
        assert!(convoke.stdout.is_empty());
    }
    Ok(())
}
