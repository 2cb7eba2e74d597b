//! The report: Markdown for the README, JSON for programs.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use crate::aims::{self, Outcome};
use crate::assignors::{self, Case};
use crate::machine::Description;
use crate::options::Options;
use crate::results::{Results, Row};
use crate::rig::Route;
use crate::work::{Figure, Work};
use crate::{client_assignor, data_path, memory, settle, storm};

const ROUTES: [Route; 3] = [Route::Direct, Route::Haproxy, Route::Convoke];

/// Everything that one run gave.
#[derive(Debug)]
pub struct Report {
    pub options: Options,
    pub machine: Description,
    pub results: Results,
    pub settling: Results<settle::Case>,
    pub computing: Results<client_assignor::Case>,
    pub assignors: Results<Case>,
    pub took: Duration,
}

impl Report {
    #[must_use]
    pub fn json(&self) -> Value {
        let outcomes = aims::outcomes(&self.results, &self.settling, &self.assignors).into_iter();
        let outcome = |outcome: Outcome| {
            json!({
                "what": outcome.what,
                "aim": outcome.aim,
                "measured": outcome.measured,
                "reached": outcome.reached,
            })
        };
        json!({
            "machine": self.machine,
            "rounds": self.options.rounds,
            "seconds": self.options.seconds,
            "groups": self.options.groups,
            "set": self.options.set,
            "took_seconds": self.took.as_secs(),
            "results": self.results.json(),
            "settling": self.settling.json(),
            "client_assignors": self.computing.json(),
            "assignors": self.assignors.json(),
            "aims": outcomes.map(outcome).collect::<Vec<_>>(),
        })
    }

    #[must_use]
    pub fn markdown(&self) -> String {
        let mut out = String::new();
        self.data_path(&mut out);
        self.coordinator(&mut out);
        self.storm(&mut out);
        self.settling(&mut out);
        self.computing(&mut out);
        self.memory(&mut out);
        self.assignors(&mut out);
        self.aims(&mut out);
        self.conditions(&mut out);
        out
    }

    fn data_path(&self, out: &mut String) {
        let title = format!(
            "Data path: {} connections at 1 KB, {} else, each with one request under way; acks=all",
            data_path::SMALL_CONNECTIONS,
            data_path::LARGE_CONNECTIONS
        );
        let columns = [
            (Figure::MegabytesPerSecond, "MB/s", 0),
            (Figure::RequestsPerSecond, "requests/s", 0),
            (Figure::P50Us, "p50 µs", 0),
            (Figure::P99Us, "p99 µs", 0),
            (Figure::CpuUsPerRequest, "relay CPU, µs a request", 1),
            (Figure::KernelPercent, "in the kernel, %", 0),
            (Figure::CpuMsPerGigabyte, "ms a GB", 0),
            (Figure::ResidentMb, "resident MB", 1),
        ];
        // The broker is no relay.
        let shown = |route, figure| {
            route != Route::Direct
                || !matches!(
                    figure,
                    Figure::CpuUsPerRequest | Figure::KernelPercent | Figure::CpuMsPerGigabyte | Figure::ResidentMb
                )
        };
        table(out, &title, &self.results, &Work::DATA_PATH, &columns, shown);
    }

    fn coordinator(&self, out: &mut String) {
        let title = format!(
            "Coordinator: {} groups of one member, each with one request under way; direct is the broker's own coordinator",
            self.options.groups
        );
        let columns = [
            (Figure::RequestsPerSecond, "requests/s", 0),
            (Figure::P50Us, "p50 µs", 0),
            (Figure::P99Us, "p99 µs", 0),
            (Figure::CpuUsPerRequest, "server CPU, µs a request", 1),
            (Figure::KernelPercent, "in the kernel, %", 0),
        ];
        table(out, &title, &self.results, &Work::COORDINATOR, &columns, |_, _| true);
    }

    fn storm(&self, out: &mut String) {
        let title = format!(
            "{} members join one group at once, until all are stable, and then all again",
            storm::MEMBERS
        );
        let columns = [
            (Figure::JoinMs, "join, ms", 0),
            (Figure::JoinCpuMs, "server CPU, ms", 0),
            (Figure::RejoinMs, "again, ms", 0),
            (Figure::RejoinCpuMs, "server CPU, ms", 0),
        ];
        table(out, &title, &self.results, &[Work::JoinStorm], &columns, |_, _| true);
    }

    fn settling(&self, out: &mut String) {
        let title = "Consumer groups, from the first join until every member has its final partitions and has said so; \
                     heartbeats are all members' together, joins included";
        let columns = [
            (Figure::SettleMs, "settled, ms", 0),
            (Figure::Heartbeats, "heartbeats", 0),
            (Figure::SettleCpuMs, "server CPU, ms", 0),
        ];
        table(out, title, &self.settling, &settle::Case::ALL, &columns, |_, _| true);
    }

    fn computing(&self, out: &mut String) {
        let title = format!(
            "Targets for {}, of which one more comes and goes: from that change until its target is durable, and of it each step of an external \
             assignor that keeps what there is; medians of a stretch, bytes of whole frames",
            client_assignor::GROUP
        );
        let columns = [
            (Figure::TargetsPerSecond, "targets/s", 0),
            (Figure::TargetMs, "ms", 2),
            (Figure::CpuMsPerTarget, "server CPU, ms", 2),
            (Figure::ToldMs, "told, ms", 2),
            (Figure::PrepareMs, "Prepare, ms", 2),
            (Figure::ComputeMs, "in the assignor, ms", 2),
            (Figure::InstallMs, "Install, ms", 2),
            (Figure::PrepareRequestBytes, "Prepare, bytes", 0),
            (Figure::PrepareAnswerBytes, "its answer", 0),
            (Figure::InstallRequestBytes, "Install, bytes", 0),
            (Figure::InstallAnswerBytes, "its answer", 0),
        ];
        table(
            out,
            &title,
            &self.computing,
            &client_assignor::Case::ALL,
            &columns,
            |_, _| true,
        );
    }

    fn memory(&self, out: &mut String) {
        let title = format!(
            "Memory of a new process, and of {} connections that have each asked for versions and metadata",
            memory::CONNECTIONS
        );
        let columns = [
            (Figure::IdleResidentMb, "resident MB when idle", 1),
            (Figure::KilobytesPerConnection, "KB a connection", 1),
        ];
        table(out, &title, &self.results, &[Work::Memory], &columns, |_, _| true);
    }

    fn assignors(&self, out: &mut String) {
        let mut rows = String::new();
        for case in Case::ALL {
            let figure = |route, figure| self.assignors.median(case, route, figure);
            let shown =
                |value: Option<f64>, decimals| value.map_or(String::new(), |value| format!("{value:.decimals$}"));
            let loads = |route| match (figure(route, Figure::LeastLoad), figure(route, Figure::MostLoad)) {
                (Some(least), Some(most)) => format!("{least} to {most}"),
                _ => String::new(),
            };
            let [kafka, ours] = [Route::Direct, Route::Convoke];
            if figure(kafka, Figure::AssignMs)
                .or(figure(ours, Figure::AssignMs))
                .is_none()
            {
                continue;
            }
            let _ = writeln!(
                rows,
                "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                case.assignor.name(),
                case.subscriptions,
                case.change,
                shown(figure(kafka, Figure::AssignMs), 2),
                shown(figure(ours, Figure::AssignMs), 2),
                shown(self.assignors.ratio(case, Figure::AssignMs, ours, kafka), 2),
                shown(figure(kafka, Figure::Gained), 0),
                shown(figure(ours, Figure::Gained), 0),
                loads(kafka),
                loads(ours),
            );
        }
        if rows.is_empty() {
            return;
        }
        let _ = writeln!(
            out,
            "Assignors: {} members, {} topics, {} partitions for each member; CPU time of one call, of the calls of {} s in each round, Kafka's own classes in a warm JVM:\n\n\
             | assignor | subscriptions | change | Kafka, ms | Convoke, ms | ratio | gained at Kafka | at Convoke | partitions each at Kafka | at Convoke |\n\
             |{}\n{rows}",
            assignors::MEMBERS,
            assignors::TOPICS,
            assignors::PARTITIONS_EACH,
            assignors::SECONDS,
            "--|".repeat(10),
        );
    }

    fn aims(&self, out: &mut String) {
        let outcomes = aims::outcomes(&self.results, &self.settling, &self.assignors);
        if outcomes.is_empty() {
            return;
        }
        out.push_str("| aim | | measured | reached |\n|--|--|--|--|\n");
        for outcome in outcomes {
            let reached = if outcome.reached { "yes" } else { "**no**" };
            let _ = writeln!(
                out,
                "| {} | {} | {:.2} | {reached} |",
                outcome.what, outcome.aim, outcome.measured
            );
        }
        out.push('\n');
    }

    fn conditions(&self, out: &mut String) {
        let _ = writeln!(
            out,
            "Medians of {} interleaved rounds of {} s a cell, after one that is not counted; {} s in all. Client, relay and broker share the machine.\n",
            self.options.rounds,
            self.options.seconds,
            self.took.as_secs()
        );
        if !self.options.set.is_empty() {
            let _ = writeln!(out, "* set: {}", self.options.set.join(", "));
        }
        for (name, value) in &self.machine {
            let _ = writeln!(out, "* {name}: {value}");
        }
    }
}

/// A table with a row for each work and route that was measured.
fn table<W: Row>(
    out: &mut String,
    title: &str,
    results: &Results<W>,
    works: &[W],
    columns: &[(Figure, &str, usize)],
    shown: impl Fn(Route, Figure) -> bool,
) {
    let mut rows = String::new();
    for (&work, route) in works.iter().flat_map(|work| ROUTES.map(|route| (work, route))) {
        let cells: Vec<Option<f64>> = columns
            .iter()
            .map(|&(figure, ..)| results.median(work, route, figure))
            .collect();
        if cells.iter().all(Option::is_none) {
            continue;
        }
        let _ = write!(rows, "| {} | {} |", work.title(), route.name());
        for (cell, &(figure, _, decimals)) in cells.iter().zip(columns) {
            let _ = match cell {
                Some(value) if shown(route, figure) => write!(rows, " {value:.decimals$} |"),
                _ => write!(rows, " |"),
            };
        }
        rows.push('\n');
    }
    if rows.is_empty() {
        return;
    }
    let heads: Vec<&str> = columns.iter().map(|&(_, head, _)| head).collect();
    let rule = "--|".repeat(columns.len() + 2);
    let _ = writeln!(
        out,
        "{title}:\n\n| work | route | {} |\n|{rule}\n{rows}",
        heads.join(" | ")
    );
}
