//! The topics that a member is subscribed to by name. A group of many members has few different lists of them.

use std::cmp::Ordering;
use std::ops::Deref;
use std::sync::Arc;

use super::request::Text;

/// Names of topics, ordered, each once. A clone is the same list, which is told by its address before any name is looked at.
#[derive(Debug, Clone)]
pub struct TopicNames(Arc<[Text]>);

impl TopicNames {
    /// Whether it is the other list itself, or a clone of it.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Which list it is, as long as somebody keeps it; its clones have the same address.
    pub(super) fn address(&self) -> *const Text {
        self.0.as_ptr()
    }
}

impl From<Vec<Text>> for TopicNames {
    fn from(mut names: Vec<Text>) -> Self {
        names.sort_unstable();
        names.dedup();
        Self(names.into())
    }
}

impl Default for TopicNames {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl Deref for TopicNames {
    type Target = [Text];

    fn deref(&self) -> &[Text] {
        &self.0
    }
}

impl PartialEq for TopicNames {
    fn eq(&self, other: &Self) -> bool {
        self.is_same(other) || self.0 == other.0
    }
}

impl Eq for TopicNames {}

impl PartialOrd for TopicNames {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for TopicNames {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.is_same(other) {
            return Ordering::Equal;
        }
        // Lengths first: they differ more often than the beginnings do.
        (self.len(), &self.0).cmp(&(other.len(), &other.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_equal_by_their_names_and_the_same_by_their_origin() {
        let names = |names: &[&str]| TopicNames::from(names.iter().map(|name| Text::from(*name)).collect::<Vec<_>>());
        let list = names(&["b", "a", "b"]);
        assert_eq!(*list, ["a".into(), "b".into()]);
        let copy = list.clone();
        assert!(list.is_same(&copy) && list.address() == copy.address());
        let equal = names(&["a", "b"]);
        assert!(list == equal && !list.is_same(&equal) && list.cmp(&equal).is_eq());
        assert!(names(&["z"]) < list && list < names(&["a", "c"]));
    }
}
