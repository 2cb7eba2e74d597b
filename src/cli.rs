//! The command line: `run`, `check`, `health`, `assignor`.

mod assignor;
mod health;
mod output;
mod program;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use self::assignor::AssignorArgs;
use crate::config::units::parse_duration;
use crate::config::{self, ConfigError, Flag, Loaded, Sources};
use crate::{external_assignor, server, telemetry};

const EXIT_FAILED: u8 = 1;
const EXIT_WRONG: u8 = 2;

/// A sidecar for Apache Kafka: clients connect to it as to the brokers, and their consumer groups are coordinated here.
#[derive(Debug, Parser)]
#[command(name = "convoke", version, about, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  ended as asked (SIGTERM, SIGINT), valid, or healthy
  1  could not start, failed while running, or not healthy
  2  wrong flags or a wrong configuration; everything that is wrong is printed
A first SIGTERM or SIGINT answers what is under way (drain_timeout) and ends; a second ends at once, with 1.";

const RUN_OUTPUT: &str = "\
Standard output carries these lines and nothing else, so that scripts can rely on them:
  node id=ID upstream=HOST:PORT listen=HOST:PORT    for each node, as it gets its listener
  ready bootstrap=HOST:PORT admin=HOST:PORT         once, when clients are served
The log goes to standard error.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Serves clients until SIGTERM or SIGINT.
    #[command(after_help = RUN_OUTPUT)]
    Run(ConfigArgs),
    /// Prints every problem of the configuration, or what would be used and where each value comes from.
    Check(ConfigArgs),
    /// Asks a running Convoke on its admin address how it is; for a container's health check.
    Health(HealthArgs),
    /// Assigns the partitions of groups by a command of your own: an external assignor.
    #[command(after_help = assignor::DOCUMENTS)]
    Assignor(AssignorArgs),
}

/// Where the configuration comes from. Flags win over CONVOKE_… environment variables, those over the file.
#[derive(Debug, Args)]
struct ConfigArgs {
    /// The YAML file; config/convoke.yaml explains every key.
    #[arg(long, value_name = "FILE", env = "CONVOKE_CONFIG")]
    config: Option<PathBuf>,
    /// The real brokers (upstream.bootstrap).
    #[arg(long, value_name = "HOST:PORT[,…]")]
    upstream: Option<String>,
    /// Where clients connect (listen.bootstrap); port 0 takes a free one.
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// The directory of the state (store.data).
    #[arg(long, value_name = "DIR")]
    data: Option<String>,
    /// Where metrics and health are served (admin.listen); port 0 takes a free one.
    #[arg(long, value_name = "IP:PORT")]
    admin: Option<String>,
    /// trace, debug, info, warn, error, or by module (log.level).
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,
    /// text or json (log.format).
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,
    /// Any other key, such as limits.frame_max=50MiB or group.max.size=100. May be given several times.
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_and_value)]
    set: Vec<(String, String)>,
}

#[derive(Debug, Args)]
struct HealthArgs {
    /// The file that Convoke runs with.
    #[arg(long, value_name = "FILE", env = "CONVOKE_CONFIG")]
    config: Option<PathBuf>,
    /// Its admin address (admin.listen).
    #[arg(long, value_name = "IP:PORT")]
    admin: Option<String>,
    /// Healthy only when clients are served (/readyz), not as soon as the process runs (/healthz).
    #[arg(long)]
    ready: bool,
    /// How long to wait for the answer.
    #[arg(long, value_name = "DURATION", default_value = "3s", value_parser = parse_duration)]
    timeout: Duration,
}

/// Runs the command that the process was started with.
#[must_use]
pub fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Run(args) => run(&args),
        Command::Check(args) => check(&args),
        Command::Health(args) => health(&args),
        Command::Assignor(args) => assign(args),
    }
}

fn run(args: &ConfigArgs) -> ExitCode {
    let loaded = match args.load() {
        Ok(loaded) => loaded,
        Err(error) => return wrong(&error),
    };
    let log = &loaded.config.log;
    if let Err(error) = telemetry::log::init(&log.filter, log.format) {
        return failed(&error);
    }
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    match server::run(&loaded.config, Arc::new(output::Lines)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::from(EXIT_FAILED)
        }
    }
}

fn check(args: &ConfigArgs) -> ExitCode {
    match args.load() {
        Ok(loaded) => {
            for warning in &loaded.warnings {
                output::complain(warning);
            }
            output::print_effective(&loaded.effective);
            ExitCode::SUCCESS
        }
        Err(error) => wrong(&error),
    }
}

fn health(args: &HealthArgs) -> ExitCode {
    let sources = Sources {
        file: args.config.clone(),
        environment: environment(),
        flags: named_flags([("--admin", "admin.listen", &args.admin)]),
    };
    let address = match config::admin_address(&sources) {
        Ok(address) => address,
        Err(error) => return wrong(&error),
    };
    let path = if args.ready { "/readyz" } else { "/healthz" };
    match health::ask(address, path, args.timeout) {
        Ok(said) => {
            output::print(&said);
            ExitCode::SUCCESS
        }
        Err(error) => failed(&error),
    }
}

fn assign(args: AssignorArgs) -> ExitCode {
    let (level, format) = (args.log_level.clone(), args.log_format);
    let config = match args.config() {
        Ok(config) => config,
        Err(problem) => {
            output::complain(&problem);
            return ExitCode::from(EXIT_WRONG);
        }
    };
    if let Err(error) = telemetry::log::init(&level, format) {
        return failed(&error);
    }
    match external_assignor::run(config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::from(EXIT_FAILED)
        }
    }
}

fn failed(error: &dyn std::fmt::Display) -> ExitCode {
    output::complain(error);
    ExitCode::from(EXIT_FAILED)
}

fn wrong(error: &ConfigError) -> ExitCode {
    output::complain(error);
    ExitCode::from(EXIT_WRONG)
}

fn key_and_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE")?;
    Ok((key.trim().to_owned(), value.to_owned()))
}

/// The environment as text; what is not Unicode is kept as far as it can be read, so that it is complained about.
fn environment() -> Vec<(String, String)> {
    let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    std::env::vars_os()
        .map(|(name, value)| (text(name), text(value)))
        .collect()
}

impl ConfigArgs {
    fn load(&self) -> Result<Loaded, ConfigError> {
        config::load(&self.sources())
    }

    fn sources(&self) -> Sources {
        let set = self.set.iter().map(|(key, value)| Flag {
            flag: "--set".to_owned(),
            key: key.clone(),
            value: value.clone(),
        });
        let named = named_flags([
            ("--upstream", "upstream.bootstrap", &self.upstream),
            ("--listen", "listen.bootstrap", &self.listen),
            ("--data", "store.data", &self.data),
            ("--admin", "admin.listen", &self.admin),
            ("--log-level", "log.level", &self.log_level),
            ("--log-format", "log.format", &self.log_format),
        ]);
        Sources {
            file: self.config.clone(),
            environment: environment(),
            flags: set.chain(named).collect(),
        }
    }
}

/// The flags that were given, of those with a key of their own.
fn named_flags<const N: usize>(flags: [(&str, &str, &Option<String>); N]) -> Vec<Flag> {
    let given = flags.into_iter().filter_map(|(flag, key, value)| {
        Some(Flag {
            flag: flag.to_owned(),
            key: key.to_owned(),
            value: value.clone()?,
        })
    });
    given.collect()
}
