//! That nothing is missing: whoever adds a decoder has to add it to the targets.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use convoke::proxy::rewrite::{Treatment, treatment};
use convoke::wire::api::{APIS, Route};
use convoke::wire::schema;

use crate::targets;

/// Tables that are only walked: their answers are never decoded.
const WALKED: [&str; 2] = ["ShareFetch response", "ShareAcknowledge response"];

/// Files that read bytes and need no target, each for a reason.
const NO_TARGET: &[(&str, &str)] = &[
    (
        "config/layers.rs",
        "a text file, whose oddities are tried in tests/config",
    ),
    (
        "config/rules.rs",
        "a text file, whose oddities are tried in tests/config",
    ),
    ("coordinator/assignor/space.rs", "numbers of its own"),
    (
        "external_assignor/command.rs",
        "the beginning of an answer of a command that the user runs, for its log",
    ),
    (
        "external_assignor/command/stderr.rs",
        "lines for the log, of a command that the user runs",
    ),
    (
        "external_assignor/command/stream.rs",
        "lines of a command that the user runs, read up to a bound",
    ),
    ("server/start.rs", "random bytes of its own"),
    ("cli/health.rs", "prints what our own admin side says"),
    ("handler/access/probe.rs", "the first two bytes of an answer"),
    (
        "upstream/node.rs",
        "the first two bytes of an answer; the rest by the codec",
    ),
    (
        "store/embedded/log.rs",
        "files that are damaged at every byte are opened in tests/store",
    ),
    (
        "store/embedded/file.rs",
        "files that are damaged at every byte are opened in tests/store",
    ),
];

/// What a file does that reads bytes by itself.
const SIGNS: [&str; 7] = [
    "Reader::new(",
    "first_chunk",
    "from_be_bytes",
    "from_le_bytes",
    "from_utf8",
    "utf8_chunks",
    ".get_u32()",
];

#[test]
fn every_message_that_is_decoded_is_a_target() {
    let names: BTreeSet<_> = targets::all().into_iter().map(|target| target.name).collect();
    for schema in schema::ALL {
        assert!(
            names.contains(schema.name) || WALKED.contains(&schema.name),
            "{} has a table and no target: add it to MESSAGES in tests/fuzz/targets/messages.rs",
            schema.name
        );
    }
    for name in WALKED {
        let schema = schema::ALL.iter().find(|schema| schema.name == name).expect("a table");
        for version in schema.min..=schema.max {
            assert_eq!(
                treatment(schema.api_key, version),
                Treatment::GatheredOrScrubbed,
                "{name} v{version}"
            );
        }
    }
}

#[test]
fn every_request_that_ends_here_is_a_target_in_every_version() {
    for api in APIS.iter().filter(|api| api.route == Route::Own) {
        let mut messages = targets::MESSAGES.iter().map(|message| message.schema);
        let schema = messages.find(|schema| schema.name == format!("{} request", api.name));
        let schema = schema.unwrap_or_else(|| panic!("{} requests end here and are no target", api.name));
        assert!(schema.min <= api.min && api.max <= schema.max, "{}", api.name);
    }
}

#[test]
fn every_file_that_reads_bytes_is_covered_by_a_target() {
    let mut reads: BTreeSet<String> = BTreeSet::new();
    sources(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src")), "", &mut reads);
    let covered: BTreeSet<&str> = targets::all().iter().flat_map(|target| target.reads).copied().collect();
    let excused: BTreeSet<&str> = NO_TARGET.iter().map(|(file, _)| *file).collect();
    let missing: Vec<_> = reads
        .iter()
        .filter(|file| !covered.contains(file.as_str()) && !excused.contains(file.as_str()))
        .collect();
    assert!(
        missing.is_empty(),
        "no target in tests/fuzz reads what these read: {missing:?}"
    );
    for file in covered.union(&excused) {
        assert!(
            Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(file).is_file(),
            "{file} is gone"
        );
    }
}

/// The files below a folder that read bytes, tests left out.
fn sources(folder: &Path, prefix: &str, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry"))
    {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        if entry.path().is_dir() {
            if name != "tests" {
                sources(&entry.path(), &format!("{path}/"), found);
            }
        } else if name.ends_with(".rs") && name != "tests.rs" && name != "mock.rs" && name != "golden.rs" {
            let text = fs::read_to_string(entry.path()).expect("text");
            let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
            if SIGNS.iter().any(|sign| code.contains(sign)) {
                found.insert(path);
            }
        }
    }
}
