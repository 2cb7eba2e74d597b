//! Groups by name, as rules of the config choose them.

use std::collections::BTreeSet;
use std::sync::Arc;

/// Names of groups, and prefixes of names. A clone shares them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupPatterns {
    patterns: Arc<Patterns>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Patterns {
    names: BTreeSet<String>,
    prefixes: Vec<String>,
}

impl GroupPatterns {
    /// Names, or prefixes that end in `*`.
    #[must_use]
    pub fn new(patterns: &[String]) -> Self {
        let mut read = Patterns::default();
        for pattern in patterns {
            match pattern.strip_suffix('*') {
                Some(prefix) => read.prefixes.push(prefix.to_owned()),
                None => {
                    read.names.insert(pattern.clone());
                }
            }
        }
        Self {
            patterns: Arc::new(read),
        }
    }

    /// Whether this very prefix with a `*` at its end is among them.
    #[must_use]
    pub fn has_prefix(&self, pattern: &str) -> bool {
        let prefix = pattern.strip_suffix('*');
        prefix.is_some_and(|prefix| self.patterns.prefixes.iter().any(|known| known == prefix))
    }

    /// Whether a name is, or a prefix begins, the group's.
    #[must_use]
    pub fn matches(&self, group_id: &str) -> bool {
        let is_prefix = |prefix: &String| group_id.starts_with(prefix.as_str());
        self.patterns.names.contains(group_id) || self.patterns.prefixes.iter().any(is_prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_whole_and_stars_match_prefixes() {
        let patterns = GroupPatterns::new(&["legacy".to_owned(), "connect-*".to_owned()]);
        assert!(patterns.matches("legacy"));
        assert!(!patterns.matches("legacy-2"));
        assert!(patterns.matches("connect-sink"));
        assert!(!patterns.matches("connect"));
        assert!(
            patterns.has_prefix("connect-*") && !patterns.has_prefix("connect-s*") && !patterns.has_prefix("legacy")
        );
        assert!(!GroupPatterns::default().matches(""));
        assert!(GroupPatterns::new(&["*".to_owned()]).matches(""));
    }
}
