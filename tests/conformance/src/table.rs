//! `classes.txt` and `listed.txt`: what is run, and what is known not to pass.

use convoke_support::Result;

const CLASSES: &str = include_str!("../classes.txt");
const LISTED: &str = include_str!("../listed.txt");

/// A test class of Kafka's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    pub set: &'static str,
    pub name: &'static str,
    /// How many cases are run.
    pub cases: usize,
    /// Only these methods, as Surefire takes them.
    pub methods: Option<&'static str>,
}

/// A case that is known not to pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub case: &'static str,
    pub reason: &'static str,
}

impl Class {
    /// Whether the case is one of this class's.
    #[must_use]
    pub fn has(&self, case: &str) -> bool {
        case.rsplit_once('.').is_some_and(|(class, _)| class == self.name)
    }

    /// The class and the methods, as Surefire's `-Dtest` takes them.
    #[must_use]
    pub fn selection(&self) -> String {
        let methods = self.methods.map(|methods| format!("#{methods}"));
        format!("{}{}", self.name, methods.unwrap_or_default())
    }
}

/// The classes whose set or a part of whose name is given; all of them without names.
///
/// # Errors
/// When a name means no class, or a line cannot be read.
pub fn classes(names: &[String]) -> Result<Vec<Class>> {
    let all = lines(CLASSES).map(class).collect::<Result<Vec<_>>>()?;
    let means = |name: &String, class: &Class| class.set == name || class.name.contains(name.as_str());
    if let Some(unknown) = names.iter().find(|name| !all.iter().any(|class| means(name, class))) {
        return Err(format!("{unknown} is no set and part of no class in classes.txt").into());
    }
    let chosen = all.into_iter();
    Ok(chosen
        .filter(|class| names.is_empty() || names.iter().any(|name| means(name, class)))
        .collect())
}

/// The cases that are known not to pass.
///
/// # Errors
/// When a line has no reason.
pub fn listed() -> Result<Vec<Listed>> {
    lines(LISTED)
        .map(|line| {
            let (case, reason) = line.split_once(char::is_whitespace).ok_or_else(|| unreadable(line))?;
            Ok(Listed {
                case,
                reason: reason.trim(),
            })
        })
        .collect()
}

fn lines(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn class(line: &'static str) -> Result<Class> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (set, name, cases, methods) = match fields[..] {
        [set, name, cases] => (set, name, cases, None),
        [set, name, cases, methods] => (set, name, cases, Some(methods)),
        _ => return Err(unreadable(line).into()),
    };
    Ok(Class {
        set,
        name,
        cases: cases.parse().map_err(|_| unreadable(line))?,
        methods,
    })
}

fn unreadable(line: &str) -> String {
    format!("a line that cannot be read: {line}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_files_can_be_read() {
        let classes = classes(&[]).expect("classes.txt");
        assert_eq!(classes.iter().map(|class| class.cases).sum::<usize>(), 413);
        for listed in listed().expect("listed.txt") {
            assert!(classes.iter().any(|class| class.has(listed.case)), "{listed:?}");
        }
    }

    #[test]
    fn a_name_is_a_set_or_a_part_of_a_class() {
        let wire = classes(&["wire".to_owned()]).expect("a set");
        assert_eq!(wire.iter().map(|class| class.cases).sum::<usize>(), 85);
        let sync = classes(&["SyncGroup".to_owned()]).expect("a class");
        assert_eq!(sync.len(), 1);
        assert!(classes(&["NoSuchTest".to_owned()]).is_err());
    }
}
