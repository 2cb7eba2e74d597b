//! What the agent wrote of a run (`agent/convoke/conformance/Results.java`): lines of fields between tabs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use convoke_support::Result;

/// Everything that is known of a run.
#[derive(Debug, Default)]
pub struct Results {
    pub cases: Vec<Case>,
    /// The group APIs that reached the brokers.
    pub requests: Vec<Arrived>,
    /// What is wrong whatever the cases say.
    pub problems: Vec<String>,
    /// The cases that passed when they were tried again.
    pub second_tries: Vec<String>,
}

/// A case that was run.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// `package.Class.method[invocation]`
    pub name: String,
    pub seconds: f64,
    /// Why it did not pass.
    pub failure: Option<String>,
}

/// Requests of one kind that reached the brokers during a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrived {
    pub case: String,
    pub api: String,
    /// By the client id: `convoke`, or `client`.
    pub sender: String,
    /// Over whose socket: `front`, or `direct` where it is the test's own.
    pub way: String,
    pub count: u64,
}

impl Results {
    /// Reads the files that the JVMs of a run wrote into a folder.
    ///
    /// # Errors
    /// When one of them cannot be read.
    pub fn read(folder: &Path) -> Result<Self> {
        let mut results = Self::default();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "tsv") {
                for line in fs::read_to_string(&path)?.lines() {
                    results
                        .read_line(line)
                        .ok_or_else(|| format!("{}: {line}", path.display()))?;
                }
            }
        }
        Ok(results)
    }

    fn read_line(&mut self, line: &str) -> Option<()> {
        let fields: Vec<&str> = line.split('\t').collect();
        match fields[..] {
            ["case", name, status, millis, error] => self.cases.push(Case {
                name: name.to_owned(),
                seconds: millis.parse::<f64>().ok()? / 1000.0,
                failure: (status != "successful").then(|| format!("{status}: {}", unescaped(error))),
            }),
            ["request", case, api, sender, way, count] => self.requests.push(Arrived {
                case: case.to_owned(),
                api: api.to_owned(),
                sender: sender.to_owned(),
                way: way.to_owned(),
                count: count.parse().ok()?,
            }),
            ["problem", case, what, error] => self.problems.push(format!("{case}: {what}\n{}", unescaped(error))),
            _ => return None,
        }
        Some(())
    }

    /// Takes cases that failed for passed where they have passed now; whatever else the second run showed counts, too.
    pub fn take_second_try(&mut self, again: Self) {
        for case in self.cases.iter_mut().filter(|case| case.failure.is_some()) {
            let passed = |other: &&Case| other.name == case.name && other.failure.is_none();
            if again.cases.iter().any(|other| passed(&other)) {
                case.failure = None;
                self.second_tries.push(case.name.clone());
            }
        }
        self.requests.extend(again.requests);
        self.problems.extend(again.problems);
    }

    /// How often each kind of request arrived over all cases: API and sender.
    #[must_use]
    pub fn arrived(&self) -> BTreeMap<(&str, &str), u64> {
        let mut sums = BTreeMap::new();
        for request in &self.requests {
            *sums.entry((request.api.as_str(), request.sender.as_str())).or_default() += request.count;
        }
        sums
    }
}

fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some(other) => out.push(other),
                None => {}
            },
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_has_passed_if_it_passes_by_itself() {
        let case = |name: &str, failure: Option<&str>| Case {
            name: name.to_owned(),
            seconds: 1.0,
            failure: failure.map(str::to_owned),
        };
        let of = |cases: Vec<Case>, problem: &str| Results {
            cases,
            problems: vec![problem.to_owned()],
            ..Results::default()
        };
        let first = vec![case("a", None), case("b", Some("late")), case("c", Some("wrong"))];
        let mut results = of(first, "one");
        let second = vec![case("a", Some("late")), case("b", None), case("c", Some("wrong again"))];
        results.take_second_try(of(second, "another"));
        let expected = [case("a", None), case("b", None), case("c", Some("wrong"))];
        assert_eq!(results.cases, expected, "one that had passed is not judged again");
        assert_eq!(results.second_tries, ["b"]);
        assert_eq!(results.problems, ["one", "another"]);
    }

    #[test]
    fn every_kind_of_line_is_read() {
        let mut results = Results::default();
        for line in [
            "case\ta.B.c[1]\tsuccessful\t1500\t",
            "case\ta.B.c[2]\tfailed\t3\tjava.lang.AssertionError: a\\tb\\nat c",
            "request\ta.B.c[1]\tListGroups\tclient\tfront\t3",
            "problem\ta.B.c[1]\tConvoke did not end\t",
        ] {
            results.read_line(line).expect("a line");
        }
        assert_eq!(results.cases[0].failure, None);
        assert!((results.cases[0].seconds - 1.5).abs() < 0.001);
        let failure = results.cases[1].failure.as_deref();
        assert_eq!(failure, Some("failed: java.lang.AssertionError: a\tb\nat c"));
        assert_eq!(results.requests[0].count, 3);
        assert_eq!(results.problems.len(), 1);
        assert_eq!(results.read_line("case\ta.B.c[1]"), None, "a line that was cut off");
    }
}
