//! The rules of client-side assignors.

use convoke::config::AssignorConfig;

use super::{MINIMAL, expect_messages, load_text};

fn rule(name: &str, groups: &[&str], always: bool) -> AssignorConfig {
    AssignorConfig {
        name: name.to_owned(),
        groups: groups.iter().map(|group| (*group).to_owned()).collect(),
        always,
    }
}

#[test]
fn a_name_is_for_every_group_and_not_always_unless_a_rule_says_so() {
    let text = "\
assignors:
  - name: lag-balanced
  - {name: zones, groups: [orders-*, billing], always: true}
  - name: weights
    groups: payments
    always: false
limits: {assignor_metadata_max: 1KiB}
";
    let loaded = load_text(format!("{MINIMAL}{text}"), &[], &[]).expect("rules");
    let expected = [
        rule("lag-balanced", &["*"], false),
        rule("zones", &["orders-*", "billing"], true),
        rule("weights", &["payments"], false),
    ];
    assert_eq!(loaded.config.assignors, expected);
    assert_eq!(loaded.config.limits.assignor_metadata_max, 1024);
    let line = "[{name: zones, groups: [orders-*, billing], always: true}]";
    let loaded = load_text(MINIMAL, &[("CONVOKE_ASSIGNORS", line)], &[]).expect("rules");
    assert_eq!(loaded.config.assignors, expected[1..2]);
    assert_eq!(loaded.config.limits.assignor_metadata_max, 64 * 1024);
    assert_eq!(load_text(MINIMAL, &[], &[]).expect("none").config.assignors, []);
}

#[test]
fn everything_that_is_wrong_with_rules_is_said_at_once() {
    let text = "\
assignors:
  - groups: [orders-*]
  - name: ''
  - name: uniform
  - name: sticky
  - name: lag
    group: [x]
    always: perhaps
  - name: lag
    groups: []
  - name: zones
    groups: ['a*', '*b']
    always: [true]
limits: {assignor_metadata_max: 2MiB}
";
    expect_messages(
        &format!("{MINIMAL}{text}"),
        &[
            "convoke.yaml:4:5: assignors.name: missing; give the name by which members ask for the assignor",
            "convoke.yaml:5:11: assignors.name: it is empty; give the name by which members ask for the assignor",
            "convoke.yaml:6:11: assignors.name: `uniform` is an assignor that Convoke has itself; give yours another name",
            "convoke.yaml:7:11: assignors.name: `sticky` is an assignor that Convoke has itself; give yours another name",
            "convoke.yaml:9:5: assignors.group: unknown key; did you mean groups?",
            "convoke.yaml:10:13: assignors.always: `perhaps` is neither true nor false",
            "convoke.yaml:11:11: assignors.name: `lag` has a rule already (convoke.yaml:8:5); put all its groups there",
            "convoke.yaml:12:13: assignors.groups: an empty list; give at least one, for all `*`",
            "convoke.yaml:14:20: assignors.groups: `*b` is no rule: a group's name, or the beginning of names with one * at its end",
            "convoke.yaml:15:13: assignors.always: expected a single value, found a list",
            "convoke.yaml:16:33: limits.assignor_metadata_max: 2MiB is out of range; it may be 0 to 1048576 bytes",
        ],
    );
}

#[test]
fn a_rule_that_others_come_before_everywhere_is_found() {
    let text = "\
assignors:
  - {name: first, groups: [orders-*, billing], always: true}
  - {name: asked-for, groups: [orders-eu]}
  - {name: hidden, groups: [orders-eu, 'orders-us-*', billing], always: true}
  - {name: shown, groups: [orders-eu, bill], always: true}
  - {name: wider, groups: ['orders*'], always: true}
";
    expect_messages(
        &format!("{MINIMAL}{text}"),
        &[
            "convoke.yaml:6:5: assignors.always: never used: earlier rules (such as that of first) always have these groups",
        ],
    );
}

#[test]
fn rules_beyond_the_hundredth_are_refused_and_so_are_long_names() {
    let rules: Vec<String> = (0..101).map(|number| format!("{{name: a{number}}}")).collect();
    let said = load_text(
        MINIMAL,
        &[],
        &[("--set", "assignors", &format!("[{}]", rules.join(", ")))],
    );
    let said = said.expect_err("too many");
    assert_eq!(
        said,
        "flag --set: assignors: more than 100 rules; use one name for several groups"
    );
    let long = format!("[{{name: {}}}]", "x".repeat(250));
    let said = load_text(MINIMAL, &[], &[("--set", "assignors", &long)]).expect_err("too long");
    assert_eq!(
        said,
        "flag --set: assignors.name: it has 250 bytes, at most 249 are allowed"
    );
}
