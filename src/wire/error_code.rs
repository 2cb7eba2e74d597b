//! Kafka's error codes.

/// An error code as it stands on the wire; codes that this build does not name survive as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ErrorCode(pub i16);

impl ErrorCode {
    pub const UNKNOWN_SERVER_ERROR: Self = Self(-1);
    pub const NONE: Self = Self(0);
    pub const UNKNOWN_TOPIC_OR_PARTITION: Self = Self(3);
    pub const LEADER_NOT_AVAILABLE: Self = Self(5);
    pub const NOT_LEADER_OR_FOLLOWER: Self = Self(6);
    pub const REQUEST_TIMED_OUT: Self = Self(7);
    pub const OFFSET_METADATA_TOO_LARGE: Self = Self(12);
    pub const COORDINATOR_LOAD_IN_PROGRESS: Self = Self(14);
    pub const COORDINATOR_NOT_AVAILABLE: Self = Self(15);
    pub const NOT_COORDINATOR: Self = Self(16);
    pub const INVALID_TOPIC_EXCEPTION: Self = Self(17);
    pub const ILLEGAL_GENERATION: Self = Self(22);
    pub const INCONSISTENT_GROUP_PROTOCOL: Self = Self(23);
    pub const INVALID_GROUP_ID: Self = Self(24);
    pub const UNKNOWN_MEMBER_ID: Self = Self(25);
    pub const INVALID_SESSION_TIMEOUT: Self = Self(26);
    pub const REBALANCE_IN_PROGRESS: Self = Self(27);
    pub const TOPIC_AUTHORIZATION_FAILED: Self = Self(29);
    pub const GROUP_AUTHORIZATION_FAILED: Self = Self(30);
    pub const CLUSTER_AUTHORIZATION_FAILED: Self = Self(31);
    pub const ILLEGAL_SASL_STATE: Self = Self(34);
    pub const UNSUPPORTED_VERSION: Self = Self(35);
    pub const INVALID_CONFIG: Self = Self(40);
    pub const INVALID_REQUEST: Self = Self(42);
    pub const POLICY_VIOLATION: Self = Self(44);
    pub const NON_EMPTY_GROUP: Self = Self(68);
    pub const GROUP_ID_NOT_FOUND: Self = Self(69);
    pub const MEMBER_ID_REQUIRED: Self = Self(79);
    pub const GROUP_MAX_SIZE_REACHED: Self = Self(81);
    pub const FENCED_INSTANCE_ID: Self = Self(82);
    pub const GROUP_SUBSCRIBED_TO_TOPIC: Self = Self(86);
    pub const UNSTABLE_OFFSET_COMMIT: Self = Self(88);
    pub const UNKNOWN_TOPIC_ID: Self = Self(100);
    pub const FENCED_MEMBER_EPOCH: Self = Self(110);
    pub const UNRELEASED_INSTANCE_ID: Self = Self(111);
    pub const UNSUPPORTED_ASSIGNOR: Self = Self(112);
    pub const STALE_MEMBER_EPOCH: Self = Self(113);
    pub const INVALID_REGULAR_EXPRESSION: Self = Self(128);
    pub const REBOOTSTRAP_REQUIRED: Self = Self(129);
    /// Ours: KIP-848's dropped half names it and never numbered it. Far from Kafka's own numbers.
    pub const INVALID_ASSIGNMENT: Self = Self(20_848);

    /// Whether this is NONE.
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }
}

/// Kafka's name, such as `NOT_COORDINATOR`; the number where kafka-protocol has no name for it.
impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use kafka_protocol::ResponseError;
        if *self == Self::INVALID_ASSIGNMENT {
            return f.write_str("INVALID_ASSIGNMENT");
        }
        match ResponseError::try_from_code(self.0) {
            None => f.write_str("NONE"),
            Some(ResponseError::Unknown(code)) => write!(f, "{code}"),
            Some(error) => f.write_str(&screaming_snake(&format!("{error:?}"))),
        }
    }
}

fn screaming_snake(camel: &str) -> String {
    let mut out = String::with_capacity(camel.len() + 8);
    for (index, letter) in camel.chars().enumerate() {
        if letter.is_ascii_uppercase() && index > 0 {
            out.push('_');
        }
        out.push(letter.to_ascii_uppercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_print_as_kafka_names_them() {
        assert_eq!(ErrorCode::NOT_COORDINATOR.to_string(), "NOT_COORDINATOR");
        assert_eq!(ErrorCode::UNKNOWN_SERVER_ERROR.to_string(), "UNKNOWN_SERVER_ERROR");
        assert_eq!(ErrorCode::NONE.to_string(), "NONE");
        assert_eq!(ErrorCode::INVALID_ASSIGNMENT.to_string(), "INVALID_ASSIGNMENT");
        assert_eq!(ErrorCode(159).to_string(), "159");
        assert_eq!(ErrorCode(112).to_string(), "UNSUPPORTED_ASSIGNOR");
    }
}
