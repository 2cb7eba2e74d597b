//! The rules of `groups.assign`: classic groups that Convoke assigns for, and by what.

use std::collections::BTreeSet;

use super::AssignorConfig;
use super::assignors::covers;
use super::layers::Item;
use super::load::Reader;
use super::rules::Rule;
use crate::coordinator::assignor::ClassicAssignor;

const KEY: &str = "groups.assign";

/// One rule of `groups.assign`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssignConfig {
    /// Names, or prefixes that end in `*`.
    pub groups: Vec<String>,
    /// One of Convoke's own or one with a rule in `assignors`; `None`: the protocol that the members agree on.
    pub assignor: Option<String>,
    /// In the place of one with a rule in `assignors`; `None`: the protocol that the members agree on.
    pub fallback: Option<ClassicAssignor>,
}

impl Reader {
    /// Every rule, with all that is wrong with any of them.
    pub(super) fn assign(&mut self, assignors: &[AssignorConfig]) -> Vec<AssignConfig> {
        let mut all = Vec::new();
        let mut earlier = Meant::default();
        let before = self.problems.len();
        for rule in self.rules(KEY) {
            if self.is_enough(KEY, before) {
                break;
            }
            let groups = self.rule_groups(KEY, &rule);
            let key = format!("{KEY}.groups");
            match rule.fields.get("groups") {
                None => {
                    let message = "missing; give the groups that are meant, for all of them `groups: [\"*\"]`";
                    self.problem(rule.place.clone(), &key, message);
                }
                Some(given) if !groups.is_empty() && groups.iter().all(|group| earlier.have(group)) => {
                    let message = "never used: rules before this one mean all of its groups, and the first holds";
                    self.problem(given.place.clone(), &key, message);
                }
                Some(_) => {}
            }
            groups.iter().for_each(|group| earlier.add(group));
            let assignor = self.assignor(&rule, &groups, assignors);
            let fallback = self.fallback(&rule);
            all.push(AssignConfig {
                groups,
                assignor,
                fallback,
            });
        }
        all
    }

    /// A name that is not Convoke's own has to have a rule: a slip of the pen would otherwise be taken for an assignor that never comes.
    fn assignor(&mut self, rule: &Rule, groups: &[String], assignors: &[AssignorConfig]) -> Option<String> {
        let item = field(rule, "assignor")?;
        let key = format!("{KEY}.assignor");
        self.item(&key, item, |text| {
            if ClassicAssignor::by_name(text).is_some() {
                return Ok(text.to_owned());
            }
            let Some(external) = assignors.iter().find(|external| external.name == text) else {
                return Err(format!(
                    "`{text}` is no assignor of classic groups; those are {}, and the names that have a rule under assignors",
                    ClassicAssignor::NAMES.join(", ")
                ));
            };
            let is_covered = |group: &&String| external.groups.iter().any(|pattern| covers(pattern, group));
            match groups.iter().find(|group| !is_covered(group)) {
                None => Ok(text.to_owned()),
                Some(group) => Err(format!(
                    "the rule of `{text}` under assignors is not for `{group}`; put that into its groups"
                )),
            }
        })
    }

    fn fallback(&mut self, rule: &Rule) -> Option<ClassicAssignor> {
        let item = field(rule, "fallback")?;
        let is_external = field(rule, "assignor").is_some_and(|named| ClassicAssignor::by_name(&named.text).is_none());
        self.item(&format!("{KEY}.fallback"), item, |text| {
            if !is_external {
                return Err(
                    "it takes the place of an assignor of yours, and the rule's `assignor` names none".to_owned(),
                );
            }
            ClassicAssignor::by_name(text).ok_or_else(|| {
                let own = ClassicAssignor::NAMES.join(", ");
                format!("`{text}` is no assignor that Convoke has itself for classic groups; those are {own}")
            })
        })
    }
}

/// The groups that rules mean.
#[derive(Default)]
struct Meant {
    names: BTreeSet<String>,
    prefixes: BTreeSet<String>,
}

impl Meant {
    fn add(&mut self, pattern: &str) {
        match pattern.strip_suffix('*') {
            Some(prefix) => self.prefixes.insert(prefix.to_owned()),
            None => self.names.insert(pattern.to_owned()),
        };
    }

    /// Whether all groups of the pattern are among them.
    fn have(&self, pattern: &str) -> bool {
        let beginning = pattern.strip_suffix('*').unwrap_or(pattern);
        let mut beginnings = (0..=beginning.len()).filter_map(|end| beginning.get(..end));
        self.names.contains(pattern) || beginnings.any(|prefix| self.prefixes.contains(prefix))
    }
}

fn field<'a>(rule: &'a Rule, name: &str) -> Option<&'a Item> {
    rule.fields.get(name)?.items.first()
}
