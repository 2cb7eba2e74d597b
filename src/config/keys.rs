//! Every key of the configuration: its name, its default, and the environment variable that sets it.

/// One key. The default is written as a person would write it and read by the same code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    pub name: &'static str,
    pub default: Option<&'static str>,
    pub shape: Shape,
}

/// What stands behind a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Value,
    /// In the environment and in flags its items are separated by commas.
    List,
    /// A list of sections with these keys; in the environment and in flags the same in YAML.
    Rules(&'static [Field]),
}

/// One key of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    pub name: &'static str,
    /// Whether it may have several values.
    pub list: bool,
}

const fn key(name: &'static str, default: &'static str) -> Key {
    Key {
        name,
        default: Some(default),
        shape: Shape::Value,
    }
}

const fn without_default(name: &'static str) -> Key {
    Key {
        name,
        default: None,
        shape: Shape::Value,
    }
}

const fn list(name: &'static str) -> Key {
    Key {
        name,
        default: None,
        shape: Shape::List,
    }
}

const fn rules(name: &'static str, fields: &'static [Field]) -> Key {
    Key {
        name,
        default: None,
        shape: Shape::Rules(fields),
    }
}

/// The key of a rule that says which groups it is for.
const GROUPS: Field = Field {
    name: "groups",
    list: true,
};

const fn field(name: &'static str) -> Field {
    Field { name, list: false }
}

/// Every key, in the order of `config/convoke.yaml`.
pub static KEYS: &[Key] = &[
    list("upstream.bootstrap"),
    without_default("upstream.sasl.mechanism"),
    without_default("upstream.sasl.username"),
    without_default("upstream.sasl.password"),
    without_default("upstream.sasl.password_file"),
    key("upstream.connect_timeout", "5s"),
    key("upstream.request_timeout", "15s"),
    key("upstream.metadata_refresh", "5s"),
    key("listen.bootstrap", "127.0.0.1:19092"),
    without_default("listen.nodes"),
    without_default("listen.advertise"),
    list("listen.nodes_in_front"),
    without_default("listen.elsewhere"),
    key("admin.listen", "127.0.0.1:9190"),
    without_default("store.data"),
    list("groups.delegate"),
    rules("groups.assign", &[GROUPS, field("assignor"), field("fallback")]),
    rules("assignors", &[field("name"), GROUPS, field("always")]),
    key("limits.frame_max", "100MiB"),
    key("limits.owned_request_max", "16MiB"),
    key("limits.owned_memory_max", "256MiB"),
    key("limits.group_memory_max", "256MiB"),
    key("limits.connections_max", "10000"),
    key("limits.connections_max_per_ip", "10000"),
    key("limits.idle_timeout", "10m"),
    key("limits.buffer", "64KiB"),
    key("limits.pipeline_max", "256"),
    key("limits.assignor_metadata_max", "64KiB"),
    key("drain_timeout", "8s"),
    key("log.level", "info"),
    key("log.format", "text"),
];

/// The section whose keys are Kafka's own names, which hold dots themselves.
pub const SETTINGS_SECTION: &str = "settings";

/// What every environment variable of Convoke's starts with.
pub const ENVIRONMENT_PREFIX: &str = "CONVOKE_";

/// The key of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// The environment variable of a key: `limits.frame_max` is `CONVOKE_LIMITS_FRAME_MAX`.
#[must_use]
pub fn environment_name(key: &str) -> String {
    format!("{ENVIRONMENT_PREFIX}{}", key.replace('.', "_").to_ascii_uppercase())
}

/// Whether any key is in this section.
pub(super) fn is_section(name: &str) -> bool {
    KEYS.iter()
        .any(|key| key.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
}

/// The names in a section (the top level is ""), each once: keys, and sections within.
pub(super) fn names_in(section: &str) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = KEYS
        .iter()
        .filter_map(|key| {
            let rest = match section {
                "" => key.name,
                _ => key.name.strip_prefix(section)?.strip_prefix('.')?,
            };
            rest.split('.').next()
        })
        .collect();
    if section.is_empty() {
        names.push(SETTINGS_SECTION);
    }
    names.dedup();
    names
}

/// The candidate that is most probably meant, if one is near enough.
pub(super) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).max(2);
    candidates
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Levenshtein's distance: how many letters to insert, delete or replace.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, letter) in left.chars().enumerate() {
        let mut diagonal = index;
        let mut before = index + 1;
        for (cell, other) in row.iter_mut().skip(1).zip(&right) {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = *cell;
            *cell = replaced.min(diagonal + 1).min(before + 1);
            before = *cell;
        }
        if let Some(first) = row.first_mut() {
            *first = index + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::config::settings::SETTINGS;

    #[test]
    fn no_two_keys_share_an_environment_variable() {
        let settings = SETTINGS
            .iter()
            .map(|setting| format!("{SETTINGS_SECTION}.{}", setting.name));
        let names: Vec<String> = KEYS.iter().map(|key| key.name.to_owned()).chain(settings).collect();
        let variables: BTreeSet<String> = names.iter().map(|name| environment_name(name)).collect();
        assert_eq!(variables.len(), names.len());
        assert_eq!(
            environment_name("upstream.sasl.password_file"),
            "CONVOKE_UPSTREAM_SASL_PASSWORD_FILE"
        );
    }

    #[test]
    fn the_word_that_was_meant_is_found() {
        assert_eq!(nearest("advertized", names_in("listen")), Some("advertise"));
        assert_eq!(nearest("frame_mx", names_in("limits")), Some("frame_max"));
        assert_eq!(nearest("kittens", names_in("limits")), None);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
    }
}
