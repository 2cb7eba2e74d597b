//! The rules of `groups.assign`.

use convoke::config::AssignConfig;
use convoke::coordinator::assignor::ClassicAssignor;

use super::{MINIMAL, expect_messages, load_text};

#[test]
fn rules_are_lists_of_sections_in_the_file_and_the_same_in_one_line_elsewhere() {
    let text = "groups:\n  assign:\n    - groups: [orders-*, billing]\n      assignor: sticky\n    - groups: '*'\n";
    let rule = |groups: &[&str], assignor: Option<&str>| AssignConfig {
        groups: groups.iter().map(|group| (*group).to_owned()).collect(),
        assignor: assignor.map(ToOwned::to_owned),
        fallback: None,
    };
    let expected = [rule(&["orders-*", "billing"], Some("sticky")), rule(&["*"], None)];
    let from_file = load_text(format!("{MINIMAL}{text}"), &[], &[]).expect("rules");
    assert_eq!(from_file.config.groups.assign, expected);
    let shown = from_file
        .effective
        .iter()
        .find(|effective| effective.key == "groups.assign");
    assert_eq!(
        shown.map(|shown| &*shown.value),
        Some("{assignor: sticky, groups: orders-* billing},{groups: *}")
    );
    let line = "[{groups: [orders-*, billing], assignor: sticky}, {groups: '*'}]";
    let from_flag = load_text(MINIMAL, &[], &[("--set", "groups.assign", line)]).expect("rules");
    assert_eq!(from_flag.config.groups.assign, expected);
    let from_variable = load_text(MINIMAL, &[("CONVOKE_GROUPS_ASSIGN", line)], &[]).expect("rules");
    assert_eq!(from_variable.config.groups.assign, expected);
}

#[test]
fn what_is_wrong_with_rules_is_said_all_at_once_where_it_stands() {
    let text = "\
groups:
  assign:
    - groups: [a*b]
      asignor: sticky
    - assignor: stiky
    - orders
    - groups: {a: b}
    - groups: [[x]]
      assignor: [range]
    - groups: c
      groups: d
";
    expect_messages(
        &format!("{MINIMAL}{text}"),
        &[
            "convoke.yaml:5:16: groups.assign.groups: `a*b` is no rule: a group's name, or the beginning of names with one * at its end",
            "convoke.yaml:6:7: groups.assign.asignor: unknown key; did you mean assignor?",
            "convoke.yaml:7:7: groups.assign.groups: missing; give the groups that are meant, for all of them `groups: [\"*\"]`",
            "convoke.yaml:7:17: groups.assign.assignor: `stiky` is no assignor of classic groups; those are range, roundrobin, sticky, cooperative-sticky, and the names that have a rule under assignors",
            "convoke.yaml:8:7: groups.assign: expected a rule, which is a section with keys, found a single value",
            "convoke.yaml:9:15: groups.assign.groups: expected a list, found a section with keys",
            "convoke.yaml:10:16: groups.assign.groups: expected a single value in the list, found a list",
            "convoke.yaml:11:17: groups.assign.assignor: expected a single value, found a list",
            "convoke.yaml:13:7: groups.assign.groups: given twice in one rule",
        ],
    );
    let said = load_text(MINIMAL, &[("CONVOKE_GROUPS_ASSIGN", "orders-*")], &[]).expect_err("no list");
    assert_eq!(
        said,
        "environment variable CONVOKE_GROUPS_ASSIGN: groups.assign: expected a list of rules, found a single value"
    );
    let said = load_text(MINIMAL, &[], &[("--set", "groups.assign", "[{groups")]).expect_err("no YAML");
    assert!(said.starts_with("flag --set: groups.assign: "), "{said}");
    assert!(
        said.ends_with("a list of rules is written here as in the file"),
        "{said}"
    );
}

#[test]
fn a_rule_that_can_mean_no_group_is_a_mistake() {
    let text = "\
groups:
  assign:
    - groups: []
    - groups: ['']
    - groups: [a-*, b]
    - groups: [a-b-*, b]
    - groups: [a-b-c, c]
    - groups: [b*]
    - groups: ['*']
    - groups: [d]
";
    expect_messages(
        &format!("{MINIMAL}{text}"),
        &[
            "convoke.yaml:5:15: groups.assign.groups: an empty list; give at least one, for all `*`",
            "convoke.yaml:6:16: groups.assign.groups: it is empty; give a group's name, or `*` for all groups",
            "convoke.yaml:8:15: groups.assign.groups: never used: rules before this one mean all of its groups, and the first holds",
            "convoke.yaml:12:15: groups.assign.groups: never used: rules before this one mean all of its groups, and the first holds",
        ],
    );
}

#[test]
fn an_assignor_of_the_users_own_is_one_that_has_a_rule_for_these_groups() {
    let text = "\
groups:
  assign:
    - {groups: [orders-eu, billing], assignor: lag-balanced, fallback: sticky}
    - {groups: ['*'], assignor: zones}
assignors:
  - {name: lag-balanced, groups: [orders-*, billing]}
  - {name: zones}
";
    let loaded = load_text(format!("{MINIMAL}{text}"), &[], &[]).expect("rules");
    let shown: Vec<_> = loaded
        .config
        .groups
        .assign
        .iter()
        .map(|rule| (rule.assignor.as_deref(), rule.fallback))
        .collect();
    assert_eq!(
        shown,
        [
            (Some("lag-balanced"), Some(ClassicAssignor::Sticky)),
            (Some("zones"), None)
        ]
    );
    let wrong = "\
groups:
  assign:
    - {groups: [orders-eu, pay*], assignor: lag-balanced, fallback: uniform}
    - {groups: [a], assignor: sticky, fallback: range}
    - {groups: [b], fallback: range}
assignors:
  - {name: lag-balanced, groups: [orders-*, payments-*]}
";
    expect_messages(
        &format!("{MINIMAL}{wrong}"),
        &[
            "convoke.yaml:5:45: groups.assign.assignor: the rule of `lag-balanced` under assignors is not for `pay*`; put that into its groups",
            "convoke.yaml:5:69: groups.assign.fallback: `uniform` is no assignor that Convoke has itself for classic groups; those are range, roundrobin, sticky, cooperative-sticky",
            "convoke.yaml:6:49: groups.assign.fallback: it takes the place of an assignor of yours, and the rule's `assignor` names none",
            "convoke.yaml:7:31: groups.assign.fallback: it takes the place of an assignor of yours, and the rule's `assignor` names none",
        ],
    );
}
