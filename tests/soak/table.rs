//! What a run was, in one table.

use std::fmt::Write as _;
use std::time::Duration;

use crate::Faults;
use crate::options::Run;
use crate::sidecar::Usage;
use crate::world::World;

#[derive(Debug, Default)]
pub struct Table {
    pub faults: Faults,
    pub lasted: Duration,
    pub at_rest: Usage,
    pub warm: Option<Usage>,
    pub at_end: Usage,
    pub most_kb: u64,
    pub cpu_seconds: f64,
}

impl Table {
    pub fn text(&self, run: &Run, world: &World) -> String {
        let mut text = String::new();
        let minutes = self.lasted.as_secs_f64() / 60.0;
        let _ = writeln!(
            text,
            "\nseed {}: {minutes:.1} minutes, {} nodes, {} partitions at the end, {} records sent, {} clients ended by themselves",
            run.seed,
            run.nodes,
            world.partitions(),
            world.judge.sent(),
            world.crew.ended_by_themselves
        );
        let _ = writeln!(
            text,
            "\n| fault | times | until all groups went on, s: median, longest |\n|---|---|---|"
        );
        for (kind, took) in &self.faults {
            let mut took = took.clone();
            took.sort();
            let (median, longest) = (took[took.len() / 2].as_secs_f32(), took[took.len() - 1].as_secs_f32());
            let _ = writeln!(text, "| {} | {} | {median:.1}, {longest:.1} |", kind.name(), took.len());
        }
        let logged = world.journal.logged();
        let _ = writeln!(
            text,
            "\n| group | records read | commits acknowledged | of what was given up | rebalances | longest pause, s |\n|---|---|---|---|---|---|"
        );
        for (group, counts) in world.judge.counts() {
            let rebalances = logged.rebalances.get(group).copied().unwrap_or_default();
            let pause = Duration::from_micros(counts.longest_pause).as_secs_f32();
            let _ = writeln!(
                text,
                "| {group} | {} | {} | {} | {rebalances} | {pause:.1} |",
                counts.read, counts.commits, counts.stray
            );
        }
        let warm = self.warm.unwrap_or_default();
        let _ = writeln!(
            text,
            "\n| Convoke | at rest, new | warm | at the end |\n|---|---|---|---|"
        );
        let _ = writeln!(
            text,
            "| resident, kB | {} | {} | {} (most: {}) |",
            self.at_rest.resident_kb, warm.resident_kb, self.at_end.resident_kb, self.most_kb
        );
        let _ = writeln!(
            text,
            "| descriptors | {} | {} | {} |",
            self.at_rest.descriptors, warm.descriptors, self.at_end.descriptors
        );
        let share = 100.0 * self.cpu_seconds / self.lasted.as_secs_f64();
        let _ = writeln!(
            text,
            "\nConvoke took {:.0} s of processor time ({share:.1} %); its log has {} errors, {} panics, {} members removed.",
            self.cpu_seconds,
            logged.errors,
            logged.panics.len(),
            logged.removals
        );
        let starved = world.starved.as_secs_f32();
        let _ = writeln!(
            text,
            "The run itself waited for a processor for at most {starved:.1} s."
        );
        let errors = world.journal.errors();
        let total: u64 = errors.values().sum();
        let _ = writeln!(text, "Clients complained {total} times:");
        for (what, times) in errors {
            let _ = writeln!(text, "  {times:5} {what}");
        }
        let verdict = match world.broken {
            0 => "every invariant held".to_owned(),
            count => format!("BROKEN: {count} times, see events.log"),
        };
        let _ = writeln!(text, "\nverdict: {verdict}");
        text
    }
}
