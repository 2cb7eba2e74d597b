//! The upstream's topics as the coordinator sees them: one picture for the whole process, handed in, never asked for.

use std::collections::HashMap;

use uuid::Uuid;

use super::request::Text;

/// Topics by name and by id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Topics {
    pub by_name: HashMap<Text, Topic>,
    pub name_by_id: HashMap<Uuid, Text>,
}

impl Topics {
    /// Adds a topic, in place of one of the same name; gives that one if its id is another.
    pub fn insert(&mut self, topic: Topic) -> Option<Topic> {
        let id = topic.id;
        if !id.is_nil() {
            self.name_by_id.insert(id, topic.name.clone());
        }
        let old = self.by_name.insert(topic.name.clone(), topic);
        let old = old.filter(|old| old.id != id)?;
        self.name_by_id.remove(&old.id);
        Some(old)
    }

    /// Whether the upstream gives topics ids (KIP-516), without which consumer groups have no names for partitions.
    #[must_use]
    pub fn have_ids(&self) -> bool {
        self.by_name.is_empty() || !self.name_by_id.is_empty()
    }

    #[must_use]
    pub fn by_id(&self, id: &Uuid) -> Option<&Topic> {
        self.name_by_id.get(id).and_then(|name| self.by_name.get(name))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic {
    pub name: Text,
    /// Nil where the upstream has no topic ids.
    pub id: Uuid,
    pub partitions: i32,
    /// A hash of the racks that each partition has replicas in; 0 where no rack is known. It says the same after a restart,
    /// and changes with what a rack-aware client or assignor would decide by (KIP-1101).
    pub racks: u64,
}
