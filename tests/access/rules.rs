//! The users, what the ACLs say of them, and the groups and topics that they are about.

use convoke_support::Result;
use kafka_protocol::messages::CreateAclsRequest;
use kafka_protocol::messages::create_acls_request::AclCreation;
use kafka_protocol::protocol::StrBytes;

use crate::client::Client;

/// Every user has the same.
pub const PASSWORD: &str = "secret";

/// Groups are named twice, once for the requests that go straight to the broker and once for those through Convoke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Broker,
    Convoke,
}

impl Side {
    pub const BOTH: [Self; 2] = [Self::Broker, Self::Convoke];

    /// The name of a group on this side. The group without a name has none to be told apart by.
    pub fn group(self, name: &str) -> String {
        match self {
            _ if name.is_empty() => String::new(),
            Self::Broker => format!("b-{name}"),
            Self::Convoke => format!("c-{name}"),
        }
    }
}

/// Two groups with committed offsets, one that starts with what `prefixed` may read, one with a member, one that does not
/// exist, and the one without a name.
pub const GROUPS: [&str; 6] = ["one", "two", "team-a", BUSY, "absent", ""];
/// The group with a member.
pub const BUSY: &str = "busy";
/// The groups that have offsets.
pub const COMMITTED: [&str; 3] = ["one", "two", "team-a"];
/// Topics that exist; `absent` and `open-absent` do not.
pub const TOPICS: [&str; 2] = ["open", "shut"];
/// Topics that requests are about.
pub const ASKED_TOPICS: [&str; 4] = ["open", "shut", "absent", "open-absent"];

pub const USERS: [&str; 11] = [
    "admin",
    "reader",
    "describer",
    "deleter",
    "prefixed",
    "wild",
    "denied",
    "blind",
    "barred",
    "lister",
    "nobody",
];

const TOPIC: i8 = 2;
const GROUP: i8 = 3;
const CLUSTER: i8 = 4;
const LITERAL: i8 = 3;
const PREFIXED: i8 = 4;
const ALL: i8 = 2;
const READ: i8 = 3;
const DELETE: i8 = 6;
const DESCRIBE: i8 = 8;
const DESCRIBE_CONFIGS: i8 = 10;
const ALTER_CONFIGS: i8 = 11;
const DENY: i8 = 2;
const ALLOW: i8 = 3;

struct Rule {
    user: &'static str,
    resource: (i8, i8, &'static str),
    operation: i8,
    permission: i8,
}

const fn rule(user: &'static str, permission: i8, operation: i8, resource: (i8, i8, &'static str)) -> Rule {
    Rule {
        user,
        resource,
        operation,
        permission,
    }
}

const fn group(name: &'static str) -> (i8, i8, &'static str) {
    (GROUP, LITERAL, name)
}

const fn topic(name: &'static str) -> (i8, i8, &'static str) {
    (TOPIC, LITERAL, name)
}

const RULES: &[Rule] = &[
    // All that Convoke's own user needs.
    rule("convoke", ALLOW, DESCRIBE_CONFIGS, (CLUSTER, LITERAL, "kafka-cluster")),
    rule("convoke", ALLOW, DESCRIBE, group("*")),
    rule("convoke", ALLOW, DESCRIBE, topic("*")),
    rule("reader", ALLOW, READ, group("one")),
    rule("reader", ALLOW, READ, topic("open")),
    rule("describer", ALLOW, DESCRIBE, group("one")),
    rule("describer", ALLOW, DESCRIBE, topic("open")),
    rule("deleter", ALLOW, DELETE, group("one")),
    rule("deleter", ALLOW, READ, topic("open")),
    rule("prefixed", ALLOW, READ, (GROUP, PREFIXED, "team-")),
    rule("prefixed", ALLOW, READ, (TOPIC, PREFIXED, "open")),
    rule("wild", ALLOW, READ, group("*")),
    rule("wild", ALLOW, DELETE, group("*")),
    rule("wild", ALLOW, READ, topic("*")),
    rule("denied", ALLOW, READ, group("*")),
    rule("denied", ALLOW, DELETE, group("*")),
    rule("denied", DENY, READ, group("one")),
    rule("denied", DENY, DELETE, group("two")),
    rule("denied", ALLOW, READ, topic("*")),
    rule("denied", DENY, READ, topic("shut")),
    // May use what it may not describe.
    rule("blind", ALLOW, READ, group("one")),
    rule("blind", ALLOW, DELETE, group("one")),
    rule("blind", DENY, DESCRIBE, group("one")),
    rule("blind", ALLOW, READ, topic("*")),
    rule("blind", DENY, DESCRIBE, topic("open")),
    rule("barred", ALLOW, ALL, group("*")),
    rule("barred", DENY, ALL, group("one")),
    rule("barred", ALLOW, ALL, topic("*")),
    rule("barred", DENY, ALL, topic("shut")),
    rule("lister", ALLOW, DESCRIBE, (CLUSTER, LITERAL, "kafka-cluster")),
];

/// Makes every rule, those about groups for both sides.
pub async fn create(admin: &Client) -> Result<()> {
    let mut creations = Vec::new();
    for rule in RULES {
        let (resource_type, _, name) = rule.resource;
        if resource_type == GROUP && name != "*" {
            creations.extend(Side::BOTH.map(|side| creation(rule, &side.group(name))));
        } else {
            creations.push(creation(rule, name));
        }
    }
    add(admin, creations).await
}

/// Lets a user read a group.
pub async fn allow_reading(admin: &Client, user: &'static str, group_id: &str) -> Result<()> {
    add(admin, vec![creation(&rule(user, ALLOW, READ, group("")), group_id)]).await
}

/// Denies a user reading a group.
pub async fn deny_reading(admin: &Client, user: &'static str, group_id: &str) -> Result<()> {
    add(admin, vec![creation(&rule(user, DENY, READ, group("")), group_id)]).await
}

/// Lets a user see and change what a group was given for itself.
pub async fn allow_configs_of_group(admin: &Client, user: &'static str, group_id: &'static str) -> Result<()> {
    let rules = [DESCRIBE_CONFIGS, ALTER_CONFIGS].map(|operation| rule(user, ALLOW, operation, group(group_id)));
    add(admin, rules.map(|rule| creation(&rule, group_id)).to_vec()).await
}

/// Lets a user see and change the settings of the cluster, and know of some groups.
pub async fn allow_configs_of_cluster(admin: &Client, user: &'static str, group_ids: &[&'static str]) -> Result<()> {
    let cluster = (CLUSTER, LITERAL, "kafka-cluster");
    let of_cluster = [DESCRIBE_CONFIGS, ALTER_CONFIGS].map(|operation| rule(user, ALLOW, operation, cluster));
    let of_groups = group_ids
        .iter()
        .map(|group_id| rule(user, ALLOW, DESCRIBE, group(group_id)));
    let rules = of_cluster.into_iter().chain(of_groups);
    add(admin, rules.map(|rule| creation(&rule, rule.resource.2)).collect()).await
}

async fn add(admin: &Client, creations: Vec<AclCreation>) -> Result<()> {
    let request = CreateAclsRequest::default().with_creations(creations);
    let answer = admin.ask(3, &request).await?;
    match answer.results.iter().find(|result| result.error_code != 0) {
        Some(result) => Err(format!("an ACL was not made: {result:?}").into()),
        None => Ok(()),
    }
}

fn creation(rule: &Rule, name: &str) -> AclCreation {
    let (resource_type, pattern, _) = rule.resource;
    let string = |text: String| StrBytes::from_string(text);
    AclCreation::default()
        .with_resource_type(resource_type)
        .with_resource_name(string(name.to_owned()))
        .with_resource_pattern_type(pattern)
        .with_principal(string(format!("User:{}", rule.user)))
        .with_host(StrBytes::from_static_str("*"))
        .with_operation(rule.operation)
        .with_permission_type(rule.permission)
}
