//! The stock clients: how each is built (once, into the cache) and started.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use crate::jars::{self, Artifact};
use crate::{Result, process};

const BUILD_LIMIT: Duration = Duration::from_secs(600);

/// A stock client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stock {
    /// The oldest line that brokers of 4.x still serve: no cooperative assignor, no static members.
    Java211,
    Java381,
    Java440,
    Librdkafka,
    FranzGo,
    KafkaPython,
    /// The same clients with `group.protocol=consumer` (KIP-848).
    Java440Consumer,
    LibrdkafkaConsumer,
    FranzGoConsumer,
}

impl Stock {
    /// The clients that every scenario is for.
    pub const ALL: [Self; 5] = [
        Self::Java381,
        Self::Java440,
        Self::Librdkafka,
        Self::FranzGo,
        Self::KafkaPython,
    ];

    /// Those that have the consumer protocol.
    pub const CONSUMER: [Self; 3] = [Self::Java440Consumer, Self::LibrdkafkaConsumer, Self::FranzGoConsumer];

    /// The protocol of its groups.
    #[must_use]
    pub const fn protocol(self) -> &'static str {
        match self {
            Self::Java440Consumer | Self::LibrdkafkaConsumer | Self::FranzGoConsumer => "consumer",
            _ => "classic",
        }
    }

    /// The same client with the classic protocol.
    #[must_use]
    pub const fn classic(self) -> Self {
        match self {
            Self::Java440Consumer => Self::Java440,
            Self::LibrdkafkaConsumer => Self::Librdkafka,
            Self::FranzGoConsumer => Self::FranzGo,
            classic => classic,
        }
    }

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Java211 => "Java 2.1.1",
            Self::Java381 => "Java 3.8.1",
            Self::Java440 => "Java 4.4.0",
            Self::Librdkafka => "librdkafka",
            Self::FranzGo => "franz-go",
            Self::KafkaPython => "kafka-python",
            Self::Java440Consumer => "Java 4.4.0 (consumer)",
            Self::LibrdkafkaConsumer => "librdkafka (consumer)",
            Self::FranzGoConsumer => "franz-go (consumer)",
        }
    }

    /// The assignors of the classic protocol that it has.
    #[must_use]
    pub const fn assignors(self) -> &'static [&'static str] {
        match self {
            Self::Java381 | Self::Java440 | Self::FranzGo => &["range", "roundrobin", "sticky", "cooperative-sticky"],
            Self::Java211 => &["range", "roundrobin", "sticky"],
            Self::Librdkafka => &["range", "roundrobin", "cooperative-sticky"],
            Self::KafkaPython => &["range", "roundrobin"],
            Self::Java440Consumer | Self::LibrdkafkaConsumer | Self::FranzGoConsumer => &[],
        }
    }

    /// The program and its fixed arguments, built when this is the first use.
    ///
    /// # Errors
    /// When it cannot be built; the message says what is missing.
    pub fn program(self) -> Result<(String, Vec<String>)> {
        match self {
            Self::Java211 => java("2.1.1", &[oldest_jars()?], &["Client", "Role"]),
            Self::Java381 => java(
                "3.8.1",
                &[jars::kafka("3.8.1")?],
                &["Client", "Role", "AdminRole", "TransactionRole"],
            ),
            Self::Java440 | Self::Java440Consumer => java(
                "4.4.0",
                &[jars::kafka("4.4.0")?, streams_jar()?],
                &[
                    "Client",
                    "Role",
                    "AdminRole",
                    "NewestAdminRole",
                    "ShareRole",
                    "StreamsRole",
                    "TransactionRole",
                ],
            ),
            Self::Librdkafka | Self::LibrdkafkaConsumer => python("librdkafka_client.py"),
            Self::KafkaPython => python("kafka_python_client.py"),
            Self::FranzGo | Self::FranzGoConsumer => Ok((text(&go()?), Vec::new())),
        }
    }
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../clients")
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// A place in the cache for what is built of these files, another for each content: checkouts that share a cache, and run at the
/// same time, do not take away each other's.
fn built_of(name: &str, sources: &[PathBuf]) -> Result<PathBuf> {
    let mut hasher = DefaultHasher::new();
    for source in sources {
        fs::read(source)?.hash(&mut hasher);
    }
    Ok(jars::cache().join(format!("{name}-{:016x}", hasher.finish())))
}

/// Builds what is not `complete` yet, one process at a time.
fn build_once(
    cell: &'static OnceLock<Result<(), String>>,
    name: &str,
    complete: &Path,
    build: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let built = cell.get_or_init(|| {
        let locked = || -> Result<()> {
            fs::create_dir_all(jars::cache())?;
            let lock = File::create(jars::cache().join(format!("{name}.lock")))?;
            lock.lock()?;
            if !complete.exists() {
                build()?;
                fs::write(complete, "")?;
            }
            Ok(())
        };
        locked().map_err(|error| format!("cannot build the {name} client: {error}"))
    });
    built.clone().map_err(Into::into)
}

/// kafka-clients 2.1.1 on its own, with the JSON library that the client program needs.
fn oldest_jars() -> Result<PathBuf> {
    let json = Artifact {
        group: "com.fasterxml.jackson.core",
        id: "jackson-databind",
        version: "2.16.2",
        with_dependencies: true,
    };
    jars::fetch(
        "kafka-clients-2.1.1",
        &[Artifact::kafka("kafka-clients", "2.1.1"), json],
    )
}

/// Kafka Streams without RocksDB (70 MB), which a topology without state does not load.
fn streams_jar() -> Result<PathBuf> {
    let streams = Artifact {
        with_dependencies: false,
        ..Artifact::kafka("kafka-streams", "4.4.0")
    };
    jars::fetch("kafka-streams-4.4.0", &[streams])
}

fn java(version: &str, jars: &[PathBuf], classes: &[&str]) -> Result<(String, Vec<String>)> {
    static BUILT: [OnceLock<Result<(), String>>; 3] = [const { OnceLock::new() }; 3];
    let cell = match version {
        "2.1.1" => &BUILT[0],
        "3.8.1" => &BUILT[1],
        _ => &BUILT[2],
    };
    let libs: Vec<_> = jars.iter().map(|folder| text(&folder.join("*"))).collect();
    let libs = libs.join(":");
    let classes = classes.iter().map(|class| sources().join(format!("java/{class}.java")));
    let classes: Vec<_> = classes.collect();
    let folder = built_of(&format!("java-client-{version}"), &classes)?;
    build_once(cell, &format!("Java {version}"), &folder.join("complete"), || {
        let mut command = Command::new("javac");
        command
            .args(["-nowarn", "-cp", &libs, "-d"])
            .arg(&folder)
            .args(&classes);
        process::run("javac", command, BUILD_LIMIT).map(drop)
    })?;
    let arguments = ["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp"].map(str::to_owned);
    let mut arguments = arguments.to_vec();
    arguments.extend([format!("{}:{libs}", text(&folder)), "Client".to_owned()]);
    Ok(("java".to_owned(), arguments))
}

fn python(script: &str) -> Result<(String, Vec<String>)> {
    static CELL: OnceLock<Result<(), String>> = OnceLock::new();
    let requirements = sources().join("python/requirements.txt");
    let environment = built_of("python-clients", std::slice::from_ref(&requirements))?;
    build_once(&CELL, "Python", &environment.join("complete"), || {
        let mut command = Command::new("python3");
        command.args(["-m", "venv"]).arg(&environment);
        process::run("python3 -m venv (apt-get install python3-venv)", command, BUILD_LIMIT)?;
        let mut command = Command::new(environment.join("bin/pip"));
        command.args(["install", "--quiet", "--requirement"]).arg(&requirements);
        process::run("pip install", command, BUILD_LIMIT).map(drop)
    })?;
    let script = sources().join("python").join(script);
    Ok((text(&environment.join("bin/python")), vec![text(&script)]))
}

fn go() -> Result<PathBuf> {
    static CELL: OnceLock<Result<(), String>> = OnceLock::new();
    let folder = sources().join("go");
    let program = built_of(
        "franz-go-client",
        &["main.go", "go.mod", "go.sum"].map(|file| folder.join(file)),
    )?;
    build_once(&CELL, "franz-go", &program.with_extension("complete"), || {
        let mut command = Command::new("go");
        command
            .args(["build", "-o"])
            .arg(&program)
            .arg(".")
            .current_dir(&folder);
        process::run("go build (Go 1.26 or newer: https://go.dev/dl)", command, BUILD_LIMIT).map(drop)
    })?;
    Ok(program)
}
