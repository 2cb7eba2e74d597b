//! One name on both sides for the ids that each side gives: members by who they are, groups by their number.

use std::collections::BTreeMap;

/// The length of a UUID as text.
const UUID_LEN: usize = 36;
/// The length of a UUID as Kafka writes it.
const KAFKA_UUID_LEN: usize = 22;

/// Letters that no name of a topic or file may have so many of.
const LONG: usize = 300;

/// The names of one side.
#[derive(Debug)]
pub struct Names {
    /// What begins each group id of the conversation on this side.
    groups: String,
    members: BTreeMap<String, String>,
    /// How many ids each actor had.
    given: BTreeMap<usize, usize>,
}

impl Names {
    pub fn new(groups: String) -> Self {
        Self {
            groups,
            members: BTreeMap::new(),
            given: BTreeMap::new(),
        }
    }

    /// The id of a group: a plain one, one with letters that names of topics may not have, or one longer than those may be.
    pub fn group(&self, number: usize) -> String {
        match number {
            1 => format!("{}g1 \u{fc}\u{1f600}/.", self.groups),
            2 => format!("{}g2{}", self.groups, "-".repeat(LONG)),
            _ => format!("{}g{number}", self.groups),
        }
    }

    pub fn is_own_group(&self, group_id: &str) -> bool {
        group_id.starts_with(&self.groups)
    }

    /// Names the id that an answer gave an actor, if it has none and was not made up here.
    pub fn give(&mut self, actor: usize, id: &str) {
        if !is_given(id) || self.members.contains_key(id) {
            return;
        }
        let count = self.given.entry(actor).or_default();
        *count += 1;
        self.members.insert(id.to_owned(), format!("<id {count} of {actor}>"));
    }

    /// What a member is called; an id that no answer gave so far is called by what it begins with.
    pub fn member(&self, id: &str) -> String {
        if let Some(name) = self.members.get(id) {
            return name.clone();
        }
        match id.len().checked_sub(UUID_LEN).and_then(|at| id.split_at_checked(at)) {
            Some((begin, uuid)) if is_uuid(uuid) => format!("<id {begin}…>"),
            _ if is_given(id) => "<id>".to_owned(),
            _ => id.to_owned(),
        }
    }

    /// A text, such as a message, in which ids stand.
    pub fn text(&self, text: &str) -> String {
        let mut text = text.replace(&self.groups, "");
        for (id, name) in &self.members {
            text = text.replace(id.as_str(), name);
        }
        // An id that was made for a request that was then refused is only in the message that says why.
        let words = text.split(' ').map(|word| if is_given(word) { "<id>" } else { word });
        words.collect::<Vec<_>>().join(" ")
    }
}

/// Whether a coordinator made this id: all of them end with a UUID in one form or the other.
fn is_given(id: &str) -> bool {
    let ends_with_uuid = id
        .len()
        .checked_sub(UUID_LEN)
        .and_then(|at| id.get(at..))
        .is_some_and(is_uuid);
    let is_kafkas = |id: &str| {
        let letters = id.bytes();
        id.len() == KAFKA_UUID_LEN
            && letters
                .into_iter()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    ends_with_uuid || is_kafkas(id)
}

fn is_uuid(text: &str) -> bool {
    text.len() == UUID_LEN && uuid::Uuid::try_parse(text).is_ok()
}
