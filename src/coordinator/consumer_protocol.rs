//! What classic consumers put into their metadata and assignments: `ConsumerProtocolSubscription` and
//! `ConsumerProtocolAssignment`, which are opaque to the classic protocol itself.
//!
//! The bytes come from clients: nothing is reserved by a length that they name. Of a version that is not known what the known
//! ones have in common is read, as Kafka does.

use bytes::{BufMut, Bytes, BytesMut};

use super::request::Text;

/// The protocol type whose members' metadata and assignments these are, which is also that of every consumer group.
pub(super) const CONSUMER: &str = "consumer";

/// Partitions by topic name, as the bytes have them.
pub type NamedPartitions = Vec<(Text, Vec<i32>)>;

/// What a classic consumer says of itself.
#[derive(Debug, PartialEq, Eq)]
pub struct Subscription {
    pub version: i16,
    pub topics: Vec<Text>,
    /// Of the client's assignor.
    pub user_data: Vec<u8>,
    /// v1+; nothing before.
    pub owned: NamedPartitions,
    /// The generation that gave it what it owns; v2+.
    pub generation: Option<i32>,
    /// v3+.
    pub rack_id: Option<Text>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Assignment {
    pub partitions: NamedPartitions,
    /// Data of an assignor of the client's own.
    pub has_user_data: bool,
}

/// The version and the topics' names, the front that a subscription of every version has. Each name is read before the next
/// is believed in. `None` for bytes that are no subscription.
#[must_use]
pub fn read_topics<'a>(rest: &mut &'a [u8]) -> Option<(i16, Vec<&'a [u8]>)> {
    let version = version(rest)?;
    let mut topics = Vec::new();
    for _ in 0..count(rest)? {
        let length = take(rest).map(i16::from_be_bytes)?;
        topics.push(split(rest, usize::try_from(length).ok()?)?);
    }
    Some((version, topics))
}

/// `None` for bytes that are no subscription.
#[must_use]
pub fn read_subscription(bytes: &[u8]) -> Option<Subscription> {
    let mut rest = bytes;
    let (version, names) = read_topics(&mut rest)?;
    let names = names.into_iter().map(|name| std::str::from_utf8(name).ok());
    let topics = names.map(|name| name.map(Text::from)).collect::<Option<_>>()?;
    let user_data = user_data(&mut rest)?.to_vec();
    let owned = match version {
        0 => Vec::new(),
        _ => named_partitions(&mut rest)?,
    };
    let generation = match version {
        0..2 => None,
        _ => Some(take(&mut rest).map(i32::from_be_bytes)?),
    };
    let rack_id = match version {
        0..3 => None,
        _ => text(&mut rest)?,
    };
    Some(Subscription {
        version,
        topics,
        user_data,
        owned,
        generation,
        rack_id,
    })
}

/// What the assignor `sticky` remembers in its members' user data (`StickyAssignorUserData` v0 and v1, which has the generation in
/// addition): the previous assignment, and the generation that gave it, if it is told. `None` for bytes that are neither.
#[must_use]
pub fn read_sticky_user_data(bytes: &[u8]) -> Option<(NamedPartitions, Option<i32>)> {
    let mut rest = bytes;
    let previous = named_partitions(&mut rest)?;
    Some((previous, take(&mut rest).map(i32::from_be_bytes)))
}

/// The generation in the user data of the assignor `cooperative-sticky`, which older clients tell there alone.
#[must_use]
pub fn read_cooperative_user_data(mut bytes: &[u8]) -> Option<i32> {
    take(&mut bytes).map(i32::from_be_bytes)
}

/// `None` for bytes that are no assignment; none at all are an assignment of nothing.
#[must_use]
pub fn read_assignment(bytes: &[u8]) -> Option<Assignment> {
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
        has_user_data: !user_data(&mut rest)?.is_empty(),
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

/// None at all are none.
fn user_data<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = take(rest).map(i32::from_be_bytes)?;
    if length == -1 {
        return Some(&[]);
    }
    split(rest, usize::try_from(length).ok()?)
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
            assert_eq!(read.generation, (version >= 2).then_some(5));
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

    #[test]
    fn what_the_sticky_assignors_remember_is_read_with_and_without_a_generation() {
        let v0 = [0, 0, 0, 1, 0, 1, b't', 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 7];
        let previous = vec![(Text::from("t"), vec![0, 7])];
        assert_eq!(read_sticky_user_data(&v0), Some((previous.clone(), None)));
        let v1 = [&v0[..], &[0, 0, 0, 9]].concat();
        assert_eq!(read_sticky_user_data(&v1), Some((previous, Some(9))));
        assert_eq!(read_sticky_user_data(&v0[..v0.len() - 1]), None);
        assert_eq!(read_cooperative_user_data(&[0, 0, 0, 9]), Some(9));
        assert_eq!(read_cooperative_user_data(&[]), None);
        let mut subscription = vec![0, 0, 0, 0, 0, 0, 0, 0, 0, 4];
        subscription.extend([0, 0, 0, 9]);
        let read = read_subscription(&subscription).expect("readable");
        assert_eq!(read.user_data, [0, 0, 0, 9]);
    }

    proptest! {
        #[test]
        fn hostile_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = read_subscription(&bytes);
            let _ = read_assignment(&bytes);
            let _ = read_cooperative_user_data(&bytes);
            if let Some((previous, _)) = read_sticky_user_data(&bytes) {
                let held: usize = previous.iter().map(|(_, numbers)| 6 + 4 * numbers.len()).sum();
                prop_assert!(held <= bytes.len());
            }
        }
    }
}
