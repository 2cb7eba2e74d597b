//! A store with a disk's manners: transactions take time, are done in order, fail, and end half-way when the process dies.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use convoke::coordinator::input::Lsn;
use convoke::coordinator::record::{RawRecord, Record};

use crate::plan::Faults;
use convoke_support::rng::Rng;

#[derive(Debug, Default)]
pub(crate) struct Store {
    durable: BTreeMap<Bytes, Bytes>,
    waiting: VecDeque<(Lsn, Vec<RawRecord>)>,
    /// How many of those that wait are in the transaction under way.
    under_way: usize,
}

/// How a transaction ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// Everything up to here is durable.
    Durable(Lsn, Vec<Record>),
    /// The caller knows of none of it; what did become durable all the same is told here for the checker.
    Failed(Vec<Record>),
}

impl Store {
    pub(crate) fn append(&mut self, lsn: Lsn, records: &[Record]) {
        self.waiting
            .push_back((lsn, records.iter().map(Record::to_raw).collect()));
    }

    /// Begins a transaction if none is under way and something waits; says when it ends.
    pub(crate) fn begin(&mut self, rng: &mut Rng, faults: &Faults) -> Option<u64> {
        if self.under_way > 0 || self.waiting.is_empty() {
            return None;
        }
        self.under_way = self.waiting.len();
        let took = if rng.chance(faults.store_slow) {
            rng.between(500, 12_000)
        } else {
            rng.between(0, 15)
        };
        Some(took)
    }

    pub(crate) fn finish(&mut self, rng: &mut Rng, faults: &Faults) -> Outcome {
        if rng.chance(faults.store_failure) {
            return Outcome::Failed(self.interrupt(rng));
        }
        let (lsn, records) = self.write(self.under_way);
        self.under_way = 0;
        Outcome::Durable(lsn, records)
    }

    /// The process died or the transaction failed: what was under way is durable as a whole or not at all, the rest is gone.
    pub(crate) fn interrupt(&mut self, rng: &mut Rng) -> Vec<Record> {
        let mut records = Vec::new();
        if self.under_way > 0 && rng.chance(500) {
            records = self.write(self.under_way).1;
        }
        self.under_way = 0;
        self.waiting.clear();
        records
    }

    fn write(&mut self, batches: usize) -> (Lsn, Vec<Record>) {
        let mut last = Lsn::default();
        let mut records = Vec::new();
        for (lsn, batch) in self.waiting.drain(..batches) {
            last = lsn;
            for raw in batch {
                records.push(Record::from_raw(&raw).expect("readable").expect("of a known type"));
                match raw.value {
                    Some(value) => self.durable.insert(raw.key, value),
                    None => self.durable.remove(&raw.key),
                };
            }
        }
        (last, records)
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Every record, in any order.
    pub(crate) fn load(&self, rng: &mut Rng) -> Vec<Record> {
        let decode = |(key, value): (&Bytes, &Bytes)| {
            let raw = RawRecord {
                key: key.clone(),
                value: Some(value.clone()),
            };
            Record::from_raw(&raw).expect("readable").expect("of a known type")
        };
        let mut records: Vec<Record> = self.durable.iter().map(decode).collect();
        rng.shuffle(&mut records);
        records
    }
}
