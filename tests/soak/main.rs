//! A long run of everything at once (`make soak`): stock clients of three languages produce, consume and commit through Convoke on
//! a cluster of three nodes, while Convoke, brokers, connections, disk and members suffer what a seed says.
//!
//! Everything that clients tell goes to a [judge](judge). As a part of the tests it is a short run: one node, one member of each
//! protocol, each of the quick faults once.

mod admin;
mod crew;
mod faults;
mod journal;
mod judge;
mod options;
mod relay;
mod sidecar;
mod table;
mod world;

use std::collections::BTreeMap;
use std::fs;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use convoke_support::Result;

use faults::Kind;
use journal::Journal;
use options::Run;
use sidecar::Usage;
use table::Table;
use world::World;

const NAME: &str = "what_a_soak_does_in_an_hour_goes_well_for_a_moment";
/// Convoke lives on in the last part of a run, so that what it does not give back is seen.
const LAST_PART: f64 = 0.6;
/// Where memory is measured for the first time: warm, in the last part.
const WARM: f64 = 0.7;
/// So that growth is seen to go on, or to end.
const USAGE_EVERY: Duration = Duration::from_secs(60);
/// Connections that have ended are let go within this.
const SETTLES: Duration = Duration::from_secs(30);
/// Descriptors that a process at rest may have beside those of a new one: connections of its own to brokers, which come and go.
const DESCRIPTORS: usize = 8;
/// What allocators keep, and what is remembered of more partitions: in kilobytes, beside a tenth of it all.
const MEMORY_KB: u64 = 4096;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let filters: Vec<_> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    if arguments.iter().any(|argument| argument == "--list") {
        println!("{NAME}: test");
        return ExitCode::SUCCESS;
    }
    let is_soak = arguments.iter().any(|argument| argument == "--soak");
    if !is_soak && !filters.is_empty() && !filters.iter().any(|filter| NAME.contains(filter.as_str())) {
        return ExitCode::SUCCESS;
    }
    match judged(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("the run itself failed: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs, and says whether every invariant held.
fn judged(arguments: &[String]) -> Result<bool> {
    println!("the judge judges {} stories rightly", judge::examples::tell()?);
    let run = Run::from(arguments)?;
    let _ = fs::remove_dir_all(&run.folder);
    let journal = Arc::new(Journal::new(&run.folder)?);
    let mut world = World::start(&run, env!("CARGO_BIN_EXE_convoke"), &journal)?;
    journal.event("start", &format!("seed {}, {}", run.seed, world.describe()));
    let began = Instant::now();
    world.recover()?;
    let mut table = Table::default();
    match run.time {
        Some(time) => suffer_for(time, &mut world, &mut table)?,
        None => suffer_each(&mut world, &mut table)?,
    }
    table.lasted = began.elapsed();
    world.finish()?;
    table.at_end = settled(&mut world)?;
    compare(&mut world, &table);
    for panic in journal.logged().panics {
        world.broken(&format!("a panic: {panic}"));
    }
    table.at_rest = world.at_rest;
    if world.broken > 0 {
        world.sidecar.keep_data()?;
    }
    table.cpu_seconds = world.sidecar.cpu_seconds();
    if let Err(error) = world.sidecar.stop() {
        world.broken(&format!("convoke does not end well: {error}"));
    }
    let text = table.text(&run, &world);
    println!("{text}");
    fs::write(run.folder.join("table.md"), text)?;
    let holds = world.broken == 0;
    drop(world);
    if holds && run.time.is_none() {
        fs::remove_dir_all(&run.folder)?;
    } else {
        println!("what was done and said is kept in {}", run.folder.display());
    }
    Ok(holds)
}

/// Faults at random, every kind as often as every other, some of them two at a time.
fn suffer_for(time: Duration, world: &mut World, table: &mut Table) -> Result<()> {
    let began = Instant::now();
    let mut waiting: Vec<Kind> = Vec::new();
    let mut told = began;
    loop {
        let part = began.elapsed().as_secs_f64() / time.as_secs_f64();
        if part >= 1.0 {
            return Ok(());
        }
        let usage = world.sidecar.usage();
        if part >= WARM && table.warm.is_none() {
            table.warm = Some(usage);
        }
        table.most_kb = table.most_kb.max(usage.resident_kb);
        if told.elapsed() >= USAGE_EVERY {
            told = Instant::now();
            let (kb, descriptors) = (usage.resident_kb, usage.descriptors);
            world
                .journal
                .event("usage", &format!("{kb} kB resident, {descriptors} descriptors"));
        }
        if waiting.is_empty() {
            waiting = Kind::ALL.to_vec();
        }
        waiting.retain(|kind| is_possible(*kind, part, world));
        if waiting.is_empty() {
            continue;
        }
        let first = waiting.swap_remove(world.chance.below(waiting.len()));
        let mut kinds = vec![first];
        let others: Vec<_> = waiting.iter().copied().filter(|kind| kind.goes_with(first)).collect();
        if !others.is_empty() && world.chance.below(3) == 0 {
            let second = *world.chance.pick(&others);
            waiting.retain(|kind| *kind != second);
            kinds.push(second);
        }
        suffer(&kinds, world, table)?;
        let pause = world.chance.millis(1_000, 8_000);
        world.pass(pause)?;
    }
}

fn is_possible(kind: Kind, part: f64, world: &World) -> bool {
    let lives_on = part >= LAST_PART && kind.ends_convoke();
    let has_no_disk = kind == Kind::DiskFull && !world.sidecar.can_be_full();
    !lives_on && !has_no_disk
}

/// Each of the short ones, one after the other.
fn suffer_each(world: &mut World, table: &mut Table) -> Result<()> {
    for kind in Kind::SHORT {
        if is_possible(kind, 0.0, world) {
            suffer(&[kind], world, table)?;
        }
    }
    table.warm = Some(world.sidecar.usage());
    Ok(())
}

fn suffer(kinds: &[Kind], world: &mut World, table: &mut Table) -> Result<()> {
    let took = world.suffer(kinds)?;
    for kind in kinds {
        table.faults.entry(*kind).or_default().push(took);
    }
    Ok(())
}

/// What the process has when all clients are gone.
fn settled(world: &mut World) -> Result<Usage> {
    let deadline = Instant::now() + SETTLES;
    loop {
        let usage = world.sidecar.usage();
        if usage.descriptors <= world.at_rest.descriptors || Instant::now() > deadline {
            return Ok(usage);
        }
        world.pass(Duration::from_millis(500))?;
    }
}

fn compare(world: &mut World, table: &Table) {
    let (rest, end) = (world.at_rest, table.at_end);
    if end.descriptors > rest.descriptors + DESCRIPTORS {
        world.broken(&format!(
            "{} descriptors are open at the end, {} were at the start",
            end.descriptors, rest.descriptors
        ));
    }
    let warm = table.warm.unwrap_or(rest).resident_kb;
    if end.resident_kb > warm + warm / 10 + MEMORY_KB {
        world.broken(&format!(
            "{} kB are resident at the end, {warm} were when it was warm",
            end.resident_kb
        ));
    }
}

/// How long the groups took to go on, by what was done.
type Faults = BTreeMap<Kind, Vec<Duration>>;
