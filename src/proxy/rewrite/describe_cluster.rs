//! DescribeCluster (API 60), versions 0 to 2: `Brokers[].{Host, Port}`.
//!
//! Asked for controllers (EndpointType 2), a broker answers MISMATCHED_ENDPOINT_TYPE without nodes, and that stays. Controllers
//! that are listed all the same are left out: no client reaches them through a listener of ours.

use bytes::{BufMut, Bytes};

use super::bytes_cursor::{Cursor, EMPTY_ARRAY, Lengths};
use super::splice::Splice;
use super::{Addresses, RewriteError};

const CONTROLLERS: i8 = 2;

pub(super) fn rewrite(version: i16, body: Bytes, addresses: &dyn Addresses) -> Result<Bytes, RewriteError> {
    let mut cursor = Cursor::new(&body, Lengths::Compact);
    let mut splice = Splice::new(&body, addresses);
    cursor.skip(4 + 2)?; // ThrottleTimeMs, ErrorCode
    cursor.string()?; // ErrorMessage
    let controllers = version >= 1 && cursor.i8()? == CONTROLLERS;
    cursor.string()?; // ClusterId
    cursor.skip(4)?; // ControllerId
    let start = cursor.at();
    let nodes = cursor.array_len()?;
    for _ in 0..nodes {
        if controllers {
            cursor.skip(4)?; // BrokerId
            cursor.string()?; // Host
            cursor.skip(4)?; // Port
        } else {
            splice.address(&mut cursor)?;
        }
        cursor.string()?; // Rack
        if version >= 2 {
            cursor.skip(1)?; // IsFenced
        }
        cursor.skip_tags()?;
    }
    if controllers && nodes > 0 {
        splice.replace(start..cursor.at()).put_u8(EMPTY_ARRAY);
    }
    splice.finish(&body)
}
