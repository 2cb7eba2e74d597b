//! What a damaged store may hold: single records, and shards that are loaded from them.

use std::sync::Arc;

use bytes::Bytes;
use convoke::coordinator::group_config::{GroupConfig, GroupSetting};
use convoke::coordinator::input::{Input, Now, Ticket};
use convoke::coordinator::record::{GroupConfigValue, RawRecord, Record, key_group_id};
use convoke::coordinator::request::{ListGroupsRequest, OffsetDeleteRequest, Request};
use convoke::coordinator::settings::Settings;
use convoke::coordinator::shard::{Shard, ShardNumber};

use super::{Target, part, put_part, unhex};
use crate::bodies::Random;

pub fn targets() -> Vec<Target> {
    vec![
        Target {
            name: "records".to_owned(),
            reads: &[
                "coordinator/record.rs",
                "coordinator/record/codec.rs",
                "coordinator/record/client_assignor.rs",
                "coordinator/record/consumer_assignment.rs",
                "coordinator/record/consumer_group.rs",
                "coordinator/record/group_config.rs",
            ],
            seed: Box::new(|random| records(random, 1)),
            run: Box::new(|mut input| {
                if let Some(record) = next(&mut input) {
                    assert_eq!(Record::from_raw(&record.to_raw()), Ok(Some(record)));
                }
            }),
            held_per_byte: 64,
        },
        Target {
            name: "shards loaded from records".to_owned(),
            reads: &["coordinator/classic/subscription.rs", "admin/assignment.rs"],
            seed: Box::new(|random| records(random, 6)),
            run: Box::new(load),
            held_per_byte: 512,
        },
    ]
}

/// So many records that Kafka wrote, or we.
fn records(random: &mut Random, count: usize) -> Vec<u8> {
    let golden: Vec<_> = include_str!("../../golden/coordinator_records.txt")
        .lines()
        .filter(|line| line.len() < 400)
        .collect();
    let mut input = Vec::new();
    for _ in 0..count {
        if random.below(4) == 0 {
            let RawRecord { key, value } = given(random).to_raw();
            put_part(&key, &mut input);
            put_part(&value.unwrap_or_default(), &mut input);
            continue;
        }
        let words: Vec<_> = golden[random.below(golden.len())].split(' ').collect();
        put_part(&unhex(words[1]), &mut input);
        put_part(&unhex(words[2].trim_start_matches('-')), &mut input);
    }
    input
}

/// What a group was given for itself.
fn given(random: &mut Random) -> Record {
    let mut config = GroupConfig::default();
    for setting in GroupSetting::ALL {
        config.set(setting, (random.below(2) == 0).then_some(i32::from(random.byte())));
    }
    Record::GroupConfig {
        group_id: "g".into(),
        value: (!config.is_empty()).then_some(GroupConfigValue { config }),
    }
}

/// A key and a value, none if it is empty.
fn next(input: &mut &[u8]) -> Option<Record> {
    let key = Bytes::copy_from_slice(part(input));
    let value = Some(Bytes::copy_from_slice(part(input))).filter(|value| !value.is_empty());
    let record = Record::from_raw(&RawRecord {
        key: key.clone(),
        value,
    })
    .ok()
    .flatten()?;
    assert_eq!(key_group_id(&key).ok().as_ref(), Some(record.group_id()));
    Some(record)
}

/// Loads a shard, asks it, and lets a day go by.
fn load(mut input: &[u8]) {
    let mut shard = Shard::new(ShardNumber(0), Arc::new(Settings::default()), 1);
    let mut group_ids = Vec::new();
    while !input.is_empty() {
        if let Some(record) = next(&mut input) {
            shard.replay(&record);
            group_ids.push(record.group_id().clone());
        }
    }
    let at = |monotonic_ms: u64| Now {
        monotonic_ms,
        wall_ms: 1_700_000_000_000 + i64::try_from(monotonic_ms).unwrap_or_default(),
    };
    shard.loaded(at(0));
    let mut requests: Vec<_> = group_ids
        .into_iter()
        .flat_map(|group_id| {
            let delete = OffsetDeleteRequest {
                group_id: group_id.clone(),
                topics: vec![("t".into(), vec![0, 3])],
            };
            [Request::DescribeGroup { group_id }, Request::OffsetDelete(delete)]
        })
        .collect();
    let (states, types) = (Vec::new(), Vec::new());
    requests.extend([Request::ListGroups(ListGroupsRequest { states, types }), Request::View]);
    let mut out = Vec::new();
    for (ticket, request) in (1..).map(Ticket).zip(requests) {
        shard.step(at(1), Input::Request { ticket, request }, &mut out);
    }
    for monotonic_ms in [1_000, 60_000, 3_600_000, 86_400_000] {
        shard.step(at(monotonic_ms), Input::Tick, &mut out);
    }
}
