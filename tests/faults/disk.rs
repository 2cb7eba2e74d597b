//! A disk that fills up under a running Convoke, and one that is read-only from the start.

use std::fs;
use std::net::SocketAddr;

use convoke_support::disk::{Tmpfs, fill};
use convoke_support::process::Process;
use convoke_support::{Result, http};

use crate::committers::{Committers, expect_kept};
use crate::raw::Raw;
use crate::{PATIENCE, eventually, is_retriable, kafka, run, wait_for_log};

/// Where the node is, and the admin pages, once it is ready.
fn addresses(convoke: &Process) -> Result<(String, SocketAddr)> {
    let field = |line: &str, start: &str, name: &str| {
        let mut fields = line.strip_prefix(start)?.split(' ');
        Some(fields.find_map(|field| field.strip_prefix(name))?.to_owned())
    };
    let wait = |start, name| convoke.stdout.wait(0, PATIENCE, |line| field(line, start, name));
    let (node, _) = wait("node ", "listen=")?;
    let (admin, _) = wait("ready ", "admin=")?;
    Ok((node, admin.parse()?))
}

#[test]
fn a_full_disk_makes_it_unready_for_as_long_as_it_is_full_and_loses_nothing() -> Result<()> {
    let Some(disk) = Tmpfs::mount("size=4m")? else {
        return Ok(());
    };
    let kafka = kafka()?;
    let upstream = kafka.bootstrap();
    let mut convoke = run(disk.path(), &upstream, &[])?;
    let (node, admin) = addresses(&convoke)?;
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
    convoke.stop(PATIENCE)
}

const COMMITTERS: usize = 40;

#[test]
fn a_disk_that_fills_up_under_load_refuses_and_comes_back_and_what_was_acknowledged_is_kept() -> Result<()> {
    let Some(disk) = Tmpfs::mount("size=6m")? else {
        return Ok(());
    };
    let kafka = kafka()?;
    let upstream = kafka.bootstrap();
    let mut convoke = run(disk.path(), &upstream, &[])?;
    let (node, admin) = addresses(&convoke)?;
    let committers = Committers::start(&node, COMMITTERS);
    eventually("commits of everybody", || Ok(committers.all_beyond(&[3; COMMITTERS])))?;
    for time in 0..2 {
        let refused = committers.refused();
        fill(&disk.path().join("filler"))?;
        eventually("a refusal of everybody", || {
            Ok(committers
                .refused()
                .iter()
                .zip(&refused)
                .all(|(now, before)| now > before))
        })?;
        eventually("its being told", || {
            let (status, report) = http::get(admin, "/readyz")?;
            Ok(status == 503 && report.contains("No space left on device"))
        })?;
        // Long enough for many more tries; what is not Convoke's goes on.
        let held = committers.acknowledged();
        for _ in 0..10 {
            assert_eq!(Raw::connect(&node)?.brokers()?, 1);
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        fs::remove_file(disk.path().join("filler"))?;
        eventually("commits of everybody again", || Ok(committers.all_beyond(&held)))?;
        eventually("readiness", || Ok(http::get(admin, "/readyz")?.0 == 200))?;
        println!("time {time}: refused {:?}", committers.refused().iter().sum::<u64>());
    }
    // And once more, with its end while the disk is full.
    fill(&disk.path().join("filler"))?;
    eventually("an unready Convoke", || Ok(http::get(admin, "/readyz")?.0 == 503))?;
    convoke.signal(9);
    convoke.wait(PATIENCE)?;
    let acknowledged = committers.end()?;
    fs::remove_file(disk.path().join("filler"))?;
    let mut convoke = run(disk.path(), &upstream, &[])?;
    let (node, _) = addresses(&convoke)?;
    expect_kept(&node, &acknowledged)?;
    convoke.stop(PATIENCE)
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
