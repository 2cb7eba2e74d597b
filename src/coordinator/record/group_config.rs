//! The record of a group's own settings, which are kept here where the upstream is too old to have them. Kafka has no such
//! record: there they are the controller's.

use bytes::Bytes;

use super::RecordError;
use super::codec::{Form, Problem, Reader, Writer};
use crate::coordinator::group_config::{GroupConfig, GroupSetting};

/// What a group was given for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupConfigValue {
    pub config: GroupConfig,
}

impl GroupConfigValue {
    /// Flexible, so that fields can be added as tags; each setting by its name, so that there can be more of them.
    pub(super) fn to_bytes(self) -> Bytes {
        let set = GroupSetting::ALL
            .into_iter()
            .filter_map(|setting| Some((setting, self.config.get(setting)?)));
        let set: Vec<_> = set.collect();
        let mut out = Writer::new(0, 128);
        out.flexible_length(set.len());
        for (setting, value) in set {
            out.flexible_text(setting.name());
            out.int32(value);
            out.no_tagged_fields();
        }
        out.no_tagged_fields();
        out.finish()
    }

    /// Settings that are not known here are left out: a newer Convoke has written them.
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, RecordError> {
        let mut value = Reader::new("GroupConfigValue", bytes);
        let version = value.int16("version")?;
        if version != 0 {
            return Err(value.error("value", Problem::Version(version)));
        }
        let mut config = GroupConfig::default();
        for _ in 0..value.array_length("configs", Form::Flexible)? {
            let name = value.text("configs.name", Form::Flexible)?;
            let set = value.int32("configs.value")?;
            value.tagged_fields(|_, _| Ok(()))?;
            if let Some(setting) = GroupSetting::find(&name) {
                config.set(setting, Some(set));
            }
        }
        value.tagged_fields(|_, _| Ok(()))?;
        value.end()?;
        Ok(Self { config })
    }
}
