//! Records to store.

use std::collections::BTreeMap;

use bytes::Bytes;
use convoke::coordinator::record::{OffsetKey, OffsetValue, RawRecord, Record};
use uuid::Uuid;

pub(crate) fn offset(group: &str, partition: i32, offset: i64) -> RawRecord {
    Record::OffsetCommit {
        key: key(group, partition),
        value: Some(OffsetValue {
            offset,
            leader_epoch: -1,
            metadata: "".into(),
            commit_timestamp_ms: 0,
            expire_timestamp_ms: None,
            topic_id: Uuid::nil(),
        }),
    }
    .to_raw()
}

pub(crate) fn tombstone(group: &str, partition: i32) -> RawRecord {
    Record::OffsetCommit {
        key: key(group, partition),
        value: None,
    }
    .to_raw()
}

fn key(group: &str, partition: i32) -> OffsetKey {
    OffsetKey {
        group_id: group.into(),
        topic: "t".into(),
        partition,
    }
}

/// Loaded records as a map, to be compared whatever their order.
pub(crate) fn by_key(records: Vec<RawRecord>) -> BTreeMap<Bytes, Option<Bytes>> {
    let count = records.len();
    let map: BTreeMap<_, _> = records.into_iter().map(|record| (record.key, record.value)).collect();
    assert_eq!(map.len(), count, "a key was loaded twice");
    map
}

/// The offset in an offset record.
pub(crate) fn value_of(record: &RawRecord) -> i64 {
    let Ok(Some(Record::OffsetCommit { value: Some(value), .. })) = Record::from_raw(record) else {
        panic!("not an offset: {record:?}");
    };
    value.offset
}
