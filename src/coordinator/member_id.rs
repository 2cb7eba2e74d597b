//! Member ids in Kafka's form, `<client id or instance id>-<uuid>`, from a seeded generator, so that a run can be repeated.

use super::record::MAX_TEXT_BYTES;
use super::request::Text;

/// Makes member ids: xoshiro256** (Blackman and Vigna), seeded through SplitMix64.
#[derive(Debug)]
pub(super) struct MemberIds {
    state: [u64; 4],
}

impl MemberIds {
    pub(super) fn new(mut seed: u64) -> Self {
        let mut split_mix = || {
            seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut word = seed;
            word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            word ^ (word >> 31)
        };
        Self {
            state: [split_mix(), split_mix(), split_mix(), split_mix()],
        }
    }

    /// A new id of a client, or of the static member with this instance id; a very long one is cut so that the whole id
    /// is a string that Kafka can read.
    pub(super) fn next(&mut self, client_or_instance_id: &str) -> Text {
        let mut bytes = [0_u8; 16];
        let (high, low) = bytes.split_at_mut(8);
        high.copy_from_slice(&self.word().to_be_bytes());
        low.copy_from_slice(&self.word().to_be_bytes());
        let uuid = uuid::Builder::from_random_bytes(bytes)
            .into_uuid()
            .hyphenated()
            .to_string();
        let room = MAX_TEXT_BYTES - uuid.len() - 1;
        let prefix = &client_or_instance_id[..client_or_instance_id.floor_char_boundary(room)];
        format!("{prefix}-{uuid}").into()
    }

    fn word(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let word = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_kafkas_form() {
        let id = MemberIds::new(1).next("consumer-1");
        let uuid = id.strip_prefix("consumer-1-").expect("the client id comes first");
        let parsed = uuid::Uuid::parse_str(uuid).expect("a uuid in base 16");
        assert_eq!(parsed.get_version_num(), 4);
        assert_eq!(parsed.hyphenated().to_string(), uuid);
    }

    #[test]
    fn the_longest_client_id_still_makes_a_readable_member_id() {
        let id = MemberIds::new(1).next(&"\u{e9}".repeat(MAX_TEXT_BYTES / 2));
        assert!(id.len() <= MAX_TEXT_BYTES, "{} bytes", id.len());
        assert!(id.starts_with('\u{e9}'));
    }

    #[test]
    fn ids_repeat_with_the_seed_and_differ_otherwise() {
        let ids = |seed| {
            let mut source = MemberIds::new(seed);
            [source.next("c"), source.next("c")]
        };
        assert_eq!(ids(7), ids(7));
        assert_ne!(ids(7), ids(8));
        let [first, second] = ids(7);
        assert_ne!(first, second);
    }
}
