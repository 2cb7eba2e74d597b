//! The fields of the messages that are decoded here, in wire order: what the length guard walks.
//!
//! Tables are kept by hand; a test holds each against `tests/golden/message_schemas.txt`, which
//! kafka-clients 4.4.0 printed, for each version. Names are those of Kafka's own schemas. Messages and fields that are only
//! Convoke's are held against `tests/golden/assignment_messages.txt`.

mod answers;
mod assignment;
mod requests;
mod rewritten;

pub use answers::*;
pub use assignment::*;
pub use requests::*;
pub use rewritten::*;

/// One message.
#[derive(Debug)]
pub struct Schema {
    pub api_key: i16,
    /// As it stands in error messages, for instance "JoinGroup request".
    pub name: &'static str,
    pub min: i16,
    pub max: i16,
    /// The first version with compact lengths and tagged fields.
    pub flexible_since: i16,
    pub fields: &'static [Field],
}

impl Schema {
    /// Whether the table knows this version.
    #[must_use]
    pub const fn has_version(&self, version: i16) -> bool {
        self.min <= version && version <= self.max
    }

    /// Whether this version has compact lengths and tagged fields.
    #[must_use]
    pub const fn is_flexible(&self, version: i16) -> bool {
        version >= self.flexible_since
    }
}

/// Every table.
pub static ALL: &[&Schema] = &[
    &OFFSET_COMMIT_REQUEST,
    &OFFSET_FETCH_REQUEST,
    &FIND_COORDINATOR_REQUEST,
    &JOIN_GROUP_REQUEST,
    &HEARTBEAT_REQUEST,
    &LEAVE_GROUP_REQUEST,
    &SYNC_GROUP_REQUEST,
    &DESCRIBE_GROUPS_REQUEST,
    &LIST_GROUPS_REQUEST,
    &API_VERSIONS_REQUEST,
    &DESCRIBE_CONFIGS_REQUEST,
    &ALTER_CONFIGS_REQUEST,
    &DELETE_GROUPS_REQUEST,
    &INCREMENTAL_ALTER_CONFIGS_REQUEST,
    &OFFSET_DELETE_REQUEST,
    &CONSUMER_GROUP_HEARTBEAT_REQUEST,
    &CONSUMER_GROUP_DESCRIBE_REQUEST,
    &CONSUMER_GROUP_PREPARE_ASSIGNMENT_REQUEST,
    &CONSUMER_GROUP_INSTALL_ASSIGNMENT_REQUEST,
    &PRODUCE_RESPONSE,
    &FETCH_RESPONSE,
    &METADATA_RESPONSE,
    &LIST_OFFSETS_RESPONSE,
    &OFFSET_COMMIT_RESPONSE,
    &OFFSET_FETCH_RESPONSE,
    &FIND_COORDINATOR_RESPONSE,
    &DESCRIBE_GROUPS_RESPONSE,
    &LIST_GROUPS_RESPONSE,
    &SASL_HANDSHAKE_RESPONSE,
    &API_VERSIONS_RESPONSE,
    &DESCRIBE_CONFIGS_RESPONSE,
    &ALTER_CONFIGS_RESPONSE,
    &INCREMENTAL_ALTER_CONFIGS_RESPONSE,
    &LIST_CONFIG_RESOURCES_RESPONSE,
    &SASL_AUTHENTICATE_RESPONSE,
    &DELETE_GROUPS_RESPONSE,
    &CONSUMER_GROUP_HEARTBEAT_RESPONSE,
    &CONSUMER_GROUP_DESCRIBE_RESPONSE,
    &DESCRIBE_QUORUM_RESPONSE,
    &DESCRIBE_CLUSTER_RESPONSE,
    &SHARE_FETCH_RESPONSE,
    &SHARE_ACKNOWLEDGE_RESPONSE,
    &CONSUMER_GROUP_PREPARE_ASSIGNMENT_RESPONSE,
    &CONSUMER_GROUP_INSTALL_ASSIGNMENT_RESPONSE,
];

/// A version that never comes.
pub const NEVER: i16 = i16::MAX;

/// One field of a message or of an element.
#[derive(Debug)]
pub struct Field {
    pub name: &'static str,
    pub kind: Kind,
    /// The versions that have it.
    pub since: i16,
    pub until: i16,
    /// The first version in which it may be null.
    pub nullable_since: i16,
    /// Set for a tagged field.
    pub tag: Option<u32>,
}

/// What stands in a field.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    Boolean,
    Int8,
    Int16,
    Uint16,
    Int32,
    Int64,
    Uuid,
    String,
    Bytes,
    /// Record batches: bytes to all but those who read them.
    Records,
    /// An array of values without fields.
    Array(&'static Self),
    Structs(&'static [Field]),
    Struct(&'static [Field]),
}

impl Kind {
    /// The size of a value that always has the same.
    #[must_use]
    pub const fn fixed_size(self) -> Option<usize> {
        match self {
            Self::Boolean | Self::Int8 => Some(1),
            Self::Int16 | Self::Uint16 => Some(2),
            Self::Int32 => Some(4),
            Self::Int64 => Some(8),
            Self::Uuid => Some(16),
            Self::String | Self::Bytes | Self::Records | Self::Array(_) | Self::Structs(_) | Self::Struct(_) => None,
        }
    }
}

impl Field {
    /// Whether this version has the field.
    #[must_use]
    pub const fn is_in(&self, version: i16) -> bool {
        self.since <= version && version <= self.until
    }

    /// Whether it may be null in this version.
    #[must_use]
    pub const fn is_nullable(&self, version: i16) -> bool {
        version >= self.nullable_since
    }

    const fn since(self, version: i16) -> Self {
        Self { since: version, ..self }
    }

    const fn until(self, version: i16) -> Self {
        Self { until: version, ..self }
    }

    const fn nullable(self) -> Self {
        Self {
            nullable_since: self.since,
            ..self
        }
    }

    const fn nullable_since(self, version: i16) -> Self {
        Self {
            nullable_since: version,
            ..self
        }
    }

    const fn tag(self, tag: u32) -> Self {
        Self { tag: Some(tag), ..self }
    }
}

const fn field(name: &'static str, kind: Kind) -> Field {
    Field {
        name,
        kind,
        since: 0,
        until: NEVER,
        nullable_since: NEVER,
        tag: None,
    }
}

const fn boolean(name: &'static str) -> Field {
    field(name, Kind::Boolean)
}

const fn int8(name: &'static str) -> Field {
    field(name, Kind::Int8)
}

const fn int16(name: &'static str) -> Field {
    field(name, Kind::Int16)
}

const fn uint16(name: &'static str) -> Field {
    field(name, Kind::Uint16)
}

const fn int32(name: &'static str) -> Field {
    field(name, Kind::Int32)
}

const fn int64(name: &'static str) -> Field {
    field(name, Kind::Int64)
}

const fn uuid(name: &'static str) -> Field {
    field(name, Kind::Uuid)
}

const fn string(name: &'static str) -> Field {
    field(name, Kind::String)
}

const fn bytes(name: &'static str) -> Field {
    field(name, Kind::Bytes)
}

const fn records(name: &'static str) -> Field {
    field(name, Kind::Records)
}

const fn array(name: &'static str, element: &'static Kind) -> Field {
    field(name, Kind::Array(element))
}

const fn structs(name: &'static str, fields: &'static [Field]) -> Field {
    field(name, Kind::Structs(fields))
}

const fn structure(name: &'static str, fields: &'static [Field]) -> Field {
    field(name, Kind::Struct(fields))
}

#[cfg(test)]
mod tests;
