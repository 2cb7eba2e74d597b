//! Which assignor computes a group's next target. In order:
//!
//! 1. the one that a rule of the config says it always is;
//! 2. one that every member supports: lists among its client assignors or asks for as its server assignor. Of several the one
//!    that most would rather have, each member voting for the first of them in its own order; ties go by name;
//! 3. as in Kafka, the name that most members ask for as their server assignor, be it a server assignor's or another's;
//! 4. the first of `group.consumer.assignors`.

use std::collections::BTreeMap;

use crate::coordinator::assignor::Assignor;
use crate::coordinator::request::{ClientAssignor, Text};

/// An assignor by where it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::coordinator) enum Choice {
    /// Here.
    Server(Text),
    /// At a member, or at an external assignor.
    Client(Text),
}

impl Choice {
    pub(in crate::coordinator) const fn name(&self) -> &Text {
        match self {
            Self::Server(name) | Self::Client(name) => name,
        }
    }
}

/// What a member would have.
#[derive(Debug, Clone, Copy)]
pub(in crate::coordinator) struct Voter<'a> {
    /// In its order of preference.
    pub(in crate::coordinator) assignors: &'a [ClientAssignor],
    /// After those.
    pub(in crate::coordinator) server_assignor: Option<&'a Text>,
}

impl<'a> Voter<'a> {
    /// In its order of preference; a name may come twice.
    fn names(self) -> impl Iterator<Item = &'a Text> {
        let listed = self.assignors.iter().map(|assignor| &assignor.name);
        listed.chain(self.server_assignor)
    }
}

/// What a group's members say, counted.
#[derive(Debug, Clone, Copy)]
pub(in crate::coordinator) struct Ballot<'a> {
    /// By a rule of the config.
    pub(in crate::coordinator) always: Option<&'a Text>,
    pub(in crate::coordinator) members: usize,
    /// How many members list an assignor or ask for it.
    pub(in crate::coordinator) supporters: &'a BTreeMap<Text, usize>,
    /// How many members ask for an assignor.
    pub(in crate::coordinator) asked_for: &'a BTreeMap<Text, usize>,
    /// `group.consumer.assignors`
    pub(in crate::coordinator) configured: &'a [Text],
}

impl<'a> Ballot<'a> {
    /// `voters` are looked at only if it takes a vote.
    pub(in crate::coordinator) fn choose(&self, voters: impl Iterator<Item = Voter<'a>>) -> Choice {
        if let Some(always) = self.always {
            return self.place(always).unwrap_or_else(|| self.fall_back());
        }
        let of_all = self.supporters.iter().filter(|(_, count)| **count == self.members);
        let common: Vec<&Text> = of_all.map(|(name, _)| name).collect();
        let preferred = match &common[..] {
            [] => None,
            [one] => Some(*one),
            several => vote(several, voters),
        };
        let placed = preferred.and_then(|name| self.place(name));
        placed
            .or_else(|| most(self.asked_for.iter()).and_then(|name| self.place(name)))
            .unwrap_or_else(|| self.fall_back())
    }

    /// The server assignor that takes the place of a client-side one.
    pub(in crate::coordinator) fn server_assignor(&self) -> Text {
        let here = self.asked_for.iter().filter(|(name, _)| self.configured.contains(name));
        most(here).cloned().unwrap_or_else(|| self.default_assignor())
    }

    fn default_assignor(&self) -> Text {
        let first = self.configured.first().cloned();
        first.unwrap_or_else(|| Assignor::Uniform.name().into())
    }

    fn fall_back(&self) -> Choice {
        Choice::Server(self.default_assignor())
    }

    /// Where the name is to be found; `None` for a server assignor that the config leaves out.
    fn place(&self, name: &Text) -> Option<Choice> {
        if self.configured.contains(name) {
            return Some(Choice::Server(name.clone()));
        }
        Assignor::by_name(name).is_none().then(|| Choice::Client(name.clone()))
    }
}

fn vote<'a>(common: &[&'a Text], voters: impl Iterator<Item = Voter<'a>>) -> Option<&'a Text> {
    let mut votes: BTreeMap<Text, usize> = BTreeMap::new();
    for voter in voters {
        if let Some(first) = voter.names().find(|name| common.contains(name)) {
            *votes.entry(first.clone()).or_default() += 1;
        }
    }
    let winner = most(votes.iter())?;
    common.iter().find(|name| **name == winner).copied()
}

/// The name with most votes; of equally many the first.
fn most<'a>(votes: impl DoubleEndedIterator<Item = (&'a Text, &'a usize)>) -> Option<&'a Text> {
    votes.rev().max_by_key(|(_, votes)| **votes).map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    /// What a member lists, and asks for.
    type Says = (&'static [&'static str], Option<&'static str>);

    fn choose(always: Option<&str>, members: &[Says], configured: &[&str]) -> (Choice, Text) {
        let said: Vec<(Vec<ClientAssignor>, Option<Text>)> = members
            .iter()
            .map(|(listed, server)| {
                let assignor = |name: &&str| ClientAssignor {
                    name: (*name).into(),
                    minimum_version: 0,
                    maximum_version: 0,
                    reason: 0,
                    metadata_version: 0,
                    metadata: Bytes::new(),
                };
                (listed.iter().map(assignor).collect(), server.map(Text::from))
            })
            .collect();
        let (mut supporters, mut asked_for) = (BTreeMap::new(), BTreeMap::new());
        for (listed, server) in &said {
            let mut names: Vec<&Text> = listed.iter().map(|assignor| &assignor.name).chain(server).collect();
            names.sort_unstable();
            names.dedup();
            for name in names {
                *supporters.entry(name.clone()).or_default() += 1;
            }
            if let Some(server) = server {
                *asked_for.entry(server.clone()).or_default() += 1;
            }
        }
        let always = always.map(Text::from);
        let configured: Vec<Text> = configured.iter().copied().map(Text::from).collect();
        let ballot = Ballot {
            always: always.as_ref(),
            members: said.len(),
            supporters: &supporters,
            asked_for: &asked_for,
            configured: &configured,
        };
        let voters = said.iter().map(|(assignors, server)| Voter {
            assignors,
            server_assignor: server.as_ref(),
        });
        (ballot.choose(voters), ballot.server_assignor())
    }

    const KAFKAS: [&str; 2] = ["uniform", "range"];

    #[test]
    fn the_choice_follows_the_table() {
        let server = |name: &str| Choice::Server(name.into());
        let client = |name: &str| Choice::Client(name.into());
        let table: [(Option<&str>, &[Says], Choice); 13] = [
            // Nobody says anything.
            (None, &[(&[], None), (&[], None)], server("uniform")),
            // Kafka's plurality, whose ties go by name.
            (None, &[(&[], Some("range")), (&[], None)], server("range")),
            (None, &[(&[], Some("uniform")), (&[], Some("range"))], server("range")),
            // Stock members that ask for another's.
            (None, &[(&[], Some("lag")), (&[], Some("lag"))], client("lag")),
            (None, &[(&[], Some("lag")), (&[], None), (&[], None)], client("lag")),
            // Listed by all, whatever most ask for.
            (None, &[(&["a"], Some("range")), (&["a"], Some("uniform"))], client("a")),
            // Listed by one and asked for by the other.
            (None, &[(&["a"], None), (&[], Some("a"))], client("a")),
            // Not by all: the plurality decides.
            (None, &[(&["a"], None), (&["b"], None)], server("uniform")),
            (None, &[(&["a"], None), (&[], Some("range"))], server("range")),
            // Of several common ones that which most put first; a tie goes by name.
            (
                None,
                &[(&["a", "b"], None), (&["b", "a"], None), (&["c", "b", "a"], None)],
                client("b"),
            ),
            (None, &[(&["b", "a"], None), (&["a", "b"], None)], client("a")),
            // A rule wins over all of them, also one that names a server assignor.
            (Some("lag"), &[(&["a"], Some("range"))], client("lag")),
            (Some("range"), &[(&["a"], None)], server("range")),
        ];
        for (number, (always, members, expected)) in table.into_iter().enumerate() {
            assert_eq!(choose(always, members, &KAFKAS).0, expected, "row {number}");
        }
    }

    #[test]
    fn a_server_assignor_that_is_not_configured_is_not_used() {
        let asks: Says = (&[], Some("range"));
        assert_eq!(
            choose(None, &[asks, asks], &["uniform"]).0,
            Choice::Server("uniform".into())
        );
        assert_eq!(choose(None, &[], &[]).0, Choice::Server("uniform".into()));
    }

    #[test]
    fn in_its_place_comes_the_server_assignor_that_most_ask_for() {
        let members: [Says; 3] = [(&[], Some("lag")), (&[], Some("lag")), (&[], Some("range"))];
        assert_eq!(
            choose(None, &members, &KAFKAS),
            (Choice::Client("lag".into()), "range".into())
        );
        assert_eq!(&*choose(None, &members[..2], &KAFKAS).1, "uniform");
    }
}
