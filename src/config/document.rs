//! A YAML file as a tree in which every key and value knows its line and column.
//!
//! serde_yaml tells a position only with an error. Every key and value is numbered in the order of reading; to learn where
//! number n stands, the text is read once more with a visitor that fails at n. Positions are asked for a handful of keys of
//! a small file, so the cost does not matter, and aliases, flow style and block scalars need no code of ours.

use std::cell::Cell;
use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

/// The number of a key or value in the order of reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark(usize);

/// A value of the file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) mark: Mark,
    pub(super) value: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Null,
    /// Numbers and booleans as they print.
    Scalar(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) key_mark: Mark,
    pub(super) value: Node,
}

impl Value {
    /// What to call it in a message.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Scalar(_) => "a single value",
            Self::List(_) => "a list",
            Self::Map(_) => "a section with keys",
        }
    }
}

/// Why the text is no YAML document of the kind that a configuration is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SyntaxError {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) message: String,
}

/// Brackets within brackets beyond which the text is not read: the parser's time grows with the square of them.
const DEPTH_MAX: usize = 100;

/// Reads the text.
pub(super) fn parse(text: &str) -> Result<Node, SyntaxError> {
    expect_shallow(text)?;
    let reader = Reader {
        count: Cell::new(0),
        fail_at: None,
    };
    NodeSeed(&reader)
        .deserialize(serde_yaml::Deserializer::from_str(text))
        .map_err(|error| {
            let (line, column) = error
                .location()
                .map_or((1, 1), |location| (location.line(), location.column()));
            let mut message = without_position(&error.to_string());
            if is_indented_by_tab(text, line) {
                message.push_str("; YAML is indented by spaces, not by tabs");
            }
            SyntaxError { line, column, message }
        })
}

/// Counted whatever the brackets stand in: so many that are not closed mean nothing good in a text or a comment either.
fn expect_shallow(text: &str) -> Result<(), SyntaxError> {
    let (mut depth, mut line, mut column) = (0_usize, 1, 0);
    for letter in text.chars() {
        column += 1;
        match letter {
            '\n' => (line, column) = (line + 1, 0),
            '[' | '{' => depth += 1,
            ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEPTH_MAX {
            let message = format!("more than {DEPTH_MAX} brackets are open");
            return Err(SyntaxError { line, column, message });
        }
    }
    Ok(())
}

fn is_indented_by_tab(text: &str, line: usize) -> bool {
    let line = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    line.chars()
        .take_while(|letter| letter.is_whitespace())
        .any(|letter| letter == '\t')
}

/// The line and column of a mark in the text that it came from.
pub(super) fn locate(text: &str, mark: Mark) -> (usize, usize) {
    let reader = Reader {
        count: Cell::new(0),
        fail_at: Some(mark.0),
    };
    NodeSeed(&reader)
        .deserialize(serde_yaml::Deserializer::from_str(text))
        .err()
        .and_then(|error| error.location())
        .map_or((1, 1), |location| (location.line(), location.column()))
}

/// serde_yaml ends its messages with the position, which is printed in front here.
fn without_position(message: &str) -> String {
    let end = message.rfind(" at line ").unwrap_or(message.len());
    message.get(..end).unwrap_or(message).to_owned()
}

struct Reader {
    count: Cell<usize>,
    fail_at: Option<usize>,
}

impl Reader {
    fn next<E: de::Error>(&self) -> Result<Mark, E> {
        let number = self.count.get();
        self.count.set(number + 1);
        if self.fail_at == Some(number) {
            return Err(E::custom("found"));
        }
        Ok(Mark(number))
    }

    fn scalar<E: de::Error>(&self, text: impl fmt::Display) -> Result<Node, E> {
        Ok(Node {
            mark: self.next()?,
            value: Value::Scalar(text.to_string()),
        })
    }

    fn null<E: de::Error>(&self) -> Result<Node, E> {
        Ok(Node {
            mark: self.next()?,
            value: Value::Null,
        })
    }
}

struct NodeSeed<'a>(&'a Reader);

impl<'de> DeserializeSeed<'de> for NodeSeed<'_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for NodeSeed<'_> {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value, a list or a section without a tag")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Node, E> {
        self.0.scalar(value)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Node, E> {
        self.0.scalar(value)
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Node, E> {
        self.0.scalar(value)
    }

    fn visit_i128<E: de::Error>(self, value: i128) -> Result<Node, E> {
        self.0.scalar(value)
    }

    fn visit_u128<E: de::Error>(self, value: u128) -> Result<Node, E> {
        self.0.scalar(value)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Node, E> {
        self.0.scalar(value)
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Node, E> {
        self.0.scalar(value)
    }

    fn visit_unit<E: de::Error>(self) -> Result<Node, E> {
        self.0.null()
    }

    fn visit_none<E: de::Error>(self) -> Result<Node, E> {
        self.0.null()
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mark = self.0.next()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(NodeSeed(self.0))? {
            list.push(item);
        }
        Ok(Node {
            mark,
            value: Value::List(list),
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mark = self.0.next()?;
        let mut map = Vec::new();
        while let Some(key) = entries.next_key_seed(NodeSeed(self.0))? {
            // What is no name is no key that anybody knows, and is told with its place like any other.
            let name = match key.value {
                Value::Scalar(name) => name,
                other => format!("({})", other.kind()),
            };
            let value = entries.next_value_seed(NodeSeed(self.0))?;
            map.push(Entry {
                key: name,
                key_mark: key.mark,
                value,
            });
        }
        Ok(Node {
            mark,
            value: Value::Map(map),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(node: &Node) -> &[Entry] {
        match &node.value {
            Value::Map(entries) => entries,
            other => panic!("{other:?}"),
        }
    }

    type Position = (usize, usize);

    /// Every key with the positions of itself and of its value.
    fn places(text: &str) -> Vec<(String, Position, Position)> {
        fn walk(text: &str, node: &Node, out: &mut Vec<(String, Position, Position)>) {
            match &node.value {
                Value::Map(entries) => {
                    for entry in entries {
                        out.push((
                            entry.key.clone(),
                            locate(text, entry.key_mark),
                            locate(text, entry.value.mark),
                        ));
                        walk(text, &entry.value, out);
                    }
                }
                Value::List(items) => items.iter().for_each(|item| walk(text, item, out)),
                Value::Null | Value::Scalar(_) => {}
            }
        }
        let mut out = Vec::new();
        walk(text, &parse(text).unwrap(), &mut out);
        out
    }

    #[test]
    fn keys_and_values_know_their_places_in_every_style() {
        let text =
            "# a comment\na:\n  b: 1 # one\n  'c d': {e: [1, 2], f: x}\n\ng: >\n  folded\n  text\nh:\n  - i: 2\n";
        let expected = [
            ("a", (2, 1), (3, 3)),
            ("b", (3, 3), (3, 6)),
            ("c d", (4, 3), (4, 10)),
            ("e", (4, 11), (4, 14)),
            ("f", (4, 22), (4, 25)),
            ("g", (6, 1), (6, 4)),
            ("h", (9, 1), (10, 3)),
            ("i", (10, 5), (10, 8)),
        ];
        let expected: Vec<_> = expected
            .iter()
            .map(|(key, at, value)| ((*key).to_owned(), *at, *value))
            .collect();
        assert_eq!(places(text), expected);
    }

    #[test]
    fn numbers_keep_their_text_and_nothing_is_null() {
        let node = parse("port: 9092\nflag: true\nempty:\nname: \"9\"\n").unwrap();
        let values: Vec<_> = entries(&node).iter().map(|entry| entry.value.value.clone()).collect();
        let scalar = |text: &str| Value::Scalar(text.to_owned());
        assert_eq!(values, [scalar("9092"), scalar("true"), Value::Null, scalar("9")]);
        assert_eq!(parse("").unwrap().value, Value::Null);
    }

    #[test]
    fn what_is_no_yaml_says_where() {
        let error = parse("a:\n  b: [1,\nc: 2\n").unwrap_err();
        assert!(error.line >= 2, "{error:?}");
        let tagged = parse("a: !secret x\n").unwrap_err();
        assert_eq!((tagged.line, tagged.column), (1, 4), "{tagged:?}");
        let two = parse("a: 1\n---\nb: 2\n").unwrap_err();
        assert!(two.message.contains("more than one document"), "{two:?}");
    }

    proptest::proptest! {
        /// Whatever a file holds, it is read or refused, and every mark has a place in it.
        #[test]
        fn any_text_is_read_or_refused(text in "[a-c:,\\[\\]{}&*!|>'\"#\n -]{0,60}") {
            match parse(&text) {
                Ok(node) => {
                    let (line, column) = locate(&text, node.mark);
                    proptest::prop_assert!(line >= 1 && column >= 1);
                }
                Err(error) => proptest::prop_assert!(error.line >= 1 && !error.message.is_empty()),
            }
        }
    }

    #[test]
    fn an_alias_bomb_is_refused() {
        let mut bomb = "a0: &a0 [x, x]\n".to_owned();
        for level in 1..40 {
            bomb.push_str(&format!("a{level}: &a{level} [*a{0}, *a{0}, *a{0}]\n", level - 1));
        }
        assert!(parse(&bomb).is_err());
        assert!(parse(&"[".repeat(10_000)).is_err());
    }
}
