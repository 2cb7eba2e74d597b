//! A consumer's assignment as a person reads it (ConsumerProtocolAssignment of Kafka's clients).

use std::collections::BTreeMap;

use crate::wire::reader::{ReadError, Reader};

/// Topics and their partitions; `None` when the bytes are not such an assignment. Nothing is reserved for counts that the
/// bytes only claim, and one topic that stands there twice is shown once with the partitions of both.
pub fn decode(bytes: &[u8]) -> Option<BTreeMap<String, Vec<i32>>> {
    read(bytes).ok()
}

fn read(bytes: &[u8]) -> Result<BTreeMap<String, Vec<i32>>, ReadError> {
    let mut topics: BTreeMap<String, Vec<i32>> = BTreeMap::new();
    if bytes.is_empty() {
        return Ok(topics);
    }
    let mut reader = Reader::new(bytes);
    reader.skip(size_of::<i16>())?;
    for _ in 0..count(&mut reader)? {
        let length = usize::try_from(reader.i16()?).map_err(|_| ReadError::NegativeLength)?;
        let name = std::str::from_utf8(reader.take(length)?).map_err(|_| ReadError::NotUtf8)?;
        let partitions = topics.entry(name.to_owned()).or_default();
        for _ in 0..count(&mut reader)? {
            partitions.push(reader.i32()?);
        }
    }
    topics.values_mut().for_each(|partitions| partitions.sort_unstable());
    Ok(topics)
}

fn count(reader: &mut Reader<'_>) -> Result<usize, ReadError> {
    usize::try_from(reader.i32()?).map_err(|_| ReadError::NegativeLength)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Version 1, topic `t` with partitions 2 and 0, no user data.
    const BYTES: &[u8] = &[
        0, 1, 0, 0, 0, 1, 0, 1, b't', 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 0, 255, 255, 255, 255,
    ];

    #[test]
    fn topics_and_partitions_are_read() {
        let expected = BTreeMap::from([("t".to_owned(), vec![0, 2])]);
        assert_eq!(decode(BYTES), Some(expected));
        assert_eq!(decode(&[]), Some(BTreeMap::new()));
    }

    #[test]
    fn bytes_that_are_no_assignment_are_none() {
        for end in 1..21 {
            assert_eq!(decode(&BYTES[..end]), None, "{end} bytes");
        }
        assert_eq!(decode(&[0, 1, 127, 255, 255, 255]), None);
        assert_eq!(decode(&[0, 1, 255, 255, 255, 255]), None);
    }
}
