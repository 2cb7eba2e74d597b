//! The flags of `convoke assignor`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::program;
use crate::config::units::parse_duration;
use crate::config::{self, HostPort, SaslConfig, SaslMechanism};
use crate::coordinator::ASSIGNORS_MAX;
use crate::external_assignor::AssignorOptions;
use crate::external_assignor::command::CommandConfig;
use crate::telemetry::log::{self, LogFormat};

/// Convoke waits five minutes for anybody; the questions around the command take some of it.
const LONGEST: Duration = Duration::from_secs(290);
const SHORTEST_EVERY: Duration = Duration::from_secs(1);

pub(super) const DOCUMENTS: &str = "\
The command reads one JSON document and writes one; config/assignors/ has examples that are ready for use.
  question  {\"version\":1,\"group\":\"orders\",\"group_epoch\":7,\"assignor\":\"lag-balanced\",
             \"members\":[{\"id\":\"m-1\",\"instance_id\":null,\"rack\":\"a\",\"topics\":[\"orders\"],
                         \"metadata\":{\"version\":0,\"data\":\"\"},\"target\":{\"orders\":[0,1]}}],
             \"topics\":[{\"name\":\"orders\",\"id\":\"…\",\"partitions\":2,\"lag\":[15,null],\"racks\":[[\"a\"],[\"b\"]]}]}
  answer    {\"version\":1,\"assignment\":{\"m-1\":{\"orders\":[0,1]}}}
         or {\"version\":1,\"error\":\"why there is none\"}
An answer may have \"metadata\":{\"m-1\":{\"version\":0,\"data\":\"<base64>\"}} for clients that understand it. Every partition of a
topic that somebody subscribes to must be given to exactly one member that does. With --stream each question and each answer
is one line of JSON, and nothing else may be printed. What the command prints on standard error goes to the log. If it fails, is late or answers nonsense, Convoke assigns by itself.";

/// Runs a command that assigns the partitions of groups: an external assignor.
#[derive(Debug, Args)]
pub(super) struct AssignorArgs {
    /// Where clients reach Convoke.
    #[arg(long, value_name = "HOST:PORT", required = true, value_delimiter = ',')]
    bootstrap: Vec<HostPort>,
    /// A group to assign for, or the beginning of the ids of groups with a `*` after it: if a rule of `assignors` has it written the
    /// same, new groups are assigned for from their first join on, else from a few seconds later. May be given several times.
    #[arg(long, value_name = "ID|PREFIX*", required = true)]
    group: Vec<String>,
    /// What the group's members ask for (`group.remote.assignor`). May be given several times.
    #[arg(long, value_name = "NAME", required = true)]
    name: Vec<String>,
    /// One process for all computations, a line for a question and a line for its answer, instead of a process for each.
    #[arg(long)]
    stream: bool,
    /// For one computation, up to 290s; a command that takes longer is killed.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    time_limit: Duration,
    /// How many processes may compute at once, without --stream.
    #[arg(long, value_name = "COUNT", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    parallel: u16,
    /// Asks for a new assignment so often though nothing in the group has changed, for commands that look at lag.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    every: Option<Duration>,
    /// PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512, where brokers ask for SASL. The user needs READ on the groups and DESCRIBE on
    /// their topics.
    #[arg(long, value_name = "MECHANISM", value_parser = mechanism, requires_all = ["username", "password_file"])]
    sasl_mechanism: Option<SaslMechanism>,
    /// Who it is, where brokers ask for SASL.
    #[arg(long, value_name = "NAME", requires = "sasl_mechanism")]
    username: Option<String>,
    /// A file whose first line is the password.
    #[arg(long, value_name = "FILE", requires = "sasl_mechanism")]
    password_file: Option<PathBuf>,
    /// trace, debug, info, warn, error, or by module.
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub(super) log_level: String,
    /// text or json.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(super) log_format: LogFormat,
    /// The command and its arguments, after `--`.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl AssignorArgs {
    /// # Errors
    /// What is wrong with the flags, for people.
    pub(super) fn config(self) -> Result<AssignorOptions, String> {
        log::parse_filter(&self.log_level).map_err(|error| error.to_string())?;
        self.check_names()?;
        let sasl = match (self.sasl_mechanism, self.username, self.password_file) {
            (Some(mechanism), Some(username), Some(file)) => Some(SaslConfig {
                mechanism,
                username,
                password: config::password_from(&file.to_string_lossy())?,
            }),
            _ => None,
        };
        if self.time_limit.is_zero()
            || self.time_limit > LONGEST
            || self.every.is_some_and(|every| every < SHORTEST_EVERY)
        {
            return Err("--time-limit has to be longer than 0 and at most 290s, and --every at least 1s".to_owned());
        }
        let mut command = self.command.into_iter();
        let program = command.next().ok_or("the command is missing after `--`")?;
        program::check(&program)?;
        Ok(AssignorOptions {
            bootstrap: self.bootstrap,
            sasl,
            groups: self.group,
            names: self.name,
            every: self.every,
            command: CommandConfig {
                program,
                arguments: command.collect(),
                is_stream: self.stream,
                time_limit: self.time_limit,
                parallel: self.parallel.into(),
            },
        })
    }

    /// What Convoke would refuse, or never ask for, is not tried for ever.
    fn check_names(&self) -> Result<(), String> {
        let (groups, names) = (distinct("--group", &self.group)?, distinct("--name", &self.name)?);
        if let Some(empty) = groups.union(&names).find(|value| value.trim().is_empty()) {
            return Err(format!(
                "{empty:?} names no group and no assignor; leave the flag out or give it a name"
            ));
        }
        if names.len() > ASSIGNORS_MAX {
            return Err(format!(
                "--name is there {} times, at most {ASSIGNORS_MAX} are allowed",
                names.len()
            ));
        }
        for name in names {
            config::assignor_name(name).map_err(|problem| format!("--name {name}: {problem}"))?;
        }
        Ok(())
    }
}

fn distinct<'a>(flag: &str, values: &'a [String]) -> Result<BTreeSet<&'a str>, String> {
    let mut distinct = BTreeSet::new();
    match values.iter().find(|value| !distinct.insert(value.as_str())) {
        Some(twice) => Err(format!("{flag} {twice} is there twice")),
        None => Ok(distinct),
    }
}

fn mechanism(text: &str) -> Result<SaslMechanism, String> {
    SaslMechanism::find(text).ok_or_else(|| "use PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512".to_owned())
}
