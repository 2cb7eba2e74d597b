//! Convoke as the soak runs it: behind one relay, in front of another, on a disk that can be full.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use convoke_support::disk::{Tmpfs, fill};
use convoke_support::process::{Process, Stream};
use convoke_support::{Result, http, ports};

use crate::journal::Journal;

/// How long a start or a stop may take.
const LIMIT: Duration = Duration::from_secs(60);

/// Where clients find Convoke, and Convoke its brokers: further addresses of the loopback, so that relays have the ports of those
/// that they stand for.
pub const FOR_CLIENTS: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
pub const FOR_CONVOKE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 3));

/// Memory and descriptors of the process.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usage {
    pub resident_kb: u64,
    pub descriptors: usize,
    pub cpu_seconds: f64,
}

#[derive(Debug)]
pub struct Sidecar {
    // Dropped first: it has the disk open.
    process: Option<Process>,
    program: PathBuf,
    upstream: String,
    first_port: u16,
    nodes: u16,
    /// Where it can be full; elsewhere the data is an ordinary folder.
    disk: Option<Tmpfs>,
    data: PathBuf,
    journal: Arc<Journal>,
    /// What processes before this one took.
    cpu_seconds: f64,
}

impl Sidecar {
    /// A copy of the program, so that a build meanwhile changes nothing; not started yet.
    pub fn new(program: &str, upstream: String, nodes: u16, journal: &Arc<Journal>) -> Result<Self> {
        let copy = journal.folder().join("convoke");
        fs::copy(program, &copy)?;
        let disk = Tmpfs::mount("size=64m")?;
        let data = disk.as_ref().map_or_else(|| journal.folder(), Tmpfs::path).join("data");
        Ok(Self {
            program: copy,
            upstream,
            first_port: ports::free(2 + nodes)?,
            nodes,
            disk,
            data,
            journal: Arc::clone(journal),
            process: None,
            cpu_seconds: 0.0,
        })
    }

    /// Where a relay for clients listens, and where it connects to.
    pub fn routes(&self) -> Vec<(SocketAddr, SocketAddr)> {
        // The second port is the admin's, and nodes are numbered from 1.
        let ports = [0]
            .into_iter()
            .chain(2..2 + self.nodes)
            .map(|port| self.first_port + port);
        ports
            .map(|port| {
                (
                    SocketAddr::new(FOR_CLIENTS, port),
                    SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port),
                )
            })
            .collect()
    }

    /// What clients have as `bootstrap.servers`.
    pub fn bootstrap(&self) -> String {
        SocketAddr::new(FOR_CLIENTS, self.first_port).to_string()
    }

    fn admin(&self) -> SocketAddr {
        SocketAddr::new(Ipv4Addr::LOCALHOST.into(), self.first_port + 1)
    }

    /// Starts it on the data that there is, and does not wait.
    pub fn start(&mut self) -> Result<()> {
        let first = self.first_port;
        let mut command = Command::new(&self.program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("CONVOKE_") {
                command.env_remove(name);
            }
        }
        command
            .env("CONVOKE_LISTEN_NODES", format!("{}+{{node}}", first + 1))
            .env("CONVOKE_LISTEN_ADVERTISE", format!("{FOR_CLIENTS}:{{port}}"))
            .env("RUST_BACKTRACE", "1")
            .args(["run", "--upstream", &self.upstream])
            .args(["--listen", &format!("127.0.0.1:{first}")])
            .args(["--admin", &self.admin().to_string()])
            .arg("--data")
            .arg(&self.data);
        let journal = Arc::clone(&self.journal);
        let process = Process::spawn_heard("convoke", command, move |stream, line| {
            if stream == Stream::Error {
                journal.convoke_said(line);
            }
        })?;
        self.process = Some(process);
        Ok(())
    }

    pub fn wait_ready(&self) -> Result<()> {
        let process = self.process.as_ref().ok_or("convoke does not run")?;
        let ready = |line: &str| line.starts_with("ready ").then_some(());
        let waited = process.stdout.wait(0, LIMIT, ready);
        waited
            .map(drop)
            .map_err(|error| format!("{error}\n{}", process.report()).into())
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.cpu_seconds += self.usage().cpu_seconds;
        if let Some(mut process) = self.process.take() {
            process.kill();
            process.stderr.wait_end();
        }
    }

    /// SIGTERM, and a clean end.
    pub fn stop(&mut self) -> Result<()> {
        self.cpu_seconds += self.usage().cpu_seconds;
        self.process.take().map_or(Ok(()), |mut process| process.stop(LIMIT))
    }

    pub fn pause(&self) {
        self.process.iter().for_each(Process::freeze);
    }

    pub fn go_on(&self) {
        self.process.iter().for_each(Process::thaw);
    }

    /// The end of its output, if it was started and has ended by itself.
    pub fn has_ended(&mut self) -> Option<String> {
        let process = self.process.as_mut()?;
        if !process.has_ended() {
            return None;
        }
        process.stderr.wait_end();
        let report = process.report();
        self.process = None;
        Some(report)
    }

    pub const fn can_be_full(&self) -> bool {
        self.disk.is_some()
    }

    pub fn fill_disk(&self) -> Result<()> {
        self.disk
            .as_ref()
            .map_or(Ok(()), |disk| fill(&disk.path().join("filler")))
    }

    pub fn free_disk(&self) -> Result<()> {
        let filler = self.disk.as_ref().map(|disk| disk.path().join("filler"));
        Ok(filler.map_or(Ok(()), fs::remove_file)?)
    }

    /// Puts a copy of its data where it stays.
    pub fn keep_data(&self) -> Result<()> {
        let to = self.journal.folder().join("data-kept");
        fs::create_dir_all(&to)?;
        for file in fs::read_dir(&self.data)? {
            let file = file?;
            fs::copy(file.path(), to.join(file.file_name()))?;
        }
        Ok(())
    }

    /// One page of the admin address.
    pub fn get(&self, path: &str) -> Result<(u16, String)> {
        http::get(self.admin(), path)
    }

    /// Processor time of this and all earlier processes.
    pub fn cpu_seconds(&self) -> f64 {
        self.cpu_seconds + self.usage().cpu_seconds
    }

    pub fn usage(&self) -> Usage {
        let Some(process) = &self.process else {
            return Usage::default();
        };
        let folder = PathBuf::from(format!("/proc/{}", process.id()));
        let status = fs::read_to_string(folder.join("status")).unwrap_or_default();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let resident_kb = resident.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
        let stat = fs::read_to_string(folder.join("stat")).unwrap_or_default();
        // After the name in brackets: user and system time are the 12th and 13th, in hundredths.
        let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
        let ticks: f64 = fields
            .skip(11)
            .take(2)
            .filter_map(|field| field.parse::<f64>().ok())
            .sum();
        Usage {
            resident_kb: resident_kb.unwrap_or_default(),
            descriptors: fs::read_dir(folder.join("fd")).map_or(0, Iterator::count),
            cpu_seconds: ticks / 100.0,
        }
    }
}
