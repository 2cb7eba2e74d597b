//! Whether a run was good, and what it gave: a row for each class.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::requests;
use crate::results::{Case, Results};
use crate::table::{Class, Listed};

/// Lines of a failure that are printed; Surefire's report has the others.
const FAILURE_LINES: usize = 12;

/// What a run gave.
#[derive(Debug)]
pub struct Verdict {
    rows: Vec<Row>,
    /// Cases that ran and are known not to pass, with the reason.
    listed: Vec<Listed>,
    /// Cases that passed only when they were tried again.
    second_tries: Vec<String>,
    /// The group APIs that reached the brokers, by sender.
    arrived: Vec<String>,
    /// Everything that must not be.
    faults: Vec<String>,
}

/// One class, or the sum of several.
#[derive(Debug, Default)]
struct Row {
    set: &'static str,
    class: &'static str,
    cases: usize,
    passed: usize,
    listed: usize,
    failed: usize,
    seconds: f64,
}

/// The methods of cases that should have passed, as Surefire selects them.
#[must_use]
pub fn failed_methods(listed: &[Listed], results: &Results) -> Vec<String> {
    let is_listed = |case: &&Case| listed.iter().any(|listed| listed.case == case.name);
    let failed = results.cases.iter().filter(|case| case.failure.is_some());
    let methods = failed.filter(|case| !is_listed(case)).filter_map(|case| {
        let method = case
            .name
            .split_once('[')
            .map_or(&*case.name, |(method, _invocation)| method);
        let (class, method) = method.rsplit_once('.')?;
        Some(format!("{class}#{method}"))
    });
    methods.collect::<BTreeSet<_>>().into_iter().collect()
}

/// Every case of the classes has to have run, and to have passed or to be listed; one that is listed must not pass.
#[must_use]
pub fn judge(classes: &[Class], listed: &[Listed], results: &Results) -> Verdict {
    let mut faults: Vec<String> = results.problems.clone();
    let rows = classes.iter().map(|class| row(class, listed, results, &mut faults));
    let rows = rows.collect();
    for request in results.requests.iter().filter(|request| !requests::is_allowed(request)) {
        faults.push(format!(
            "{}: {} of {} reached a broker {} times ({})",
            request.case, request.api, request.sender, request.count, request.way
        ));
    }
    let ran = |listed: &&Listed| results.cases.iter().any(|case| case.name == listed.case);
    let (ran, missing): (Vec<_>, Vec<_>) = listed
        .iter()
        .filter(|listed| classes.iter().any(|class| class.has(listed.case)))
        .partition(ran);
    faults.extend(
        missing
            .iter()
            .map(|listed| format!("{}: is listed and did not run", listed.case)),
    );
    let arrived = results.arrived().into_iter();
    Verdict {
        rows,
        listed: ran.into_iter().cloned().collect(),
        second_tries: results.second_tries.clone(),
        arrived: arrived
            .map(|((api, sender), count)| format!("{api} of {sender} {count}"))
            .collect(),
        faults,
    }
}

fn row(class: &Class, listed: &[Listed], results: &Results, faults: &mut Vec<String>) -> Row {
    let mut row = Row {
        set: class.set,
        class: class.name,
        ..Row::default()
    };
    let mut runs: BTreeMap<&str, usize> = BTreeMap::new();
    for case in results.cases.iter().filter(|case| class.has(&case.name)) {
        *runs.entry(&case.name).or_default() += 1;
        row.cases += 1;
        row.seconds += case.seconds;
        let is_listed = listed.iter().any(|listed| listed.case == case.name);
        match (&case.failure, is_listed) {
            (None, false) => row.passed += 1,
            (Some(_), true) => row.listed += 1,
            (Some(failure), false) => {
                row.failed += 1;
                faults.push(failed(case, failure));
            }
            (None, true) => {
                row.failed += 1;
                faults.push(format!("{}: passes; take it off listed.txt", case.name));
            }
        }
    }
    for (case, times) in runs.into_iter().filter(|(_, times)| *times > 1) {
        faults.push(format!("{case}: ran {times} times"));
    }
    if row.cases != class.cases {
        faults.push(format!("{}: {} cases ran, not {}", class.name, row.cases, class.cases));
    }
    row
}

fn failed(case: &Case, failure: &str) -> String {
    let lines: Vec<_> = failure.lines().take(FAILURE_LINES).collect();
    format!("{} ({:.1} s)\n    {}", case.name, case.seconds, lines.join("\n    "))
}

impl Verdict {
    #[must_use]
    pub const fn is_good(&self) -> bool {
        self.faults.is_empty()
    }

    /// In the order of `classes.txt`, where the classes of a set stand together.
    fn sets(&self) -> Vec<&'static str> {
        let mut sets: Vec<_> = self.rows.iter().map(|row| row.set).collect();
        sets.dedup();
        sets
    }

    fn sum(&self, name: &'static str, counts: impl Fn(&Row) -> bool) -> Row {
        let mut sum = Row {
            class: name,
            ..Row::default()
        };
        self.rows.iter().filter(|row| counts(row)).for_each(|row| sum.add(row));
        sum
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for fault in &self.faults {
            writeln!(out, "FAULT {fault}")?;
        }
        for Listed { case, reason } in &self.listed {
            writeln!(out, "listed {case}: {reason}")?;
        }
        for case in &self.second_tries {
            writeln!(out, "passed at the second try: {case}")?;
        }
        writeln!(
            out,
            "\nGroup APIs that reached the brokers: {}",
            self.arrived.join(", ")
        )?;
        writeln!(out, "\n| class | cases | passed | listed | failed | seconds |")?;
        writeln!(out, "|---|---|---|---|---|---|")?;
        for row in &self.rows {
            writeln!(out, "{row}")?;
        }
        writeln!(out, "\n| set | cases | passed | listed | failed | seconds |")?;
        writeln!(out, "|---|---|---|---|---|---|")?;
        for set in self.sets() {
            writeln!(out, "{}", self.sum(set, |row| row.set == set))?;
        }
        writeln!(out, "{}", self.sum("all", |_| true))?;
        let verdict = if self.is_good() { "ok" } else { "FAILED" };
        write!(out, "\nconformance: {verdict}, {} faults", self.faults.len())
    }
}

impl Row {
    fn add(&mut self, other: &Self) {
        self.cases += other.cases;
        self.passed += other.passed;
        self.listed += other.listed;
        self.failed += other.failed;
        self.seconds += other.seconds;
    }
}

impl fmt::Display for Row {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            class,
            cases,
            passed,
            listed,
            failed,
            seconds,
            ..
        } = self;
        let class = class.rsplit_once('.').map_or(*class, |(_, name)| name);
        write!(
            out,
            "| {class} | {cases} | {passed} | {listed} | {failed} | {seconds:.0} |"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Arrived;

    const CLASS: Class = Class {
        set: "wire",
        name: "a.B",
        cases: 2,
        methods: None,
    };

    fn case(name: &str, failure: Option<&str>) -> Case {
        Case {
            name: name.to_owned(),
            seconds: 1.0,
            failure: failure.map(str::to_owned),
        }
    }

    fn of(cases: Vec<Case>) -> Results {
        Results {
            cases,
            ..Results::default()
        }
    }

    fn listed(case: &'static str) -> Listed {
        Listed {
            case,
            reason: "not built yet",
        }
    }

    fn faults(listed: &[Listed], results: &Results) -> Vec<String> {
        judge(&[CLASS], listed, results).faults
    }

    #[test]
    fn only_methods_that_should_have_passed_are_tried_again_and_once() {
        let failed = |name: &str| case(name, Some("wrong"));
        let results = of(vec![
            case("a.B.c[1]", None),
            failed("a.B.d[1]"),
            failed("a.B.d[2]"),
            failed("a.B.e[1]"),
            failed("a.B.f"),
        ]);
        assert_eq!(failed_methods(&[listed("a.B.e[1]")], &results), ["a.B#d", "a.B#f"]);
    }

    #[test]
    fn cases_that_pass_or_are_listed_and_fail_are_good() {
        let results = of(vec![case("a.B.one[1]", None), case("a.B.two", Some("failed"))]);
        assert_eq!(faults(&[listed("a.B.two")], &results), [""; 0]);
    }

    #[test]
    fn a_failure_that_is_not_listed_is_a_fault() {
        let results = of(vec![case("a.B.one[1]", None), case("a.B.two", Some("failed"))]);
        assert_eq!(faults(&[], &results), ["a.B.two (1.0 s)\n    failed"]);
    }

    #[test]
    fn a_listed_case_that_passes_is_a_fault() {
        let results = of(vec![case("a.B.one[1]", None), case("a.B.two", None)]);
        let faults = faults(&[listed("a.B.two")], &results);
        assert_eq!(faults, ["a.B.two: passes; take it off listed.txt"]);
    }

    #[test]
    fn a_listed_case_that_did_not_run_is_a_fault() {
        let results = of(vec![case("a.B.one[1]", None), case("a.B.one[2]", None)]);
        let faults = faults(&[listed("a.B.two")], &results);
        assert_eq!(faults, ["a.B.two: is listed and did not run"]);
    }

    #[test]
    fn a_run_of_nothing_is_a_fault() {
        assert_eq!(faults(&[], &Results::default()), ["a.B: 0 cases ran, not 2"]);
    }

    #[test]
    fn a_case_that_runs_twice_does_not_stand_for_one_that_does_not() {
        let results = of(vec![case("a.B.one[1]", None), case("a.B.one[1]", None)]);
        assert_eq!(faults(&[], &results), ["a.B.one[1]: ran 2 times"]);
    }

    #[test]
    fn a_request_that_came_past_convoke_is_a_fault() {
        let mut results = of(vec![case("a.B.one[1]", None), case("a.B.two", None)]);
        results.requests.push(Arrived {
            case: "a.B.two".to_owned(),
            api: "JoinGroup".to_owned(),
            sender: "client".to_owned(),
            way: "direct".to_owned(),
            count: 3,
        });
        let faults = faults(&[], &results);
        assert_eq!(
            faults,
            ["a.B.two: JoinGroup of client reached a broker 3 times (direct)"]
        );
    }

    #[test]
    fn sets_are_summed_up_in_their_order() {
        let other = Class {
            set: "tools",
            name: "a.C",
            cases: 1,
            methods: None,
        };
        let results = of(vec![
            case("a.B.one[1]", None),
            case("a.B.two", Some("failed")),
            case("a.C.one", None),
        ]);
        let printed = judge(&[CLASS, other], &[listed("a.B.two")], &results).to_string();
        let sums = "| wire | 2 | 1 | 1 | 0 | 2 |\n| tools | 1 | 1 | 0 | 0 | 1 |\n| all | 3 | 2 | 1 | 0 | 3 |\n";
        assert!(printed.contains(sums), "{printed}");
    }

    #[test]
    fn a_problem_of_the_run_is_a_fault() {
        let mut results = of(vec![case("a.B.one[1]", None), case("a.B.two", None)]);
        results
            .problems
            .push("a.B.two: Convoke ended with exit code 101".to_owned());
        assert_eq!(faults(&[], &results).len(), 1);
    }
}
