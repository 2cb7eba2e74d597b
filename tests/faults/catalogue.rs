//! `tests/FAILURES.md` names tests that there are.

use std::fs;
use std::path::{Path, PathBuf};

use convoke_support::Result;

/// Parts of `src/` whose tests the table names by the part alone.
const PARTS: [&str; 3] = ["coordinator", "handler", "runtime"];

/// The file that the table calls so.
fn file(named: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = match named.split_once('/') {
        Some(("src", _)) => named.to_owned(),
        Some((part, rest)) if PARTS.contains(&part) => format!("src/{part}/tests/{rest}"),
        _ => format!("tests/{named}"),
    };
    root.join(path + ".rs")
}

/// Whether the file has this test; a name with blanks is the text, or a part of it, that a trial is called by.
fn has(source: &str, name: &str) -> bool {
    if name.contains(' ') {
        return source.contains(name);
    }
    let head = format!("fn {name}(");
    let lines: Vec<&str> = source.lines().collect();
    let mut places = (0..lines.len()).filter(|&at| lines[at].contains(&head));
    places.any(|at| {
        lines[at.saturating_sub(3)..at]
            .iter()
            .any(|line| line.contains("test]") || line.contains("test("))
    })
}

/// What is wrong with a row, if anything is.
fn problem(row: &str) -> Option<String> {
    let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
    let [seen_in, what, tests] = cells[..] else {
        return Some("three columns are expected".to_owned());
    };
    if seen_in.is_empty() || what.is_empty() {
        return Some("an empty column".to_owned());
    }
    if let Some(reason) = tests.strip_prefix('—') {
        return reason.trim().is_empty().then(|| "no test and no reason".to_owned());
    }
    tests.split("<br>").find_map(|test| {
        let named = test.trim().strip_prefix('`').and_then(|test| test.strip_suffix('`'));
        let Some((path, name)) = named.and_then(|named| named.split_once(": ")) else {
            return Some(format!("{test:?} is not `file: name`"));
        };
        match fs::read_to_string(file(path)) {
            Ok(source) if has(&source, name) => None,
            Ok(_) => Some(format!("{path} has no test {name}")),
            Err(error) => Some(format!("{path}: {error}")),
        }
    })
}

#[test]
fn every_row_of_the_catalogue_leads_to_tests_that_exist_or_says_why_there_is_none() -> Result<()> {
    let table = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/FAILURES.md"))?;
    let is_row = |line: &&str| line.starts_with("| ") && !line.starts_with("| seen in |");
    let rows: Vec<&str> = table.lines().filter(is_row).collect();
    let problems: Vec<String> = rows
        .iter()
        .filter_map(|row| Some(format!("{row}\n  {}", problem(row)?)))
        .collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(rows.len() > 200, "{} rows were found", rows.len());
    Ok(())
}
