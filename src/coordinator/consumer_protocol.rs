//! What classic consumers put into their metadata and assignments: `ConsumerProtocolSubscription` and
//! `ConsumerProtocolAssignment`, which are opaque to the classic protocol itself.
//!
//! The bytes come from clients: nothing is reserved by a length that they name. Of a version that is not known what the known
//! ones have in common is read, as Kafka does.

use bytes::{BufMut, Bytes, BytesMut};

use super::request::Text;

/// Partitions by topic name, as the bytes have them.
pub(super) type NamedPartitions = Vec<(Text, Vec<i32>)>;

/// What a classic consumer says of itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Subscription {
    pub(super) version: i16,
    pub(super) topics: Vec<Text>,
    /// v1+; nothing before.
    pub(super) owned: NamedPartitions,
    /// v3+.
    pub(super) rack_id: Option<Text>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Assignment {
    pub(super) partitions: NamedPartitions,
    /// Data of an assignor of the client's own.
    pub(super) has_user_data: bool,
}

/// The version and the topics' names, the front that a subscription of every version has. Each name is read before the next
/// is believed in.
pub(super) fn read_topics<'a>(rest: &mut &'a [u8]) -> Option<(i16, Vec<&'a [u8]>)> {
    let version = version(rest)?;
    let mut topics = Vec::new();
    for _ in 0..count(rest)? {
        let length = take(rest).map(i16::from_be_bytes)?;
        topics.push(split(rest, usize::try_from(length).ok()?)?);
    }
    Some((version, topics))
}

/// `None` for bytes that are no subscription.
pub(super) fn read_subscription(bytes: &[u8]) -> Option<Subscription> {
    let mut rest = bytes;
    let (version, names) = read_topics(&mut rest)?;
    let names = names.into_iter().map(|name| std::str::from_utf8(name).ok());
    let topics = names.map(|name| name.map(Text::from)).collect::<Option<_>>()?;
    user_data(&mut rest)?;
    let owned = match version {
        0 => Vec::new(),
        _ => named_partitions(&mut rest)?,
    };
    if version >= 2 {
        take::<4>(&mut rest)?;
    }
    let rack_id = match version {
        0..3 => None,
        _ => text(&mut rest)?,
    };
    Some(Subscription {
        version,
        topics,
        owned,
        rack_id,
    })
}

/// `None` for bytes that are no assignment; none at all are an assignment of nothing.
pub(super) fn read_assignment(bytes: &[u8]) -> Option<Assignment> {
    if bytes.is_empty() {
        return Some(Assignment {
            partitions: Vec::new(),
            has_user_data: false,
        });
    }
    let mut rest = bytes;
    version(&mut rest)?;
    Some(Assignment {
        partitions: named_partitions(&mut rest)?,
        has_user_data: user_data(&mut rest)?,
    })
}

/// The bytes of an assignment without user data.
pub(super) fn write_assignment(version: i16, partitions: &NamedPartitions) -> Bytes {
    let mut out = BytesMut::new();
    out.put_i16(version);
    put_count(&mut out, partitions.len());
    for (topic, numbers) in partitions {
        out.put_u16(u16::try_from(topic.len()).unwrap_or(0));
        out.put_slice(topic.as_bytes());
        put_count(&mut out, numbers.len());
        for number in numbers {
            out.put_i32(*number);
        }
    }
    out.put_i32(-1);
    out.freeze()
}

fn put_count(out: &mut BytesMut, count: usize) {
    out.put_i32(i32::try_from(count).unwrap_or(i32::MAX));
}

fn version(rest: &mut &[u8]) -> Option<i16> {
    take(rest).map(i16::from_be_bytes).filter(|version| *version >= 0)
}

fn count(rest: &mut &[u8]) -> Option<u32> {
    u32::try_from(take(rest).map(i32::from_be_bytes)?).ok()
}

/// Null is `Some(None)`.
fn text(rest: &mut &[u8]) -> Option<Option<Text>> {
    let length = take(rest).map(i16::from_be_bytes)?;
    if length == -1 {
        return Some(None);
    }
    let bytes = split(rest, usize::try_from(length).ok()?)?;
    std::str::from_utf8(bytes).ok().map(|text| Some(text.into()))
}

/// Whether there is any.
fn user_data(rest: &mut &[u8]) -> Option<bool> {
    let length = take(rest).map(i32::from_be_bytes)?;
    if length == -1 {
        return Some(false);
    }
    split(rest, usize::try_from(length).ok()?).map(|bytes| !bytes.is_empty())
}

fn named_partitions(rest: &mut &[u8]) -> Option<NamedPartitions> {
    let mut partitions = Vec::new();
    for _ in 0..count(rest)? {
        let topic = text(rest)??;
        let mut numbers = Vec::new();
        for _ in 0..count(rest)? {
            numbers.push(take(rest).map(i32::from_be_bytes)?);
        }
        partitions.push((topic, numbers));
    }
    Some(partitions)
}

fn split<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (head, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    Some(head)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(*head)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_subscription_of_every_version_is_read() {
        let topics = [0, 0, 0, 1, 0, 1, b't', 0xff, 0xff, 0xff, 0xff];
        let owned = [0, 0, 0, 1, 0, 1, b't', 0, 0, 0, 1, 0, 0, 0, 7];
        let generation = [0, 0, 0, 5];
        let rack = [0, 1, b'r'];
        for version in 0..=4_u8 {
            let mut bytes = vec![0, version];
            bytes.extend(topics);
            for part in [&owned[..], &generation, &rack].iter().take(usize::from(version)) {
                bytes.extend(*part);
            }
            let read = read_subscription(&bytes).expect("readable");
            assert_eq!((read.version, &*read.topics), (i16::from(version), &["t".into()][..]));
            assert_eq!(read.owned.len(), usize::from(version >= 1));
            assert_eq!(read.rack_id.is_some(), version >= 3);
            assert_eq!(read_subscription(&bytes[..bytes.len() - 1]), None);
        }
    }

    #[test]
    fn an_assignment_is_read_as_it_was_written() {
        let partitions = vec![("t".into(), vec![0, 3]), ("u".into(), vec![])];
        let bytes = write_assignment(1, &partitions);
        let read = read_assignment(&bytes).expect("readable");
        assert_eq!(read.partitions, partitions);
        assert!(!read.has_user_data);
        let mut with_data = bytes[..bytes.len() - 4].to_vec();
        with_data.extend([0, 0, 0, 1, 9]);
        assert!(read_assignment(&with_data).expect("readable").has_user_data);
        assert_eq!(read_assignment(&[]).map(|read| read.partitions), Some(Vec::new()));
        assert_eq!(read_assignment(b"a"), None);
    }

    proptest! {
        #[test]
        fn hostile_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = read_subscription(&bytes);
            let _ = read_assignment(&bytes);
        }
    }
}
