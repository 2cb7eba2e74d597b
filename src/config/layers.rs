//! Puts the layers together: flags win over the environment, that over the file. Unknown keys and wrong shapes are reported.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use super::document::{self, Entry, Mark, Node, Value};
use super::keys::{
    self, ENVIRONMENT_PREFIX, Field, SETTINGS_SECTION, Shape, environment_name, is_section, names_in, nearest,
};
use super::problem::{Place, Problem};
use super::rules::{self, Rule, RuleReader};
use super::settings;
use super::{Flag, Sources};

/// Bytes of the longest file: every key with its comment takes 8 KiB.
const FILE_MAX: u64 = 64 * 1024;
/// Each place costs a reading of the file, so only so many problems are told, and only so many items of a list know their
/// place.
pub(super) const PROBLEMS_MAX: usize = 50;
const ITEMS_LOCATED_MAX: usize = 100;
const BYTE_ORDER_MARK: &[u8] = &[0xef, 0xbb, 0xbf];

/// What was given for a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) place: Place,
    /// One item unless the key is a list.
    pub(super) items: Vec<Item>,
    /// Of a key whose value is a list of rules.
    pub(super) rules: Vec<Rule>,
}

impl Given {
    /// As `convoke check` shows it.
    pub(super) fn shown(&self) -> String {
        let items = self.items.iter().map(|item| item.text.clone());
        items
            .chain(self.rules.iter().map(Rule::shown))
            .collect::<Vec<_>>()
            .join(",")
    }
}

/// One value as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) text: String,
    pub(super) place: Place,
}

/// What all layers give, by key.
#[derive(Debug, Default)]
pub(super) struct Layers {
    pub(super) given: BTreeMap<String, Given>,
    pub(super) problems: Vec<Problem>,
    pub(super) warnings: Vec<Problem>,
    /// The file could not be read, so nobody knows what is given in it.
    pub(super) file_unknown: bool,
}

impl Layers {
    pub(super) fn read(sources: &Sources) -> Self {
        let mut layers = Self::default();
        if let Some(path) = &sources.file {
            layers.read_file(path);
        }
        for (name, value) in &sources.environment {
            layers.read_variable(name, value);
        }
        for flag in &sources.flags {
            layers.read_flag(flag);
        }
        layers
    }

    fn read_file(&mut self, path: &Path) {
        match read_text(path, FILE_MAX) {
            Ok(text) => File {
                path,
                text: &text,
                layers: self,
                problems: 0,
            }
            .read(),
            Err(reason) => {
                self.file_unknown = true;
                self.problems.push(Problem {
                    place: Place::Nowhere,
                    key: String::new(),
                    message: format!("cannot read {}: {reason}", path.display()),
                });
            }
        }
    }

    /// An empty variable counts as not given, as compose files make them.
    fn read_variable(&mut self, name: &str, value: &str) {
        if value.is_empty() || !name.starts_with(ENVIRONMENT_PREFIX) || name == "CONVOKE_CONFIG" {
            return;
        }
        let place = Place::Environment(name.to_owned());
        if let Some(key) = all_keys().find(|key| environment_name(key) == name) {
            self.give(&key, value, place);
            return;
        }
        if is_service_variable(name) {
            return;
        }
        let variables: Vec<String> = all_keys().map(|key| environment_name(&key)).collect();
        self.warnings.push(Problem {
            place,
            key: String::new(),
            message: format!("sets no key{}", meant(name, variables.iter().map(String::as_str), "")),
        });
    }

    fn read_flag(&mut self, flag: &Flag) {
        let place = Place::Flag(flag.flag.clone());
        let in_settings = format!("{SETTINGS_SECTION}.{}", flag.key);
        if keys::find(&flag.key).is_some() || settings_name(&flag.key).is_some() {
            self.give(&flag.key, &flag.value, place);
        } else if settings_name(&in_settings).is_some() {
            self.give(&in_settings, &flag.value, place);
        } else {
            let known: Vec<String> = all_keys().collect();
            self.problems.push(Problem {
                place,
                key: flag.key.clone(),
                message: format!("unknown key{}", meant(&flag.key, known.iter().map(String::as_str), "")),
            });
        }
    }

    fn give(&mut self, key: &str, text: &str, place: Place) {
        let item = |text: &str| Item {
            text: text.trim().to_owned(),
            place: place.clone(),
        };
        let mut rules = Vec::new();
        let items = match keys::find(key).map(|key| key.shape) {
            Some(Shape::List) => text.split(',').map(item).filter(|item| !item.text.is_empty()).collect(),
            Some(Shape::Rules(fields)) => {
                let (read, problems) = rules::read_text(key, fields, text, &place);
                rules = read;
                self.problems.extend(problems);
                Vec::new()
            }
            Some(Shape::Value) | None => vec![item(text)],
        };
        self.given.insert(key.to_owned(), Given { place, items, rules });
    }
}

/// The file while it is read.
struct File<'a> {
    path: &'a Path,
    text: &'a str,
    layers: &'a mut Layers,
    /// How many were found.
    problems: usize,
}

impl File<'_> {
    fn place(&self, mark: Mark) -> Place {
        let (line, column) = document::locate(self.text, mark);
        self.place_at(line, column)
    }

    fn place_at(&self, line: usize, column: usize) -> Place {
        Place::File {
            path: self.path.to_owned(),
            line,
            column,
        }
    }

    fn problem(&mut self, mark: Mark, key: &str, message: String) {
        self.problems += 1;
        if self.problems > PROBLEMS_MAX {
            return;
        }
        let problem = Problem {
            place: self.place(mark),
            key: key.to_owned(),
            message,
        };
        self.layers.problems.push(problem);
        if self.problems == PROBLEMS_MAX {
            self.layers.problems.push(Problem {
                place: Place::Nowhere,
                key: String::new(),
                message: format!("more may be wrong with {}; these are the first", self.path.display()),
            });
        }
    }

    fn read(mut self) {
        match document::parse(self.text) {
            Ok(root) => match &root.value {
                Value::Map(entries) => self.read_section("", entries),
                Value::Null => {}
                other => {
                    let message = format!("expected a section with keys, found {}", other.kind());
                    self.problem(root.mark, "", message);
                }
            },
            Err(error) => {
                self.layers.file_unknown = true;
                self.layers.problems.push(Problem {
                    place: self.place_at(error.line, error.column),
                    key: String::new(),
                    message: error.message,
                });
            }
        }
    }

    fn read_section(&mut self, section: &str, entries: &[Entry]) {
        let mut earlier = BTreeMap::new();
        for entry in entries {
            let key = match section {
                "" => entry.key.clone(),
                _ => format!("{section}.{}", entry.key),
            };
            if let Some(mark) = earlier.get(&*entry.key).copied() {
                self.given_twice(&key, mark, entry.key_mark);
                continue;
            }
            earlier.insert(&*entry.key, entry.key_mark);
            if key == SETTINGS_SECTION || is_section(&key) {
                self.read_subsection(&key, entry);
            } else if keys::find(&key).is_some() || settings_name(&key).is_some() {
                self.read_value(&key, &entry.value);
            } else {
                let message = format!("unknown key{}", meant_in(section, &entry.key));
                self.problem(entry.key_mark, &key, message);
            }
        }
    }

    fn given_twice(&mut self, key: &str, first: Mark, second: Mark) {
        if self.problems < PROBLEMS_MAX {
            let (line, _) = document::locate(self.text, first);
            self.problem(second, key, format!("given twice; it stands in line {line} already"));
        }
    }

    fn read_subsection(&mut self, key: &str, entry: &Entry) {
        match &entry.value.value {
            Value::Map(entries) => self.read_section(key, entries),
            Value::Null => {}
            other => {
                let message = format!("expected a section with keys, found {}", other.kind());
                self.problem(entry.value.mark, key, message);
            }
        }
    }

    /// A key without a value counts as not given.
    fn read_value(&mut self, key: &str, node: &Node) {
        let shape = keys::find(key).map(|key| key.shape);
        if let Some(Shape::Rules(fields)) = shape {
            return self.read_rules(key, fields, node);
        }
        let list = shape == Some(Shape::List);
        let place = self.place(node.mark);
        match &node.value {
            Value::Null => {}
            Value::Scalar(text) => self.layers.give(key, text, place),
            Value::List(nodes) if list => {
                let located = nodes.len() <= ITEMS_LOCATED_MAX;
                let items = nodes.iter().filter_map(|item| {
                    let place = if located { self.place(item.mark) } else { place.clone() };
                    self.read_item(key, item, place)
                });
                let items = items.collect();
                let rules = Vec::new();
                self.layers.given.insert(key.to_owned(), Given { place, items, rules });
            }
            other => {
                let expected = if list { "a list" } else { "a single value" };
                self.problem(node.mark, key, format!("expected {expected}, found {}", other.kind()));
            }
        }
    }

    fn read_rules(&mut self, key: &str, fields: &'static [Field], node: &Node) {
        let place = self.place(node.mark);
        let locate = |mark| self.place(mark);
        let mut reader = RuleReader::new(key, fields, place.clone(), &locate);
        let rules = reader.read(node);
        for (mark, key, message) in reader.problems {
            self.problem(mark, &key, message);
        }
        if node.value != Value::Null {
            let items = Vec::new();
            self.layers.given.insert(key.to_owned(), Given { place, items, rules });
        }
    }

    fn read_item(&mut self, key: &str, node: &Node, place: Place) -> Option<Item> {
        if let Value::Scalar(text) = &node.value {
            return Some(Item {
                text: text.clone(),
                place,
            });
        }
        let message = format!("expected a single value in the list, found {}", node.value.kind());
        self.problem(node.mark, key, message);
        None
    }
}

/// The text of a file that is not longer than `max` bytes.
///
/// # Errors
/// Why it cannot be had.
pub(super) fn read_text(path: impl AsRef<Path>, max: u64) -> Result<String, String> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    file.take(max + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    if bytes.len() as u64 > max {
        return Err(format!("it is longer than {max} bytes"));
    }
    // A byte order mark, which some editors put there, is no part of the text.
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&bytes).to_vec();
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let line = 1 + error
            .as_bytes()
            .iter()
            .take(valid)
            .filter(|byte| **byte == b'\n')
            .count();
        format!("it is no text (UTF-8), from line {line} on")
    })
}

/// Every key, those of the settings included.
fn all_keys() -> impl Iterator<Item = String> {
    let settings = settings::SETTINGS
        .iter()
        .map(|setting| format!("{SETTINGS_SECTION}.{}", setting.name));
    keys::KEYS.iter().map(|key| key.name.to_owned()).chain(settings)
}

/// The setting that a key such as `settings.group.max.size` names.
fn settings_name(key: &str) -> Option<&'static settings::Setting> {
    settings::find(key.strip_prefix(SETTINGS_SECTION)?.strip_prefix('.')?)
}

/// Words that help after "unknown key": the neighbour that is meant, or the section that has a key of that name.
fn meant_in(section: &str, word: &str) -> String {
    if section == SETTINGS_SECTION {
        let names = settings::SETTINGS.iter().map(|setting| setting.name);
        let near = meant(word, names.clone(), "");
        if near.is_empty() {
            let all: Vec<&str> = names.collect();
            return format!("; of Kafka's settings these can be given: {}", all.join(", "));
        }
        return near;
    }
    let prefix = if section.is_empty() {
        String::new()
    } else {
        format!("{section}.")
    };
    let near = meant(word, names_in(section), &prefix);
    if !near.is_empty() {
        return near;
    }
    if settings::find(word).is_some() {
        return format!("; Kafka's settings stand under `{SETTINGS_SECTION}:`");
    }
    match keys::KEYS.iter().find(|key| key.name.rsplit('.').next() == Some(word)) {
        Some(elsewhere) => format!("; did you mean {}?", elsewhere.name),
        None => format!("; here can stand: {}", names_in(section).join(", ")),
    }
}

fn meant<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>, prefix: &str) -> String {
    nearest(word, candidates).map_or_else(String::new, |near| format!("; did you mean {prefix}{near}?"))
}

/// Kubernetes gives every pod such variables for each service, and a service may well be called `convoke`.
fn is_service_variable(name: &str) -> bool {
    name.contains("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || name.ends_with("_PORT")
        || name.contains("_PORT_")
}
