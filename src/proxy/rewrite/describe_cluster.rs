//! DescribeCluster (API 60), versions 0 to 2: `Brokers[].{Host, Port}`.
//!
//! Asked for controllers (EndpointType 2), a broker answers MISMATCHED_ENDPOINT_TYPE without nodes, and that stays.
//! Controllers that are listed all the same are left out: no client reaches them through a listener of ours.

use bytes::{BufMut, Bytes};

use super::splice::{EMPTY_ARRAY, Splice};
use super::{Addresses, RewriteError};
use crate::wire::reader::Reader;

const CONTROLLERS: i8 = 2;

pub(super) fn rewrite(version: i16, body: Bytes, addresses: &dyn Addresses) -> Result<Bytes, RewriteError> {
    let mut reader = Reader::new(&body);
    let mut splice = Splice::new(&body, addresses);
    reader.skip(4 + 2)?; // ThrottleTimeMs, ErrorCode
    reader.nullable_string(true)?; // ErrorMessage
    let controllers = version >= 1 && reader.i8()? == CONTROLLERS;
    reader.nullable_string(true)?; // ClusterId
    reader.skip(4)?; // ControllerId
    let start = reader.position();
    let nodes = reader.array_len(true)?.unwrap_or(0);
    for _ in 0..nodes {
        if controllers {
            reader.skip(4)?; // BrokerId
            reader.nullable_string(true)?; // Host
            reader.skip(4)?; // Port
        } else {
            splice.address(&mut reader, true)?;
        }
        reader.nullable_string(true)?; // Rack
        if version >= 2 {
            reader.skip(1)?; // IsFenced
        }
        reader.skip_tagged_fields()?;
    }
    if controllers && nodes > 0 {
        splice.replace(start..reader.position()).put_u8(EMPTY_ARRAY);
    }
    splice.finish(&body)
}
