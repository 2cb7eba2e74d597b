//! The rules of `assignors`: names of client-side assignors, and the groups that may have, or always have, them.

use super::load::Reader;
use super::problem::Place;
use super::rules::Rule;
use crate::coordinator::assignor::{Assignor, ClassicAssignor};

const KEY: &str = "assignors";
/// As long as an assignor's name in a heartbeat may be, in bytes.
const NAME_MAX: usize = 249;
/// Each has metrics of its own.
const RULES_MAX: usize = 100;
/// Every group.
const ALL: &str = "*";

/// One rule of `assignors`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssignorConfig {
    pub name: String,
    /// Names, or prefixes that end in `*`.
    pub groups: Vec<String>,
    /// Whether these groups have it whatever their members ask for.
    pub always: bool,
}

impl Reader {
    /// Every rule, with all that is wrong with any of them.
    pub(super) fn assignors(&mut self) -> Vec<AssignorConfig> {
        let rules = self.rules(KEY);
        if let Some(rule) = rules.get(RULES_MAX) {
            let message = format!("more than {RULES_MAX} rules; use one name for several groups");
            self.problem(rule.place.clone(), KEY, message);
        }
        let before = self.problems.len();
        let mut all: Vec<(Place, AssignorConfig)> = Vec::new();
        for rule in rules.iter().take(RULES_MAX) {
            if self.is_enough(KEY, before) {
                break;
            }
            let groups = self.groups(rule);
            let always = self.always(rule);
            if let Some(name) = self.name(rule, &all) {
                let config = AssignorConfig { name, groups, always };
                self.is_used(rule, &config, &all);
                all.push((rule.place.clone(), config));
            }
        }
        all.into_iter().map(|(_, config)| config).collect()
    }

    fn name(&mut self, rule: &Rule, earlier: &[(Place, AssignorConfig)]) -> Option<String> {
        let key = format!("{KEY}.name");
        let Some(item) = rule.fields.get("name").and_then(|given| given.items.first()) else {
            let message = "missing; give the name by which members ask for the assignor";
            self.problem(rule.place.clone(), &key, message);
            return None;
        };
        let name = self.item(&key, item, assignor_name)?;
        if let Some((place, _)) = earlier.iter().find(|(_, rule)| rule.name == name) {
            let message = format!("`{name}` has a rule already ({place}); put all its groups there");
            self.problem(item.place.clone(), &key, message);
            return None;
        }
        Some(name)
    }

    /// Without the key every group.
    fn groups(&mut self, rule: &Rule) -> Vec<String> {
        match rule.fields.contains_key("groups") {
            true => self.rule_groups(KEY, rule),
            false => vec![ALL.to_owned()],
        }
    }

    fn always(&mut self, rule: &Rule) -> bool {
        let given = rule.fields.get("always").and_then(|given| given.items.first());
        let always = given.and_then(|item| {
            self.item(&format!("{KEY}.always"), item, |text| match text {
                "true" => Ok(true),
                "false" => Ok(false),
                _ => Err(format!("`{text}` is neither true nor false")),
            })
        });
        always.unwrap_or(false)
    }

    /// A rule that others come before in each of its groups would never matter.
    fn is_used(&mut self, rule: &Rule, config: &AssignorConfig, earlier: &[(Place, AssignorConfig)]) {
        let earlier = earlier
            .iter()
            .map(|(_, earlier)| earlier)
            .filter(|earlier| earlier.always);
        let covers = |other: &AssignorConfig, group: &str| other.groups.iter().any(|pattern| covers(pattern, group));
        let mut groups = config.groups.iter();
        let first = earlier.clone().next();
        if let Some(first) = first.filter(|_| config.always)
            && !config.groups.is_empty()
            && groups.all(|group| earlier.clone().any(|other| covers(other, group)))
        {
            let message = format!(
                "never used: earlier rules (such as that of {}) always have these groups",
                first.name
            );
            self.problem(rule.place.clone(), &format!("{KEY}.always"), message);
        }
    }
}

/// Whether all groups that the second pattern means are among those of the first.
pub(super) fn covers(pattern: &str, other: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => other.strip_suffix('*').unwrap_or(other).starts_with(prefix),
        None => pattern == other,
    }
}

/// A name by which members may ask for an assignor that is not ours, or why it is none.
pub(crate) fn assignor_name(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("it is empty; give the name by which members ask for the assignor".to_owned());
    }
    if text.len() > NAME_MAX {
        return Err(format!("it has {} bytes, at most {NAME_MAX} are allowed", text.len()));
    }
    if Assignor::by_name(text).is_some() || ClassicAssignor::by_name(text).is_some() {
        return Err(format!(
            "`{text}` is an assignor that Convoke has itself; give yours another name"
        ));
    }
    Ok(text.to_owned())
}
