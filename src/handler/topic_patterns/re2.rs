//! RE2/J's syntax, which is what Kafka's brokers read, made into what the `regex` crate reads the same way.
//!
//! Only whether a whole topic name matches is of interest, and names are ASCII. So what makes no difference to that is dropped
//! (greed, captures, the flags `m`, `s` and `U`), what folds is folded here, and sets of characters are small. What is left is
//! characters, sets, groups, alternatives, repetitions and assertions, which the two agree on; where they differ (`\Q…\E`, octal
//! escapes, `&&` or `[` in a set, braces that repeat nothing), RE2/J is followed.
//!
//! Differences that remain, against RE2/J 1.8 with Kafka's flags (none):
//! - patterns that are too long, too deep or, after their repetitions are written out, too large are refused; RE2/J has no
//!   such limits, and nested repetitions make it run out of memory;
//! - a closing parenthesis too many, over which RE2/J reports an internal error, is named as what it is.

use std::collections::BTreeSet;

use super::class::Class;

/// How deep groups may be nested.
const DEPTH_MAX: usize = 100;
/// What RE2/J lets a repetition count to.
const REPEAT_MAX: u32 = 1_000;

/// What is wrong with a pattern, for people.
pub(super) type Problem = String;

/// The pattern as the `regex` crate takes it, for byte strings and without Unicode.
///
/// # Errors
/// What RE2/J would refuse.
pub(super) fn translate(pattern: &str) -> Result<String, Problem> {
    let mut translator = Translator {
        rest: pattern,
        out: String::with_capacity(pattern.len() * 2),
        fold: false,
        groups: Vec::new(),
        names: BTreeSet::new(),
        has_atom: false,
        repeated: false,
    };
    while !translator.rest.is_empty() {
        translator.token()?;
    }
    if translator.groups.is_empty() {
        Ok(translator.out)
    } else {
        Err("missing closing )".to_owned())
    }
}

struct Translator<'a> {
    rest: &'a str,
    out: String,
    /// Whether the flag `i` is set.
    fold: bool,
    /// The flag as it was before each group that is open.
    groups: Vec<bool>,
    names: BTreeSet<&'a str>,
    /// Whether there is something that could be repeated.
    has_atom: bool,
    /// Whether the last token was a repetition: they cannot be stacked.
    repeated: bool,
}

impl<'a> Translator<'a> {
    fn token(&mut self) -> Result<(), Problem> {
        let before = self.rest;
        let Some(char) = self.take() else { return Ok(()) };
        let repeats = match char {
            '*' | '+' | '?' => Some(char.to_string()),
            '{' => self.counted()?,
            _ => None,
        };
        if let Some(repeat) = repeats {
            return self.repeat(&repeat, before);
        }
        self.repeated = false;
        match char {
            '(' => return self.open(before),
            ')' => return self.close(),
            '|' => {
                self.out.push('|');
                self.has_atom = false;
                return Ok(());
            }
            '[' => self.set()?.write(&mut self.out),
            '.' => self.out.push('.'),
            '^' => self.out.push_str(r"\A"),
            '$' => self.out.push_str(r"\z"),
            '\\' => return self.escaped(),
            char => self.literal(char),
        }
        self.has_atom = true;
        Ok(())
    }

    fn repeat(&mut self, repeat: &str, before: &str) -> Result<(), Problem> {
        self.skip("?");
        let written = &before[..before.len() - self.rest.len()];
        if self.repeated {
            return Err(format!("nested repetition `{written}`"));
        }
        if !self.has_atom {
            return Err(format!("nothing before the repetition `{written}`"));
        }
        self.out.push_str(repeat);
        self.repeated = true;
        Ok(())
    }

    /// Reads `{2}`, `{2,}` or `{2,3}` without its opening brace; any other brace stands for itself.
    fn counted(&mut self) -> Result<Option<String>, Problem> {
        let Some((counts, rest)) = self.rest.split_once('}') else {
            return Ok(None);
        };
        let (least, most) = match counts.split_once(',') {
            None => (counts, counts),
            Some((least, most)) => (least, most),
        };
        let is_count = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            digits && (text == "0" || !text.starts_with('0'))
        };
        if !is_count(least) || !(most.is_empty() || is_count(most)) {
            return Ok(None);
        }
        let count = |text: &str| text.parse().ok().filter(|count: &u32| *count <= REPEAT_MAX);
        let is_legal = match (count(least), count(most)) {
            (Some(least), Some(most)) => least <= most,
            (least, _) => least.is_some() && most.is_empty(),
        };
        if !is_legal {
            return Err(format!(
                "repetition `{{{counts}}}`; it counts up, and to {REPEAT_MAX} at most"
            ));
        }
        self.rest = rest;
        Ok(Some(format!("{{{counts}}}")))
    }

    fn open(&mut self, before: &str) -> Result<(), Problem> {
        let mut fold = self.fold;
        if self.skip("?P<") || self.skip("?<") {
            self.name()?;
        } else if self.skip("?") {
            let ends = self.flags(&mut fold, before)?;
            if ends {
                // For the rest of the group that it stands in.
                self.fold = fold;
                return Ok(());
            }
        }
        if self.groups.len() == DEPTH_MAX {
            return Err(format!("groups are nested deeper than {DEPTH_MAX}"));
        }
        self.groups.push(self.fold);
        self.fold = fold;
        self.out.push_str("(?:");
        self.has_atom = false;
        Ok(())
    }

    fn name(&mut self) -> Result<(), Problem> {
        let Some((name, rest)) = self.rest.split_once('>') else {
            return Err("a group's name has no end".to_owned());
        };
        let is_legal = |char: char| char.is_ascii_alphanumeric() || char == '_';
        if name.is_empty() || !name.chars().all(is_legal) {
            return Err(format!("`{name}` is no name for a group"));
        }
        if !self.names.insert(name) {
            return Err(format!("two groups are named `{name}`"));
        }
        self.rest = rest;
        Ok(())
    }

    /// Reads flags up to their `)` or `:`; true for the former.
    fn flags(&mut self, fold: &mut bool, before: &str) -> Result<bool, Problem> {
        let (mut value, mut any) = (true, false);
        loop {
            match self.take() {
                Some('i') => *fold = value,
                Some('m' | 's' | 'U') => {}
                Some('-') if value => {
                    value = false;
                    any = false;
                    continue;
                }
                // `(?)` and `(?:` have none, but none may be missing after a minus.
                Some(end @ (')' | ':')) if value || any => return Ok(end == ')'),
                _ => {
                    let read = &before[..before.len() - self.rest.len()];
                    return Err(format!("`{read}` is not supported"));
                }
            }
            any = true;
        }
    }

    fn close(&mut self) -> Result<(), Problem> {
        self.fold = self.groups.pop().ok_or("a closing ) too many")?;
        self.out.push(')');
        self.has_atom = true;
        Ok(())
    }

    fn escaped(&mut self) -> Result<(), Problem> {
        if self.skip("Q") {
            let (literal, rest) = self.rest.split_once("\\E").unwrap_or((self.rest, ""));
            self.rest = rest;
            for char in literal.chars() {
                self.literal(char);
            }
            self.has_atom |= !literal.is_empty();
            return Ok(());
        }
        if let Some(class) = self.class_escape()? {
            class.write(&mut self.out);
        } else if self.skip("A") {
            self.out.push_str(r"\A");
        } else if self.skip("z") {
            self.out.push_str(r"\z");
        } else if self.skip("b") {
            self.out.push_str(r"\b");
        } else if self.skip("B") {
            self.out.push_str(r"\B");
        } else {
            let char = self.char_escape()?;
            self.literal(char);
        }
        self.has_atom = true;
        Ok(())
    }

    fn literal(&mut self, char: char) {
        Class::range(char..=char, self.fold).write(&mut self.out);
    }

    /// The set after its opening bracket.
    fn set(&mut self) -> Result<Class, Problem> {
        let negated = self.skip("^");
        let mut set = Class::EMPTY;
        let mut first = true;
        while first || !self.skip("]") {
            first = false;
            let item = match self.posix()? {
                Some(class) => class,
                None => self.item()?,
            };
            set = set.or(item);
        }
        Ok(if negated { set.not() } else { set })
    }

    /// `[:name:]`, if that is next.
    fn posix(&mut self) -> Result<Option<Class>, Problem> {
        let end = self.rest.strip_prefix("[:").and_then(|inner| inner.split_once(":]"));
        let Some((name, rest)) = end else { return Ok(None) };
        let (negated, plain) = name.strip_prefix('^').map_or((false, name), |plain| (true, plain));
        let class = Class::posix(plain).ok_or_else(|| format!("there is no class `[:{name}:]`"))?;
        self.rest = rest;
        let class = if self.fold { class.folded() } else { class };
        Ok(Some(if negated { class.not() } else { class }))
    }

    /// A class, a character or a range in a set.
    fn item(&mut self) -> Result<Class, Problem> {
        if let Some(after) = self.rest.strip_prefix('\\') {
            let before = std::mem::replace(&mut self.rest, after);
            if let Some(class) = self.class_escape()? {
                return Ok(class);
            }
            self.rest = before;
        }
        let from = self.member()?;
        let last = self.rest.strip_prefix('-').is_some_and(|rest| rest.starts_with(']'));
        if last || !self.skip("-") {
            return Ok(Class::range(from..=from, self.fold));
        }
        let to = self.member()?;
        if to < from {
            return Err(format!("the range `{from}-{to}` ends before it begins"));
        }
        Ok(Class::range(from..=to, self.fold))
    }

    fn member(&mut self) -> Result<char, Problem> {
        match self.take() {
            None => Err("missing closing ]".to_owned()),
            Some('\\') => self.char_escape(),
            Some(char) => Ok(char),
        }
    }

    /// `\d` and the like, or a Unicode class, without the backslash; `None` if it is another escape.
    fn class_escape(&mut self) -> Result<Option<Class>, Problem> {
        let Some(letter) = self.rest.chars().next() else {
            return Ok(None);
        };
        if let Some(class) = Class::perl(letter) {
            self.take();
            return Ok(Some(class));
        }
        if !matches!(letter, 'p' | 'P') {
            return Ok(None);
        }
        self.take();
        let name = if self.skip("{") {
            let (name, rest) = self.rest.split_once('}').ok_or("a Unicode class has no end")?;
            self.rest = rest;
            name
        } else {
            let single = self.rest;
            self.take().ok_or("a Unicode class has no name")?;
            &single[..single.len() - self.rest.len()]
        };
        let (negated, plain) = name.strip_prefix('^').map_or((false, name), |plain| (true, plain));
        let class = Class::unicode(plain).ok_or_else(|| format!("there is no Unicode class `{name}`"))?;
        let class = if self.fold { class.folded() } else { class };
        Ok(Some(if negated == (letter == 'P') { class } else { class.not() }))
    }

    /// An escape that stands for one character, without the backslash.
    fn char_escape(&mut self) -> Result<char, Problem> {
        let Some(char) = self.take() else {
            return Err("a backslash at the end".to_owned());
        };
        match char {
            'a' => Ok('\u{7}'),
            'f' => Ok('\u{c}'),
            'n' => Ok('\n'),
            'r' => Ok('\r'),
            't' => Ok('\t'),
            'v' => Ok('\u{b}'),
            'x' => self.hexadecimal(),
            // Alone it would refer back to a group, which cannot be done in linear time.
            '0' => Ok(self.octal(0)),
            '1'..='7' if self.rest.starts_with(|next| matches!(next, '0'..='7')) => {
                Ok(self.octal(char.to_digit(8).unwrap_or(0)))
            }
            char if char.is_ascii() && !char.is_ascii_alphanumeric() => Ok(char),
            char => Err(format!("the escape `\\{char}` is not supported")),
        }
    }

    fn octal(&mut self, first: u32) -> char {
        let mut value = first;
        for _ in 0..2 {
            let Some(digit) = self.rest.chars().next().and_then(|char| char.to_digit(8)) else {
                break;
            };
            self.take();
            value = value * 8 + digit;
        }
        // Three digits are below every surrogate.
        char::from_u32(value).unwrap_or_default()
    }

    fn hexadecimal(&mut self) -> Result<char, Problem> {
        let digits = if self.skip("{") {
            let (digits, rest) = self.rest.split_once('}').ok_or("the escape `\\x{` has no end")?;
            self.rest = rest;
            digits
        } else {
            let (digits, rest) = self.rest.split_at_checked(2).ok_or("the escape `\\x` has no end")?;
            self.rest = rest;
            digits
        };
        let is_hexadecimal = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let code = u32::from_str_radix(digits, 16).ok().filter(|_| is_hexadecimal);
        // A surrogate is a character to Java, though none that a name could have.
        let char = code.map(|code| match code {
            0xd800..=0xdfff => Some('\u{fffd}'),
            code => char::from_u32(code),
        });
        char.flatten()
            .ok_or_else(|| format!("the escape `\\x` with `{digits}`"))
    }

    fn take(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let char = chars.next()?;
        self.rest = chars.as_str();
        Some(char)
    }

    fn skip(&mut self, prefix: &str) -> bool {
        match self.rest.strip_prefix(prefix) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }
}
