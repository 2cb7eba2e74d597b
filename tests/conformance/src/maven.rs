//! One run of Maven over some of the classes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{fs, io};

use convoke_support::{Result, process};

use crate::results::Results;

/// Everything takes half an hour in one JVM; with downloads on a slow line, much longer.
const TIME_LIMIT: Duration = Duration::from_secs(90 * 60);

/// Runs what is selected, in Surefire's words, through that Convoke or on plain Kafka, in so many JVMs.
///
/// # Errors
/// When Maven cannot run them, or an artifact cannot be had; the message holds what it printed.
pub fn run(convoke: Option<&Path>, forks: u32, selection: &[String]) -> Result<Results> {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let build = project.join("../../target/conformance");
    let results = build.join("results");
    remove(&results)?;
    fs::create_dir_all(&results)?;
    let mut command = Command::new("mvn");
    command.args(["-B", "-q", "-f"]).arg(project.join("pom.xml"));
    command.arg(format!("-Dbuild={}", absolute(&build)?.display()));
    command.arg(format!("-Dresults={}", absolute(&results)?.display()));
    command.arg(format!("-Dconvoke={}", convoke.unwrap_or(Path::new("")).display()));
    command.arg(format!("-Dforks={forks}"));
    command.arg(format!("-Dtest={}", selection.join(",")));
    command.arg("test");
    process::run("mvn", command, TIME_LIMIT)
        .map_err(|error| format!("Maven cannot run Kafka's tests: {error}\nDo this by hand to see more: mvn -f tests/conformance/pom.xml test"))?;
    Results::read(&results)
}

fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

fn absolute(folder: &Path) -> Result<PathBuf> {
    Ok(folder.canonicalize()?)
}
