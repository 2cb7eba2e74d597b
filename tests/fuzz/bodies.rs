//! Bodies made from schemas: valid ones, mutated ones, the densest ones, and noise.

use convoke::wire::schema::{Field, Kind, Schema};

/// A small generator of numbers (SplitMix64): a seed gives the same bodies every time. Of its own, since what is built for libFuzzer
/// has nothing of the other tests in it.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).expect("small");
        usize::try_from(self.next() % bound).expect("small")
    }

    pub fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }
}

/// Bytes of no meaning, up to 64 of them.
pub fn noise(random: &mut Random) -> Vec<u8> {
    let len = random.below(65);
    (0..len).map(|_| random.byte()).collect()
}

/// A valid body with something in every field, nulls where they may be, and at most so many unknown tagged fields.
pub fn valid(schema: &Schema, version: i16, unknown_tags: usize, random: &mut Random) -> Vec<u8> {
    let mut writer = Writer {
        version,
        flexible: schema.is_flexible(version),
        out: Vec::new(),
        unknown_tags,
    };
    writer.fields(schema.fields, random);
    writer.out
}

/// A valid body with bytes changed, put in, or taken out; lengths that claim too much among them.
pub fn mutated(schema: &Schema, version: i16, random: &mut Random) -> Vec<u8> {
    const CLAIMS: [&[u8]; 6] = [
        &[0xff, 0xff, 0xff, 0xff],
        &[0x7f, 0xff, 0xff, 0xfe],
        &[0xff, 0xff, 0xff, 0xff, 0x07],
        &[0xff, 0xff, 0xff, 0xff, 0x0f],
        &[0x80, 0x80, 0x80, 0x80, 0x08],
        &[0x00, 0x00],
    ];
    let mut body = valid(schema, version, 1, random);
    for _ in 0..=random.below(3) {
        let at = random.below(body.len() + 1);
        match random.below(5) {
            0 => body.truncate(at),
            1 => body.insert(at, random.byte()),
            2 => {
                let claim = CLAIMS[random.below(CLAIMS.len())];
                let end = (at + claim.len()).min(body.len());
                body.splice(at..end, claim.iter().copied());
            }
            _ if at < body.len() => body[at] = random.byte(),
            _ => body.push(random.byte()),
        }
    }
    body
}

/// A body of some `len` bytes for each array that is `depth` arrays deep: they hold as many of the smallest elements as
/// fit, each with so many unknown tagged fields; arrays above them hold one element.
pub fn dense(schema: &Schema, version: i16, unknown_tags: u8, depth: usize, len: usize) -> Vec<u8> {
    let flexible = schema.is_flexible(version);
    let mut writer = Writer {
        version,
        flexible,
        out: Vec::new(),
        unknown_tags: 0,
    };
    writer.dense_fields(schema.fields, unknown_tags, depth, len);
    writer.out
}

struct Writer {
    version: i16,
    flexible: bool,
    out: Vec<u8>,
    /// How many unknown tagged fields are still to be written.
    unknown_tags: usize,
}

impl Writer {
    fn varint(&mut self, mut value: usize) {
        while value >= 0x80 {
            self.out.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.out.push(value.to_le_bytes()[0]);
    }

    /// A length; a legacy one has `size` bytes.
    fn len(&mut self, len: Option<usize>, size: usize) {
        if self.flexible {
            return self.varint(len.map_or(0, |len| len + 1));
        }
        let bytes = len.map_or([0xff; 8], |len| u64::try_from(len).expect("fits").to_be_bytes());
        self.out.extend_from_slice(&bytes[8 - size..]);
    }

    fn fields(&mut self, fields: &[Field], random: &mut Random) {
        let version = self.version;
        for field in fields
            .iter()
            .filter(|field| field.tag.is_none() && field.is_in(version))
        {
            self.value(field.kind, field.is_nullable(version), random);
        }
        if self.flexible {
            self.tagged_fields(fields, random);
        }
    }

    fn tagged_fields(&mut self, fields: &[Field], random: &mut Random) {
        let known: Vec<_> = fields
            .iter()
            .filter(|field| field.tag.is_some() && field.is_in(self.version))
            .collect();
        let unknown = self.unknown_tags.min(random.below(4) / 3);
        self.unknown_tags -= unknown;
        self.varint(known.len() + unknown);
        for field in known {
            self.varint(usize::try_from(field.tag.unwrap_or_default()).expect("small"));
            let mut content = Self {
                out: Vec::new(),
                ..*self
            };
            content.tagged_value(field.kind, random);
            self.unknown_tags = content.unknown_tags;
            self.varint(content.out.len());
            self.out.extend(content.out);
        }
        for _ in 0..unknown {
            let len = random.below(5);
            self.varint(40_000);
            self.varint(len);
            self.out.extend((0..len).map(|_| random.byte()));
        }
    }

    /// A value that is not the default: encoders leave defaults out.
    fn tagged_value(&mut self, kind: Kind, random: &mut Random) {
        match kind {
            Kind::Boolean => self.out.push(1),
            Kind::Structs(fields) => {
                self.len(Some(1), 4);
                self.fields(fields, random);
            }
            kind => self.value(kind, false, random),
        }
    }

    fn value(&mut self, kind: Kind, nullable: bool, random: &mut Random) {
        let null = nullable && random.below(4) == 0;
        let count = random.below(4);
        match kind {
            Kind::Boolean => self.out.push(random.byte() & 1),
            Kind::Struct(_) if null => self.out.push(0xff),
            Kind::Struct(fields) => {
                self.out.extend(nullable.then_some(1));
                self.fields(fields, random);
            }
            Kind::String => {
                self.len(if null { None } else { Some(count * 50) }, 2);
                let letters = (0..count * 50).map(|_| b'a' + random.byte() % 26);
                self.out.extend(letters.take(if null { 0 } else { count * 50 }));
            }
            Kind::Bytes | Kind::Records => {
                self.len(if null { None } else { Some(count) }, 4);
                self.out
                    .extend((0..count).map(|_| random.byte()).take(if null { 0 } else { count }));
            }
            Kind::Array(_) | Kind::Structs(_) if null => self.len(None, 4),
            Kind::Array(element) => {
                self.len(Some(count), 4);
                (0..count).for_each(|_| self.value(*element, false, random));
            }
            Kind::Structs(fields) => {
                self.len(Some(count), 4);
                (0..count).for_each(|_| self.fields(fields, random));
            }
            fixed => {
                let size = fixed.fixed_size().expect("all others have one size");
                self.out.extend((0..size).map(|_| random.byte()));
            }
        }
    }

    fn dense_fields(&mut self, fields: &[Field], unknown_tags: u8, depth: usize, len: usize) {
        let version = self.version;
        for field in fields
            .iter()
            .filter(|field| field.tag.is_none() && field.is_in(version))
        {
            match field.kind {
                Kind::Structs(fields) if depth > 0 => {
                    self.len(Some(1), 4);
                    self.dense_fields(fields, unknown_tags, depth - 1, len);
                }
                Kind::Structs(fields) => self.repeat(&self.smallest_fields(fields, unknown_tags), len),
                Kind::Array(element) => self.repeat(&self.smallest(*element), len),
                Kind::Struct(fields) if field.is_nullable(version) => {
                    self.out.push(1);
                    self.dense_fields(fields, unknown_tags, depth, len);
                }
                kind => {
                    let smallest = self.smallest(kind);
                    self.out.extend(smallest);
                }
            }
        }
        if self.flexible {
            self.out.push(0);
        }
    }

    fn repeat(&mut self, element: &[u8], len: usize) {
        let count = len / element.len();
        self.len(Some(count), 4);
        self.out.extend(element.repeat(count));
    }

    fn smallest(&self, kind: Kind) -> Vec<u8> {
        match kind {
            Kind::Struct(fields) => self.smallest_fields(fields, 0),
            kind => match kind.fixed_size() {
                Some(size) => vec![0; size],
                None if self.flexible => vec![1],
                None => vec![0; if matches!(kind, Kind::String) { 2 } else { 4 }],
            },
        }
    }

    fn smallest_fields(&self, fields: &[Field], unknown_tags: u8) -> Vec<u8> {
        let plain = fields
            .iter()
            .filter(|field| field.tag.is_none() && field.is_in(self.version));
        let mut smallest: Vec<u8> = plain.flat_map(|field| self.smallest(field.kind)).collect();
        if self.flexible {
            smallest.push(unknown_tags);
            smallest.extend((0..unknown_tags).flat_map(|tag| [100 + tag, 0]));
        }
        smallest
    }
}
