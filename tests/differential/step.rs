//! What is said in a conversation, in words that mean the same on both sides: "the id that I was given", not the id itself.

use convoke::wire::api;

/// One request.
#[derive(Debug, Clone)]
pub struct Step {
    /// Whose ids and generations it speaks of.
    pub actor: usize,
    /// The connection that it goes out on; each actor has one of its own number.
    pub lane: usize,
    pub group: Group,
    pub version: i16,
    pub ask: Ask,
}

impl Step {
    /// The numbers of the groups that it is about.
    pub fn groups(&self) -> Vec<usize> {
        let several: &[Group] = match &self.ask {
            Ask::Fetch { groups, .. }
            | Ask::Describe { groups, .. }
            | Ask::Delete { groups }
            | Ask::Find { groups, .. }
            | Ask::DescribeConsumers { groups, .. } => groups,
            _ => &[],
        };
        let all = several.iter().chain([&self.group]);
        all.filter_map(|group| match group {
            Group::Known(number) => Some(*number),
            Group::Nameless => None,
        })
        .collect()
    }

    /// Whether it makes a group of the empty id, which is not the conversation's alone.
    pub fn commits_namelessly(&self) -> bool {
        self.group == Group::Nameless && matches!(self.ask, Ask::Commit { .. })
    }

    /// Who the coordinator is told to be speaking. Ids that coordinators make begin with it; each join that asks for one has
    /// another, so that these ids have the same order on both sides, which decides what the range assignor gives their members.
    pub fn client_id(&self, number: usize) -> String {
        match self.ask {
            Ask::Join { id: Id::Empty, .. } => format!("client-{}-{number:03}", self.actor),
            _ => format!("client-{}", self.actor),
        }
    }
}

/// A group of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    Known(usize),
    /// The empty id.
    Nameless,
}

/// A member id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Id {
    /// What the coordinator gave the actor last, or what it chose; empty before that.
    Own,
    /// What it had before that.
    Former,
    /// One that the actor makes up, always the same.
    Chosen,
    /// Another one that it makes up.
    ChosenAnew,
    Empty,
    /// Of nobody.
    Stranger,
    /// Another actor's own.
    Of(usize),
}

/// An instance id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instance {
    None,
    Own,
    Of(usize),
    Stranger,
    Empty,
}

/// A generation or a member epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Round {
    /// What the actor was told last.
    Own,
    Next,
    /// The one before the last.
    Former,
    Exactly(i32),
}

/// Partitions that a member says it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owned {
    Unsaid,
    Nothing,
    /// What it was told to have.
    Told,
    /// One fewer than that.
    Fewer,
    /// One more than that.
    More,
    /// What another actor was told to have.
    Of(usize),
}

/// What a classic member says under the name of a protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Metadata {
    Subscription {
        version: i16,
        topics: Vec<&'static str>,
        owned: Owned,
    },
    Bytes(&'static [u8]),
}

/// What a sync says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assign {
    Nothing,
    /// As a leader: partitions for the members that the join named.
    Partitions,
    /// The same with something in it that only the group's own assignor understands.
    UserData,
    /// The same without the last member, and with one that is not in the group.
    Strangers,
    /// Bytes that are no assignment.
    Garbage,
}

/// The protocol that a sync says it knows of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    Right,
    WrongType,
    WrongName,
    Missing,
}

/// An offset to commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offset {
    pub partition: i32,
    pub offset: i64,
    pub leader_epoch: i32,
    pub metadata: Note,
}

/// The metadata of an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Note {
    Null,
    Text(&'static str),
    /// Of this many letters.
    Long(usize),
    /// Of this many characters that Java counts twice.
    LongPairs(usize),
}

/// Topics with partitions.
pub type Named = Vec<(&'static str, Vec<i32>)>;

/// ConsumerGroupHeartbeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beat {
    pub id: Id,
    pub instance: Instance,
    pub epoch: Round,
    pub rack: Option<&'static str>,
    pub rebalance_ms: i32,
    pub topics: Option<Vec<&'static str>>,
    pub regex: Option<&'static str>,
    pub assignor: Option<&'static str>,
    pub owned: Owned,
}

/// What becomes of the conversation's own topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopicChange {
    /// It is there, with so many partitions.
    Created(i32),
    /// It has so many partitions instead of fewer.
    Grown(i32),
    Deleted,
}

impl TopicChange {
    /// The partitions that there are then.
    pub const fn partitions(self) -> i32 {
        match self {
            Self::Created(partitions) | Self::Grown(partitions) => partitions,
            Self::Deleted => 0,
        }
    }
}

/// Sessions that end while a script lasts, and not while a busy machine takes a step.
pub const SHORT_SESSION_MS: i32 = 4_000;

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    Join {
        id: Id,
        instance: Instance,
        session_ms: i32,
        rebalance_ms: i32,
        protocol_type: &'static str,
        protocols: Vec<(&'static str, Metadata)>,
    },
    Sync {
        id: Id,
        instance: Instance,
        generation: Round,
        protocol: Said,
        assign: Assign,
    },
    Heartbeat {
        id: Id,
        instance: Instance,
        generation: Round,
    },
    Leave {
        members: Vec<(Id, Instance)>,
    },
    Commit {
        id: Id,
        instance: Instance,
        round: Round,
        retention_ms: i64,
        topics: Vec<(&'static str, Vec<Offset>)>,
    },
    Fetch {
        groups: Vec<Group>,
        member: Option<(Id, Round)>,
        topics: Option<Named>,
        stable: bool,
    },
    DeleteOffsets {
        topics: Named,
    },
    Describe {
        groups: Vec<Group>,
        operations: bool,
    },
    List {
        states: Vec<&'static str>,
        types: Vec<&'static str>,
    },
    Delete {
        groups: Vec<Group>,
    },
    Find {
        groups: Vec<Group>,
        key_type: i8,
    },
    Beat(Beat),
    DescribeConsumers {
        groups: Vec<Group>,
        operations: bool,
    },
    /// The conversation's own topic changes, for both sides, and both have heard of it.
    Topic(TopicChange),
    /// The group's consumers may be silent for [`SHORT_SESSION_MS`] only.
    ShortSessions,
    /// Nobody says anything for so long. Only where time itself is what is compared.
    Silence {
        ms: u64,
    },
}

impl Ask {
    /// The key of the API; none of what nobody says.
    pub const fn api_key(&self) -> Option<i16> {
        Some(match self {
            Self::Join { .. } => api::JOIN_GROUP,
            Self::Sync { .. } => api::SYNC_GROUP,
            Self::Heartbeat { .. } => api::HEARTBEAT,
            Self::Leave { .. } => api::LEAVE_GROUP,
            Self::Commit { .. } => api::OFFSET_COMMIT,
            Self::Fetch { .. } => api::OFFSET_FETCH,
            Self::DeleteOffsets { .. } => api::OFFSET_DELETE,
            Self::Describe { .. } => api::DESCRIBE_GROUPS,
            Self::List { .. } => api::LIST_GROUPS,
            Self::Delete { .. } => api::DELETE_GROUPS,
            Self::Find { .. } => api::FIND_COORDINATOR,
            Self::Beat(_) => api::CONSUMER_GROUP_HEARTBEAT,
            Self::DescribeConsumers { .. } => api::CONSUMER_GROUP_DESCRIBE,
            Self::Topic(_) | Self::ShortSessions | Self::Silence { .. } => return None,
        })
    }

    /// Whether the answer may have to wait for what others say.
    pub const fn may_park(&self) -> bool {
        matches!(self, Self::Join { .. } | Self::Sync { .. })
    }
}
