//! Sets of characters, as far as topic names can hold them: names are ASCII, so no set is larger than 128 bits whatever
//! Unicode has to say, and patterns about other characters match nothing.

use std::fmt::Write;
use std::ops::RangeInclusive;

/// A set of ASCII characters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Class(u128);

/// What folds with an ASCII letter and is none: the long s and the sign for kelvin.
const FOLDING: [(char, char); 2] = [('\u{17f}', 's'), ('\u{212a}', 'k')];

impl Class {
    pub(super) const EMPTY: Self = Self(0);

    pub(super) const fn not(self) -> Self {
        Self(!self.0)
    }

    pub(super) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The characters of a range; with `fold` also the other case of each.
    pub(super) fn range(range: RangeInclusive<char>, fold: bool) -> Self {
        let ascii = (0..128_u8).filter(|byte| range.contains(&char::from(*byte)));
        let class = Self::of(ascii);
        if !fold {
            return class;
        }
        let folding = FOLDING.iter().filter(|(other, _)| range.contains(other));
        let folding = folding.map(|(_, letter)| Self::of([*letter as u8]));
        folding.fold(class, Self::or).folded()
    }

    /// The set with the other case of each letter in it.
    pub(super) fn folded(self) -> Self {
        let letters = (0..128_u8).filter(|byte| byte.is_ascii_alphabetic() && self.has(*byte));
        self.or(Self::of(letters.map(|byte| byte ^ 0x20)))
    }

    /// `\d`, `\s`, `\w`, which are ASCII in RE2/J; `None` for another letter.
    pub(super) fn perl(letter: char) -> Option<Self> {
        let class = match letter.to_ascii_lowercase() {
            'd' => Self::posix("digit")?,
            'w' => Self::posix("word")?,
            's' => Self::of(*b"\t\n\x0c\r "),
            _ => return None,
        };
        Some(if letter.is_ascii_uppercase() {
            class.not()
        } else {
            class
        })
    }

    /// The class between `[:` and `:]`; `None` if there is no such.
    pub(super) fn posix(name: &str) -> Option<Self> {
        let holds: fn(u8) -> bool = match name {
            "alnum" => |byte| byte.is_ascii_alphanumeric(),
            "alpha" => |byte| byte.is_ascii_alphabetic(),
            "ascii" => |_| true,
            "blank" => |byte| matches!(byte, b'\t' | b' '),
            "cntrl" => |byte| byte.is_ascii_control(),
            "digit" => |byte| byte.is_ascii_digit(),
            "graph" => |byte| byte.is_ascii_graphic(),
            "lower" => |byte| byte.is_ascii_lowercase(),
            "print" => |byte| byte.is_ascii_graphic() || byte == b' ',
            "punct" => |byte| byte.is_ascii_punctuation(),
            "space" => |byte| matches!(byte, b'\t'..=b'\r' | b' '),
            "upper" => |byte| byte.is_ascii_uppercase(),
            "word" => |byte| byte.is_ascii_alphanumeric() || byte == b'_',
            "xdigit" => |byte| byte.is_ascii_hexdigit(),
            _ => return None,
        };
        Some(Self::of((0..128_u8).filter(|byte| holds(*byte))))
    }

    /// What a Unicode category or script has in ASCII; `None` if RE2/J knows none of that name.
    pub(super) fn unicode(name: &str) -> Option<Self> {
        let symbols = |symbols: &[u8]| Self::of(symbols.iter().copied());
        let class = match name {
            "Any" => Self::EMPTY.not(),
            "L" | "Latin" => Self::posix("alpha")?,
            "Common" => Self::posix("alpha")?.not(),
            "Lu" => Self::posix("upper")?,
            "Ll" => Self::posix("lower")?,
            "N" | "Nd" => Self::posix("digit")?,
            "P" => ["Pc", "Pd", "Pe", "Po", "Ps"]
                .into_iter()
                .filter_map(Self::unicode)
                .fold(Self::EMPTY, Self::or),
            "Pc" => symbols(b"_"),
            "Pd" => symbols(b"-"),
            "Pe" => symbols(b")]}"),
            "Po" => symbols(b"!\"#%&'*,./:;?@\\"),
            "Ps" => symbols(b"([{"),
            "S" => symbols(b"$+<=>^`|~"),
            "Sc" => symbols(b"$"),
            "Sk" => symbols(b"^`"),
            "Sm" => symbols(b"+<=>|~"),
            "Z" | "Zs" => symbols(b" "),
            "C" | "Cc" => Self::posix("cntrl")?,
            _ if OUTSIDE_ASCII.contains(&name) => Self::EMPTY,
            _ => return None,
        };
        Some(class)
    }

    /// Writes the set as the `regex` crate reads it.
    pub(super) fn write(self, out: &mut String) {
        if self == Self::EMPTY {
            // Every byte taken away.
            return out.push_str(r"[^\x00-\xFF]");
        }
        if self.0.is_power_of_two() {
            // Writing to a string cannot fail.
            let _ = write!(out, r"\x{:02X}", self.0.trailing_zeros());
            return;
        }
        out.push('[');
        let mut next = 0_u8;
        while let Some(from) = (next..128).find(|byte| self.has(*byte)) {
            let to = (from..128).take_while(|byte| self.has(*byte)).last().unwrap_or(from);
            let _ = write!(out, r"\x{from:02X}-\x{to:02X}");
            next = to + 1;
        }
        out.push(']');
    }

    fn of(bytes: impl IntoIterator<Item = u8>) -> Self {
        Self(bytes.into_iter().fold(0, |set, byte| set | 1 << byte))
    }

    const fn has(self, byte: u8) -> bool {
        self.0 & 1 << byte != 0
    }
}

/// Categories and scripts that RE2/J knows and that have nothing in ASCII.
const OUTSIDE_ASCII: &[&str] = &[
    "Cf",
    "Co",
    "Cs",
    "Lm",
    "Lo",
    "Lt",
    "M",
    "Mc",
    "Me",
    "Mn",
    "Nl",
    "No",
    "Pf",
    "Pi",
    "So",
    "Zl",
    "Zp",
    "Arabic",
    "Armenian",
    "Avestan",
    "Balinese",
    "Bamum",
    "Batak",
    "Bengali",
    "Bopomofo",
    "Brahmi",
    "Braille",
    "Buginese",
    "Buhid",
    "Canadian_Aboriginal",
    "Carian",
    "Cham",
    "Cherokee",
    "Coptic",
    "Cuneiform",
    "Cypriot",
    "Cyrillic",
    "Deseret",
    "Devanagari",
    "Egyptian_Hieroglyphs",
    "Ethiopic",
    "Georgian",
    "Glagolitic",
    "Gothic",
    "Greek",
    "Gujarati",
    "Gurmukhi",
    "Han",
    "Hangul",
    "Hanunoo",
    "Hebrew",
    "Hiragana",
    "Imperial_Aramaic",
    "Inherited",
    "Inscriptional_Pahlavi",
    "Inscriptional_Parthian",
    "Javanese",
    "Kaithi",
    "Kannada",
    "Katakana",
    "Kayah_Li",
    "Kharoshthi",
    "Khmer",
    "Lao",
    "Lepcha",
    "Limbu",
    "Linear_B",
    "Lisu",
    "Lycian",
    "Lydian",
    "Malayalam",
    "Mandaic",
    "Meetei_Mayek",
    "Mongolian",
    "Myanmar",
    "New_Tai_Lue",
    "Nko",
    "Ogham",
    "Ol_Chiki",
    "Old_Italic",
    "Old_Persian",
    "Old_South_Arabian",
    "Old_Turkic",
    "Oriya",
    "Osmanya",
    "Phags_Pa",
    "Phoenician",
    "Rejang",
    "Runic",
    "Samaritan",
    "Saurashtra",
    "Shavian",
    "Sinhala",
    "Sundanese",
    "Syloti_Nagri",
    "Syriac",
    "Tagalog",
    "Tagbanwa",
    "Tai_Le",
    "Tai_Tham",
    "Tai_Viet",
    "Tamil",
    "Telugu",
    "Thaana",
    "Thai",
    "Tibetan",
    "Tifinagh",
    "Ugaritic",
    "Unknown",
    "Vai",
    "Yi",
];
