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

/// The folder with the broker's jars of that version, as a class path wildcard finds them.
///
/// # Errors
/// When Maven is not there or cannot fetch them; the message says what to do.
pub fn kafka(version: &str) -> Result<PathBuf> {
    let folder = cache().join(format!("kafka-{version}"));
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
    eprintln!("fetching Apache Kafka {version} from Maven Central (once, some 100 MB)");
    fs::write(folder.join("pom.xml"), pom(version))?;
    let mut command = Command::new("mvn");
    command
        .args(["-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=libs"])
        .current_dir(&folder);
    process::run("mvn", command, Duration::from_secs(600)).map_err(|error| {
        format!("cannot fetch Kafka {version}: {error}\nMaven and a JDK 17 are needed: apt-get install maven openjdk-17-jdk-headless")
    })?;
    fs::write(complete, "")?;
    Ok(libs)
}

/// Brokers from 4.0 on log through log4j 2, whose binding they do not bring; 3.x brings its own.
fn pom(version: &str) -> String {
    let dependency = |group: &str, id: &str, version: &str| {
        format!(
            "<dependency><groupId>{group}</groupId><artifactId>{id}</artifactId><version>{version}</version></dependency>"
        )
    };
    let artifact = |id: &str, version: &str| dependency("org.apache.kafka", id, version);
    let binding = if version.starts_with("3.") {
        String::new()
    } else {
        dependency("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.5")
    };
    format!(
        "<project xmlns=\"http://maven.apache.org/POM/4.0.0\"><modelVersion>4.0.0</modelVersion>\
         <groupId>convoke.tests</groupId><artifactId>kafka</artifactId><version>1</version><dependencies>{}{}{binding}</dependencies></project>\n",
        artifact("kafka_2.13", version),
        artifact("kafka-tools", version)
    )
}
