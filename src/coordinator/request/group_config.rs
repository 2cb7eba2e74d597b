//! Requests about what single groups are given for themselves.

use std::ops::RangeInclusive;

use super::Text;
use crate::coordinator::group_config::{GroupConfig, GroupSetting};

/// What one group is given for itself, where that is kept here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlterGroupConfigRequest {
    pub group_id: Text,
    /// The new values, each at least its setting's least; `None` takes a setting away.
    pub changes: Vec<(GroupSetting, Option<i32>)>,
    /// Whether whatever is not named is taken away.
    pub replaces: bool,
    /// Whether it is only looked at.
    pub validate_only: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlterGroupConfigResponse {
    Done,
    /// The group would have a value that the broker's settings do not allow: nothing was changed.
    OutOfBounds {
        setting: GroupSetting,
        bounds: RangeInclusive<i32>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DescribeGroupConfigResponse {
    pub own: GroupConfig,
    /// What the group has where it has nothing of its own; `None` where nobody has set any.
    pub of_brokers: GroupConfig,
}
