//! New bytes in the place of old ones; what lies between is copied, and nothing at all is copied if nothing changes.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};

use super::bytes_cursor::{Cursor, Lengths, Malformed};
use super::{Addresses, RewriteError};
use crate::config::HostPort;

/// Bytes of the longest string that Kafka's classic encoding can carry.
const MAX_HOST: usize = i16::MAX as usize;

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

    /// The start of a replacement of `range`, which lies behind all earlier ones: what is put into the returned buffer takes its place.
    pub(super) fn replace(&mut self, range: Range<usize>) -> &mut BytesMut {
        if self.copied == 0 {
            self.out.reserve(self.source.len() + 64);
        }
        self.out.extend_from_slice(&self.source[self.copied..range.start]);
        self.copied = range.end;
        &mut self.out
    }

    /// Reads node id, host and port, which stand together in every answer that has them, and puts the advertised host and port in
    /// their place. No node (id below 0, as in per-key errors) gets Kafka's own "no address".
    pub(super) fn address(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Malformed> {
        let node_id = cursor.i32()?;
        let start = cursor.at();
        let host = cursor.string()?.ok_or_else(|| cursor.malformed("a host is null"))?;
        let port = cursor.i32()?;
        let range = start..cursor.at();
        let advertised = match u16::try_from(port) {
            _ if node_id < 0 => {
                if !host.is_empty() || port != -1 {
                    put_address(self.replace(range), cursor.lengths(), "", -1);
                }
                return Ok(());
            }
            Ok(port) => self.addresses.advertised(node_id).ok_or_else(|| HostPort {
                host: host.to_owned(),
                port,
            }),
            Err(_) => return Err(cursor.malformed("a port is out of range")),
        };
        match advertised {
            Ok(at) if at.host.len() > MAX_HOST => return Err(cursor.malformed("the advertised host is too long")),
            Ok(at) => put_address(self.replace(range), cursor.lengths(), &at.host, i32::from(at.port)),
            Err(upstream) => {
                self.unknown.insert(node_id, upstream);
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
    pub(super) fn finish(mut self, body: &Bytes) -> Result<Bytes, RewriteError> {
        if !self.unknown.is_empty() {
            return Err(RewriteError::UnknownNodes(
                std::mem::take(&mut self.unknown).into_iter().collect(),
            ));
        }
        if !self.changed() {
            return Ok(body.clone());
        }
        Ok(self.into_part().freeze())
    }
}

fn put_address(out: &mut BytesMut, lengths: Lengths, host: &str, port: i32) {
    match lengths {
        Lengths::Classic => out.put_u16(host.len() as u16),
        Lengths::Compact => put_unsigned_varint(out, host.len() + 1),
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
