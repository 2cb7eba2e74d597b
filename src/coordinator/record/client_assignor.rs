//! What client-side assignors add to the records of consumer groups: tagged fields of our own, which Kafka's readers skip.
//!
//! | record | tag | content |
//! |---|---|---|
//! | member (type 5) | 20848 | the assignors that the member can run, encoded as in its heartbeat |
//! | target (type 6) | 20848 | name of the client-side assignor that computed the target: compact string |
//! | | 20849 | its error: int8, left out when 0 |
//! | target member (type 7) | 20848 | version of the assigned metadata: int16, left out when 0 |
//! | | 20849 | the metadata: compact bytes, left out when empty |

use bytes::Bytes;

use super::RecordError;
use super::codec::{Form, Reader, Writer};
use crate::coordinator::request::{ClientAssignor, Text};

pub(super) const CLIENT_ASSIGNORS_TAG: u32 = 20_848;
pub(super) const ASSIGNOR_NAME_TAG: u32 = 20_848;
pub(super) const ASSIGNOR_ERROR_TAG: u32 = 20_849;
pub(super) const METADATA_VERSION_TAG: u32 = 20_848;
pub(super) const METADATA_TAG: u32 = 20_849;

pub(super) fn assignors_to_bytes(assignors: &[ClientAssignor]) -> Bytes {
    let mut out = Writer::headless();
    out.flexible_length(assignors.len());
    for assignor in assignors {
        out.flexible_text(&assignor.name);
        out.int16(assignor.minimum_version);
        out.int16(assignor.maximum_version);
        out.int8(assignor.reason);
        out.int16(assignor.metadata_version);
        out.flexible_bytes(&assignor.metadata);
        out.no_tagged_fields();
    }
    out.finish()
}

pub(super) fn assignors_from_bytes(message: &'static str, bytes: &[u8]) -> Result<Vec<ClientAssignor>, RecordError> {
    let mut value = Reader::new(message, bytes);
    let mut assignors = Vec::new();
    for _ in 0..value.array_length("clientAssignors", Form::Flexible)? {
        assignors.push(ClientAssignor {
            name: value.text("clientAssignors.name", Form::Flexible)?,
            minimum_version: value.int16("clientAssignors.minimumVersion")?,
            maximum_version: value.int16("clientAssignors.maximumVersion")?,
            reason: value.int8("clientAssignors.reason")?,
            metadata_version: value.int16("clientAssignors.metadataVersion")?,
            metadata: value.bytes("clientAssignors.metadataBytes", Form::Flexible)?,
        });
        value.tagged_fields(|_, _| Ok(()))?;
    }
    value.end()?;
    Ok(assignors)
}

/// The content of a tagged field that is one text.
pub(super) fn text_to_bytes(text: &str) -> Bytes {
    let mut out = Writer::headless();
    out.flexible_text(text);
    out.finish()
}

/// The content of a tagged field that is bytes.
pub(super) fn bytes_to_bytes(bytes: &[u8]) -> Bytes {
    let mut out = Writer::headless();
    out.flexible_bytes(bytes);
    out.finish()
}

/// Reads the content of a tagged field, all of which is to be one value.
pub(super) fn whole<'a, T>(
    message: &'static str,
    bytes: &'a [u8],
    read: impl FnOnce(&mut Reader<'a>) -> Result<T, RecordError>,
) -> Result<T, RecordError> {
    let mut content = Reader::new(message, bytes);
    let value = read(&mut content)?;
    content.end()?;
    Ok(value)
}

pub(super) fn name_from_bytes(message: &'static str, bytes: &[u8]) -> Result<Text, RecordError> {
    whole(message, bytes, |content| content.text("assignorName", Form::Flexible))
}
