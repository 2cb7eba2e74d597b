//! Log lines on standard error. Standard output carries only the lines that scripts read (`node …`, `ready …`).

use std::backtrace::Backtrace;
use std::io::{self, IsTerminal};
use std::panic;
use std::str::FromStr;

use tracing_subscriber::filter::{EnvFilter, LevelFilter};

/// What a log line looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people: one line each, coloured on a terminal.
    Text,
    /// For collectors: one JSON object a line.
    Json,
}

impl FromStr for LogFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err(format!("`{text}` is not a format; use text or json")),
        }
    }
}

/// Why logging could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error(
        "cannot read the log filter {filter:?}: {reason}; give a level such as `info`, or `info,convoke::upstream=debug`"
    )]
    Filter { filter: String, reason: String },
    #[error("logging was set up before")]
    AlreadySet,
}

/// Checks a filter such as `info` or `info,convoke::proxy=debug`.
///
/// # Errors
/// When it is not one.
pub fn parse_filter(filter: &str) -> Result<EnvFilter, LogError> {
    // A word alone would be taken for the name of a module, and nothing else would be logged.
    let is_level = |word: &str| word.parse::<LevelFilter>().is_ok();
    let words = filter.split(',').map(str::trim).filter(|word| !word.is_empty());
    if let Some(word) = words.clone().find(|word| !word.contains('=') && !is_level(word)) {
        return Err(LogError::Filter {
            filter: filter.to_owned(),
            reason: format!("{word:?} is none of trace, debug, info, warn, error and off"),
        });
    }
    EnvFilter::builder().parse(filter).map_err(|error| LogError::Filter {
        filter: filter.to_owned(),
        reason: error.to_string(),
    })
}

/// Sets up logging for the whole process, panics included: each is one entry in the format of the log.
///
/// # Errors
/// When the filter cannot be read, or when it was set up before.
pub fn init(filter: &str, format: LogFormat) -> Result<(), LogError> {
    let builder = tracing_subscriber::fmt()
        .with_env_filter(parse_filter(filter)?)
        .with_writer(io::stderr)
        .with_target(true);
    let done = match format {
        LogFormat::Text => builder.with_ansi(io::stderr().is_terminal()).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    done.map_err(|_| LogError::AlreadySet)?;
    panic::set_hook(Box::new(|panicked| {
        let backtrace = Backtrace::capture();
        tracing::error!("{panicked}\n{backtrace}");
    }));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_filter_is_named() {
        let error = parse_filter("convoke=loud").unwrap_err();
        assert!(error.to_string().contains("\"convoke=loud\""), "{error}");
        assert!(parse_filter("info,convoke::proxy=debug").is_ok());
    }
}
