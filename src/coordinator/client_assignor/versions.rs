//! The versions of members' metadata (KIP-268): in a rolling upgrade only who reads all that there are may compute.

use crate::coordinator::request::ClientAssignor;

/// The lowest and the highest version that members have of their metadata for one assignor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::coordinator) struct Versions(Option<(i16, i16)>);

impl Versions {
    /// Members that do not list the assignor have no metadata for it.
    pub(in crate::coordinator) fn of<'a>(members: impl Iterator<Item = &'a [ClientAssignor]>, name: &str) -> Self {
        let listed = members.filter_map(|assignors| assignors.iter().find(|assignor| &*assignor.name == name));
        let versions = listed.map(|assignor| assignor.metadata_version);
        Self(versions.fold(None, |range, version| match range {
            None => Some((version, version)),
            Some((min, max)) => Some((min.min(version), max.max(version))),
        }))
    }

    /// Whether the assignor reads all of them.
    pub(in crate::coordinator) fn are_read_by(self, assignor: &ClientAssignor) -> bool {
        self.0
            .is_none_or(|(min, max)| assignor.minimum_version <= min && max <= assignor.maximum_version)
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
        let versions = Versions::of(members.iter().map(|assignors| &assignors[..]), "a");
        let reads = |range| versions.are_read_by(&listed("a", range, 0)[0]);
        assert!(reads((1, 2)) && reads((0, 5)));
        assert!(!reads((0, 1)) && !reads((2, 2)));
        let nobody = Versions::of(members.iter().map(|assignors| &assignors[..]), "c");
        assert!(nobody.are_read_by(&listed("c", (7, 7), 7)[0]));
    }
}
