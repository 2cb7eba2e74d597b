//! The stock clients: how each is built (once, into the cache) and started.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use convoke_support::{Result, jars, process};

const BUILD_LIMIT: Duration = Duration::from_secs(600);

/// A stock client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stock {
    Java381,
    Java440,
    Librdkafka,
    FranzGo,
    KafkaPython,
}

impl Stock {
    pub const ALL: [Self; 5] = [
        Self::Java381,
        Self::Java440,
        Self::Librdkafka,
        Self::FranzGo,
        Self::KafkaPython,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Java381 => "Java 3.8.1",
            Self::Java440 => "Java 4.4.0",
            Self::Librdkafka => "librdkafka",
            Self::FranzGo => "franz-go",
            Self::KafkaPython => "kafka-python",
        }
    }

    /// The assignors of the classic protocol that it has.
    pub const fn assignors(self) -> &'static [&'static str] {
        match self {
            Self::Java381 | Self::Java440 | Self::FranzGo => &["range", "roundrobin", "sticky", "cooperative-sticky"],
            Self::Librdkafka => &["range", "roundrobin", "cooperative-sticky"],
            Self::KafkaPython => &["range", "roundrobin"],
        }
    }

    /// The program and its fixed arguments, built when this is the first use.
    pub fn program(self) -> Result<(String, Vec<String>)> {
        match self {
            Self::Java381 => java("3.8.1", "classic-only"),
            Self::Java440 => java("4.4.0", "share"),
            Self::Librdkafka => python("librdkafka_client.py"),
            Self::KafkaPython => python("kafka_python_client.py"),
            Self::FranzGo => Ok((text(&go()?), Vec::new())),
        }
    }
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients")
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Builds once a process, one process at a time.
fn build_once(
    cell: &'static OnceLock<Result<(), String>>,
    name: &str,
    build: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let built = cell.get_or_init(|| {
        let locked = || -> Result<()> {
            fs::create_dir_all(jars::cache())?;
            let lock = File::create(jars::cache().join(format!("{name}.lock")))?;
            lock.lock()?;
            build()
        };
        locked().map_err(|error| format!("cannot build the {name} client: {error}"))
    });
    built.clone().map_err(Into::into)
}

fn java(version: &str, extra: &str) -> Result<(String, Vec<String>)> {
    static OLD: OnceLock<Result<(), String>> = OnceLock::new();
    static NEW: OnceLock<Result<(), String>> = OnceLock::new();
    let libs = text(&jars::kafka(version)?.join("*"));
    let classes = text(&jars::cache().join(format!("java-client-{version}")));
    let cell = if version.starts_with("3.") { &OLD } else { &NEW };
    build_once(cell, &format!("Java {version}"), || {
        let mut command = Command::new("javac");
        command.args(["-nowarn", "-d", &classes, "-cp", &libs]);
        command
            .arg(sources().join("java/Client.java"))
            .arg(sources().join("java").join(extra).join("ShareRole.java"));
        process::run("javac", command, BUILD_LIMIT).map(drop)
    })?;
    let arguments = ["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp"].map(str::to_owned);
    let mut arguments = arguments.to_vec();
    arguments.extend([format!("{classes}:{libs}"), "Client".to_owned()]);
    Ok(("java".to_owned(), arguments))
}

fn python(script: &str) -> Result<(String, Vec<String>)> {
    static CELL: OnceLock<Result<(), String>> = OnceLock::new();
    let environment = jars::cache().join("python-clients");
    let requirements = sources().join("python/requirements.txt");
    build_once(&CELL, "Python", || {
        let installed = environment.join("installed.txt");
        if fs::read(&installed).ok() == fs::read(&requirements).ok() && installed.exists() {
            return Ok(());
        }
        let mut command = Command::new("python3");
        command.args(["-m", "venv"]).arg(&environment);
        process::run("python3 -m venv (apt-get install python3-venv)", command, BUILD_LIMIT)?;
        let mut command = Command::new(environment.join("bin/pip"));
        command.args(["install", "--quiet", "--requirement"]).arg(&requirements);
        process::run("pip install", command, BUILD_LIMIT)?;
        fs::copy(&requirements, installed)?;
        Ok(())
    })?;
    let script = sources().join("python").join(script);
    Ok((text(&environment.join("bin/python")), vec![text(&script)]))
}

fn go() -> Result<PathBuf> {
    static CELL: OnceLock<Result<(), String>> = OnceLock::new();
    let program = jars::cache().join("franz-go-client");
    build_once(&CELL, "franz-go", || {
        let mut command = Command::new("go");
        command
            .args(["build", "-o"])
            .arg(&program)
            .arg(".")
            .current_dir(sources().join("go"));
        process::run("go build (Go 1.26 or newer: https://go.dev/dl)", command, BUILD_LIMIT).map(drop)
    })?;
    Ok(program)
}
