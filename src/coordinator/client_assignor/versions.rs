//! The versions of members' metadata (KIP-268): in a rolling upgrade only who reads all that there are may compute.

use std::collections::BTreeMap;

use crate::coordinator::request::{ClientAssignor, Text};

/// How many members list an assignor with metadata of a version. Who does not list it has no metadata for it.
#[derive(Debug, Default)]
pub(in crate::coordinator) struct Versions {
    by_assignor: BTreeMap<Text, BTreeMap<i16, usize>>,
}

impl Versions {
    /// Takes in what a member lists.
    pub(in crate::coordinator) fn add(&mut self, listed: &[ClientAssignor]) {
        for assignor in listed {
            let versions = self.by_assignor.entry(assignor.name.clone()).or_default();
            *versions.entry(assignor.metadata_version).or_default() += 1;
        }
    }

    /// A member no longer lists what it did.
    pub(in crate::coordinator) fn subtract(&mut self, listed: &[ClientAssignor]) {
        for assignor in listed {
            let Some(versions) = self.by_assignor.get_mut(&assignor.name) else {
                continue;
            };
            if let Some(count) = versions.get_mut(&assignor.metadata_version) {
                *count -= 1;
                versions.retain(|_, count| *count > 0);
            }
            if versions.is_empty() {
                self.by_assignor.remove(&assignor.name);
            }
        }
    }

    /// Whether this one, of a member or not, reads all that members have for an assignor of its name.
    pub(in crate::coordinator) fn are_read_by(&self, assignor: &ClientAssignor) -> bool {
        let reads = |version: &i16| (assignor.minimum_version..=assignor.maximum_version).contains(version);
        let versions = self.by_assignor.get(&assignor.name);
        versions.is_none_or(|versions| versions.keys().all(reads))
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn listed(name: &str, range: (i16, i16), metadata_version: i16) -> Vec<ClientAssignor> {
        vec![ClientAssignor {
            name: name.into(),
            minimum_version: range.0,
            maximum_version: range.1,
            reason: 0,
            metadata_version,
            metadata: Bytes::new(),
        }]
    }

    #[test]
    fn only_who_reads_every_version_that_there_is_may_compute() {
        let members = [
            listed("a", (0, 1), 1),
            listed("a", (1, 2), 2),
            listed("b", (9, 9), 9),
            vec![],
        ];
        let mut versions = Versions::default();
        members.iter().for_each(|listed| versions.add(listed));
        let reads = |versions: &Versions, range| versions.are_read_by(&listed("a", range, 0)[0]);
        assert!(reads(&versions, (1, 2)) && reads(&versions, (0, 5)));
        assert!(!reads(&versions, (0, 1)) && !reads(&versions, (2, 2)));
        assert!(versions.are_read_by(&listed("c", (7, 7), 7)[0]), "nobody lists it");
        versions.add(&members[0]);
        versions.subtract(&members[0]);
        assert!(!reads(&versions, (2, 2)), "one still has the first");
        versions.subtract(&members[0]);
        assert!(reads(&versions, (2, 2)));
        members[1..].iter().for_each(|listed| versions.subtract(listed));
        assert!(versions.by_assignor.is_empty());
    }
}
