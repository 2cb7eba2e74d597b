//! A set of offsets of one partition.

/// One bit for each offset.
#[derive(Debug, Default)]
pub struct Offsets {
    words: Vec<u64>,
    count: u64,
    end: i64,
}

impl Offsets {
    pub fn insert(&mut self, offset: i64) {
        let (word, bit) = place(offset);
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.count += u64::from(self.words[word] & bit == 0);
        self.words[word] |= bit;
        self.end = self.end.max(offset + 1);
    }

    pub fn contains(&self, offset: i64) -> bool {
        let (word, bit) = place(offset);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    pub const fn len(&self) -> u64 {
        self.count
    }

    /// One more than the highest.
    pub const fn end(&self) -> i64 {
        self.end
    }

    /// The first from `from` on, below `to`, that is not in it.
    pub fn first_missing(&self, from: i64, to: i64) -> Option<i64> {
        (from..to).find(|offset| !self.contains(*offset))
    }

    /// Those that the other has not.
    pub fn missing_in(&self, other: &Self) -> Vec<i64> {
        let all = (0..self.end).filter(|offset| self.contains(*offset));
        all.filter(|offset| !other.contains(*offset)).collect()
    }
}

/// Offsets that brokers give are never negative.
fn place(offset: i64) -> (usize, u64) {
    let offset = usize::try_from(offset).unwrap_or_default();
    (offset / 64, 1 << (offset % 64))
}
