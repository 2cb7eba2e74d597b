//! Between kafka-protocol's types, whose strings are slices of the frame, and the coordinator's, which own theirs.

use std::sync::Arc;

use kafka_protocol::protocol::StrBytes;

use crate::coordinator::request::Text;

/// A copy that does not keep the frame alive.
pub(super) fn text(wire: &StrBytes) -> Text {
    Arc::from(wire.as_str())
}

/// A copy of an optional string that does not keep the frame alive.
pub(super) fn optional_text(wire: Option<&StrBytes>) -> Option<Text> {
    wire.map(text)
}

/// A string for the wire.
pub(super) fn wire(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

/// An optional string for the wire.
pub(super) fn optional_wire(text: Option<&Text>) -> Option<StrBytes> {
    text.map(|text| wire(text))
}
