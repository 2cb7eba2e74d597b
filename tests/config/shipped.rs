//! The examples that ship, and the documentation of every key in one of them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use convoke::config::keys::{KEYS, environment_name};
use convoke::config::settings::SETTINGS;

use super::{MINIMAL, load_text};

fn in_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

#[test]
fn every_example_that_ships_is_valid() {
    let secret = tempfile::NamedTempFile::new().expect("a temporary file");
    fs::write(secret.path(), "s3cret\n").expect("a password in it");
    let mut count = 0;
    for file in fs::read_dir(in_repository("config")).expect("config/") {
        let path = file.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("the example");
        let text = text.replace("/run/secrets/convoke-password", &secret.path().display().to_string());
        let loaded = load_text(&text, &[], &[]);
        assert!(loaded.is_ok(), "{}: {}", path.display(), loaded.expect_err("problems"));
        count += 1;
    }
    assert!(count >= 4, "{count} examples");
}

/// The documentation of a key is a line `name:` (behind `#` where it has no default) under the right section, its environment
/// variable, and its default.
#[test]
fn every_key_is_documented_with_its_environment_variable_and_default() {
    let text = fs::read_to_string(in_repository("config/convoke.yaml")).expect("config/convoke.yaml");
    let uncommented: String = text.lines().map(|line| uncomment_key(line) + "\n").collect();
    let documented = documented_keys(&uncommented);
    let settings = SETTINGS.iter().map(|setting| format!("settings.{}", setting.name));
    let known: BTreeSet<String> = KEYS.iter().map(|key| key.name.to_owned()).chain(settings).collect();
    assert_eq!(
        documented, known,
        "config/convoke.yaml against the keys that Convoke knows"
    );
    for key in &known {
        let variable = environment_name(key);
        let mentioned = text
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .any(|word| word == variable);
        assert!(mentioned, "{variable} is not documented");
    }
    let defaults = load_text(MINIMAL, &[], &[]).expect("the defaults");
    let shown = load_text(
        &text,
        &[
            ("CONVOKE_UPSTREAM_BOOTSTRAP", "kafka:9092"),
            ("CONVOKE_STORE_DATA", "d"),
        ],
        &[],
    );
    assert_eq!(
        shown.expect("config/convoke.yaml").config,
        defaults.config,
        "the defaults as documented"
    );
}

/// `  # key: value` as `  key: value`; other comments as they are.
fn uncomment_key(line: &str) -> String {
    let Some((indent, rest)) = line.split_once("# ") else {
        return line.to_owned();
    };
    let word = rest.split(':').next().unwrap_or_default();
    let is_key =
        rest.contains(':') && !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || "_.".contains(c));
    if is_key && indent.trim().is_empty() {
        format!("{indent}{rest}")
    } else {
        line.to_owned()
    }
}

fn documented_keys(text: &str) -> BTreeSet<String> {
    fn walk(prefix: &str, value: &serde_yaml::Value, keys: &mut BTreeSet<String>) {
        match value {
            serde_yaml::Value::Mapping(entries) => {
                for (key, value) in entries {
                    let name = key.as_str().expect("a name");
                    let full = if prefix.is_empty() {
                        name.to_owned()
                    } else {
                        format!("{prefix}.{name}")
                    };
                    walk(&full, value, keys);
                }
            }
            _ => {
                keys.insert(prefix.to_owned());
            }
        }
    }
    let value = serde_yaml::from_str(text).expect("YAML");
    let mut keys = BTreeSet::new();
    walk("", &value, &mut keys);
    keys
}
