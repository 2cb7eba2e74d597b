//! Apache Kafka's own jars from Maven Central, fetched once into a cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::{Result, process};

/// Where fetched things are kept: `$CONVOKE_CACHE`, else `target/test-cache` of this checkout.
#[must_use]
pub fn cache() -> PathBuf {
    std::env::var_os("CONVOKE_CACHE").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-cache"),
        PathBuf::from,
    )
}

/// An artifact of Maven Central.
#[derive(Debug, Clone, Copy)]
pub struct Artifact<'a> {
    pub group: &'a str,
    pub id: &'a str,
    pub version: &'a str,
    /// Whether what it depends on is wanted too.
    pub with_dependencies: bool,
}

impl<'a> Artifact<'a> {
    /// One of Apache Kafka's, with what it depends on.
    #[must_use]
    pub const fn kafka(id: &'a str, version: &'a str) -> Self {
        Self {
            group: "org.apache.kafka",
            id,
            version,
            with_dependencies: true,
        }
    }

    fn to_xml(self) -> String {
        let Self { group, id, version, .. } = self;
        let exclusions = if self.with_dependencies {
            ""
        } else {
            "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
        };
        format!(
            "<dependency><groupId>{group}</groupId><artifactId>{id}</artifactId><version>{version}</version>{exclusions}</dependency>"
        )
    }
}

/// The folder with the broker's jars of that version, as a class path wildcard finds them.
///
/// # Errors
/// When Maven is not there or cannot fetch them; the message says what to do.
pub fn kafka(version: &str) -> Result<PathBuf> {
    let mut artifacts = vec![
        Artifact::kafka("kafka_2.13", version),
        Artifact::kafka("kafka-tools", version),
    ];
    // Brokers from 4.0 on log through log4j 2, whose binding they do not bring; 3.x brings its own.
    if !version.starts_with("3.") {
        artifacts.push(Artifact {
            group: "org.apache.logging.log4j",
            id: "log4j-slf4j-impl",
            version: "2.25.5",
            with_dependencies: true,
        });
    }
    fetch(&format!("kafka-{version}"), &artifacts)
}

/// The folder `name` of the cache with the jars of those artifacts, fetched when this is the first use.
///
/// # Errors
/// When Maven is not there or cannot fetch them; the message says what to do.
pub fn fetch(name: &str, artifacts: &[Artifact<'_>]) -> Result<PathBuf> {
    let folder = cache().join(name);
    let libs = folder.join("libs");
    let complete = folder.join("complete");
    if complete.exists() {
        return Ok(libs);
    }
    fs::create_dir_all(&folder)?;
    let lock = fs::File::create(folder.join("lock"))?;
    lock.lock()?;
    if complete.exists() {
        return Ok(libs);
    }
    eprintln!("fetching {name} from Maven Central (once; a broker has some 100 MB)");
    fs::write(folder.join("pom.xml"), pom(artifacts))?;
    let mut command = Command::new("mvn");
    command
        .args(["-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=libs"])
        .current_dir(&folder);
    process::run("mvn", command, Duration::from_secs(600)).map_err(|error| {
        format!(
            "cannot fetch {name}: {error}\nMaven and a JDK 17 are needed: apt-get install maven openjdk-17-jdk-headless"
        )
    })?;
    fs::write(complete, "")?;
    Ok(libs)
}

fn pom(artifacts: &[Artifact<'_>]) -> String {
    let dependencies: String = artifacts.iter().map(|artifact| artifact.to_xml()).collect();
    format!(
        "<project xmlns=\"http://maven.apache.org/POM/4.0.0\"><modelVersion>4.0.0</modelVersion>\
         <groupId>convoke.tests</groupId><artifactId>jars</artifactId><version>1</version>\
         <dependencies>{dependencies}</dependencies></project>\n"
    )
}
