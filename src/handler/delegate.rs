//! The rules of `groups.delegate`.

use std::collections::BTreeSet;
use std::sync::Arc;

/// Which groups stay with the upstream's own coordinator, by name.
#[derive(Debug, Clone, Default)]
pub struct DelegateRules {
    rules: Arc<Rules>,
}

#[derive(Debug, Default)]
struct Rules {
    names: BTreeSet<String>,
    prefixes: Vec<String>,
}

impl DelegateRules {
    /// Names, or prefixes that end in `*`.
    #[must_use]
    pub fn new(patterns: &[String]) -> Self {
        let mut rules = Rules::default();
        for pattern in patterns {
            match pattern.strip_suffix('*') {
                Some(prefix) => rules.prefixes.push(prefix.to_owned()),
                None => {
                    rules.names.insert(pattern.clone());
                }
            }
        }
        Self { rules: Arc::new(rules) }
    }

    /// Whether the group stays with the upstream.
    #[must_use]
    pub fn delegates(&self, group_id: &str) -> bool {
        let is_prefix = |prefix: &String| group_id.starts_with(prefix.as_str());
        self.rules.names.contains(group_id) || self.rules.prefixes.iter().any(is_prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_whole_and_stars_match_prefixes() {
        let rules = DelegateRules::new(&["legacy".to_owned(), "connect-*".to_owned()]);
        assert!(rules.delegates("legacy"));
        assert!(!rules.delegates("legacy-2"));
        assert!(rules.delegates("connect-sink"));
        assert!(!rules.delegates("connect"));
        assert!(!DelegateRules::default().delegates(""));
        assert!(DelegateRules::new(&["*".to_owned()]).delegates(""));
    }
}
