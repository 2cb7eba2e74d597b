//! Keys whose values are lists of rules, each a section with keys of its own; in the environment and in flags, the same list in YAML.

use std::cell::Cell;
use std::collections::BTreeMap;

use super::document::{self, Entry, Mark, Node, Value};
use super::keys::{Field, nearest};
use super::layers::{Given, Item};
use super::load::Reader;
use super::problem::{Place, Problem};

/// So many values of a list of rules know their place; each costs a reading of the file.
const LOCATED_MAX: usize = 100;

/// One rule of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) place: Place,
    /// What was given of its keys.
    pub(super) fields: BTreeMap<&'static str, Given>,
}

impl Rule {
    /// As `convoke check` shows it.
    pub(super) fn shown(&self) -> String {
        let fields = self.fields.iter().map(|(name, given)| {
            let items: Vec<&str> = given.items.iter().map(|item| item.text.as_str()).collect();
            format!("{name}: {}", items.join(" "))
        });
        format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
    }
}

/// Reads a list of rules. A key of a rule that has no value counts as not given.
pub(super) struct RuleReader<'a> {
    key: &'a str,
    fields: &'static [Field],
    locate: &'a dyn Fn(Mark) -> Place,
    /// Where what is not located stands.
    place: Place,
    located: Cell<usize>,
    /// What is wrong: where, with which key, and how.
    pub(super) problems: Vec<(Mark, String, String)>,
}

impl<'a> RuleReader<'a> {
    pub(super) fn new(key: &'a str, fields: &'static [Field], place: Place, locate: &'a dyn Fn(Mark) -> Place) -> Self {
        Self {
            key,
            fields,
            locate,
            place,
            located: Cell::new(0),
            problems: Vec::new(),
        }
    }

    pub(super) fn read(&mut self, node: &Node) -> Vec<Rule> {
        match &node.value {
            Value::Null => Vec::new(),
            Value::List(nodes) => nodes.iter().filter_map(|node| self.rule(node)).collect(),
            other => {
                self.wrong(node.mark, self.key.to_owned(), "a list of rules", other);
                Vec::new()
            }
        }
    }

    fn rule(&mut self, node: &Node) -> Option<Rule> {
        let Value::Map(entries) = &node.value else {
            self.wrong(
                node.mark,
                self.key.to_owned(),
                "a rule, which is a section with keys",
                &node.value,
            );
            return None;
        };
        let mut fields = BTreeMap::new();
        for entry in entries {
            self.field(entry, &mut fields);
        }
        let place = self.place(node.mark);
        Some(Rule { place, fields })
    }

    fn field(&mut self, entry: &Entry, fields: &mut BTreeMap<&'static str, Given>) {
        let key = format!("{}.{}", self.key, entry.key);
        let Some(field) = self.fields.iter().find(|field| field.name == entry.key) else {
            let names = self.fields.iter().map(|field| field.name);
            let near = nearest(&entry.key, names.clone()).map(|near| format!("did you mean {near}?"));
            let near = near.unwrap_or_else(|| format!("a rule has: {}", names.collect::<Vec<_>>().join(", ")));
            return self
                .problems
                .push((entry.key_mark, key, format!("unknown key; {near}")));
        };
        if fields.contains_key(field.name) {
            return self
                .problems
                .push((entry.key_mark, key, "given twice in one rule".to_owned()));
        }
        let items = match &entry.value.value {
            Value::Null => return,
            Value::Scalar(text) => vec![self.item(text, entry.value.mark)],
            Value::List(nodes) if field.list && nodes.is_empty() => {
                let message = "an empty list; give at least one, for all `*`".to_owned();
                self.problems.push((entry.value.mark, key, message));
                Vec::new()
            }
            Value::List(nodes) if field.list => nodes.iter().filter_map(|node| self.listed(&key, node)).collect(),
            other => {
                let expected = if field.list { "a list" } else { "a single value" };
                self.wrong(entry.value.mark, key, expected, other);
                Vec::new()
            }
        };
        let place = self.place(entry.value.mark);
        fields.insert(
            field.name,
            Given {
                place,
                items,
                rules: Vec::new(),
            },
        );
    }

    fn listed(&mut self, key: &str, node: &Node) -> Option<Item> {
        if let Value::Scalar(text) = &node.value {
            return Some(self.item(text, node.mark));
        }
        self.wrong(node.mark, key.to_owned(), "a single value in the list", &node.value);
        None
    }

    fn item(&self, text: &str, mark: Mark) -> Item {
        Item {
            text: text.trim().to_owned(),
            place: self.place(mark),
        }
    }

    fn wrong(&mut self, mark: Mark, key: String, expected: &str, found: &Value) {
        let message = format!("expected {expected}, found {}", found.kind());
        self.problems.push((mark, key, message));
    }

    fn place(&self, mark: Mark) -> Place {
        self.located.set(self.located.get() + 1);
        match self.located.get() <= LOCATED_MAX {
            true => (self.locate)(mark),
            false => self.place.clone(),
        }
    }
}

/// The rules of a text that an environment variable or a flag holds, and what is wrong with it.
pub(super) fn read_text(key: &str, fields: &'static [Field], text: &str, place: &Place) -> (Vec<Rule>, Vec<Problem>) {
    let problem = |key: String, message: String| Problem {
        place: place.clone(),
        key,
        message,
    };
    match document::parse(text) {
        Ok(root) => {
            let locate = |_: Mark| place.clone();
            let mut reader = RuleReader::new(key, fields, place.clone(), &locate);
            let rules = reader.read(&root);
            let problems = reader.problems.into_iter();
            (rules, problems.map(|(_, key, message)| problem(key, message)).collect())
        }
        Err(error) => {
            let message = format!("{}; a list of rules is written here as in the file", error.message);
            (Vec::new(), vec![problem(key.to_owned(), message)])
        }
    }
}

impl Reader {
    pub(super) fn rules(&self, key: &str) -> Vec<Rule> {
        let given = self.layers.given.get(key);
        given.map(|given| given.rules.clone()).unwrap_or_default()
    }

    /// The groups that a rule is for.
    pub(super) fn rule_groups(&mut self, key: &str, rule: &Rule) -> Vec<String> {
        let Some(given) = rule.fields.get("groups") else {
            return Vec::new();
        };
        let key = format!("{key}.groups");
        let groups = given
            .items
            .iter()
            .filter_map(|item| self.item(&key, item, named_groups));
        groups.collect()
    }
}

/// No group that a rule could be for has an empty name.
fn named_groups(text: &str) -> Result<String, String> {
    match text.is_empty() {
        true => Err("it is empty; give a group's name, or `*` for all groups".to_owned()),
        false => group_pattern(text),
    }
}

/// A group's name, or the beginning of names.
pub(super) fn group_pattern(text: &str) -> Result<String, String> {
    match text.find('*') {
        Some(star) if star + 1 < text.len() => Err(format!(
            "`{text}` is no rule: a group's name, or the beginning of names with one * at its end"
        )),
        _ => Ok(text.to_owned()),
    }
}
