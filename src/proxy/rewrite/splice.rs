//! New bytes in the place of old ones; what lies between is copied, and nothing at all is copied if nothing changes.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};

use super::{Addresses, Malformed, RewriteError};
use crate::config::HostPort;
use crate::wire::reader::{ReadError, Reader};

/// A compact array without elements.
pub(super) const EMPTY_ARRAY: u8 = 1;

/// Bytes of the longest string that Kafka's classic encoding can carry.
const MAX_HOST: usize = i16::MAX as usize;
/// What stands for the port where there is no node.
const NO_PORT: i32 = -1;

/// The output of a rewrite, made from front to back.
pub(super) struct Splice<'a> {
    source: &'a [u8],
    addresses: &'a dyn Addresses,
    out: BytesMut,
    /// Source bytes before this are in `out`, or replaced.
    copied: usize,
    unknown: BTreeMap<i32, HostPort>,
}

impl<'a> Splice<'a> {
    pub(super) fn new(source: &'a [u8], addresses: &'a dyn Addresses) -> Self {
        Self {
            source,
            addresses,
            out: BytesMut::new(),
            copied: 0,
            unknown: BTreeMap::new(),
        }
    }

    /// Starts to replace `range`, which lies behind all earlier ones: what is put into the returned buffer takes its
    /// place.
    pub(super) fn replace(&mut self, range: Range<usize>) -> &mut BytesMut {
        if self.copied == 0 {
            self.out.reserve(self.source.len() + 64);
        }
        self.out.extend_from_slice(&self.source[self.copied..range.start]);
        self.copied = range.end;
        &mut self.out
    }

    /// Reads node id, host and port, which stand together in every answer that has them, and puts the advertised host
    /// and port in their place. No node (an id below 0, as in per-key errors) gets Kafka's own "no address".
    pub(super) fn address(&mut self, reader: &mut Reader<'_>, flexible: bool) -> Result<(), Malformed> {
        let node_id = reader.i32()?;
        let start = reader.position();
        let host = std::str::from_utf8(reader.string(flexible)?).map_err(|_| ReadError::NotUtf8)?;
        let port = reader.i32()?;
        let range = start..reader.position();
        if node_id < 0 {
            if !host.is_empty() || port != NO_PORT {
                put_address(self.replace(range), flexible, "", NO_PORT);
            }
            return Ok(());
        }
        let upstream = u16::try_from(port).map_err(|_| Malformed::Port(port))?;
        match self.addresses.advertised(node_id) {
            Some(at) if at.host.len() > MAX_HOST => return Err(Malformed::AdvertisedHost(node_id)),
            Some(at) => put_address(self.replace(range), flexible, &at.host, i32::from(at.port)),
            None => {
                let host = host.to_owned();
                self.unknown.insert(node_id, HostPort { host, port: upstream });
            }
        }
        Ok(())
    }

    /// Takes over the nodes without an address of a splice of a part of this one's source.
    pub(super) fn unknown_of(&mut self, part: &mut Splice<'_>) {
        self.unknown.append(&mut part.unknown);
    }

    pub(super) fn changed(&self) -> bool {
        self.copied > 0
    }

    /// The bytes of a part that was spliced on its own.
    pub(super) fn into_part(mut self) -> BytesMut {
        self.out.extend_from_slice(&self.source[self.copied..]);
        self.out
    }

    /// The whole output: `body`, which is the source, if nothing was replaced.
    pub(super) fn finish(self, body: &Bytes) -> Result<Bytes, RewriteError> {
        if !self.unknown.is_empty() {
            return Err(RewriteError::UnknownNodes(self.unknown.into_iter().collect()));
        }
        if !self.changed() {
            return Ok(body.clone());
        }
        Ok(self.into_part().freeze())
    }
}

fn put_address(out: &mut BytesMut, flexible: bool, host: &str, port: i32) {
    if flexible {
        put_unsigned_varint(out, host.len() + 1);
    } else {
        out.put_u16(host.len() as u16);
    }
    out.put_slice(host.as_bytes());
    out.put_i32(port);
}

/// A length of something that is in memory, so far below 2^32.
pub(super) fn put_unsigned_varint(out: &mut BytesMut, mut value: usize) {
    while value > 0x7f {
        out.put_u8((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.put_u8(value as u8);
}
