//! Who may log in at a broker's SASL listener, and how.

use std::collections::BTreeMap;

/// The users of a SASL listener: name and password. `convoke` is Convoke's own; `admin` is a super user, as is `convoke`.
pub const USERS: [(&str, &str); 4] = [
    ("admin", "admin-secret"),
    ("convoke", "convoke-secret"),
    ("alice", "alice-secret"),
    ("bob", "bob-secret"),
];

const PLAIN_MODULE: &str = "org.apache.kafka.common.security.plain.PlainLoginModule required";

/// The properties of a client that is the super user.
pub(super) fn admin_client() -> String {
    let (user, password) = USERS[0];
    format!(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n\
         sasl.jaas.config={PLAIN_MODULE} username=\"{user}\" password=\"{password}\";\n"
    )
}

/// What `StorageTool format` is told, so that the users exist for SCRAM from the start.
pub(super) fn scram_arguments() -> Vec<String> {
    let mut arguments = Vec::new();
    for (user, password) in USERS {
        for mechanism in ["SCRAM-SHA-256", "SCRAM-SHA-512"] {
            arguments.push("--add-scram".to_owned());
            arguments.push(format!("{mechanism}=[name={user},password={password}]"));
        }
    }
    arguments
}

/// The broker's side: every mechanism, with the users and, for PLAIN, `further` ones.
pub(super) fn listener(further: &[(String, String)]) -> BTreeMap<String, String> {
    let (admin, admin_password) = USERS[0];
    let users = USERS.map(|(user, password)| (user.to_owned(), password.to_owned()));
    let users: Vec<_> = users
        .iter()
        .chain(further)
        .map(|(user, password)| format!("user_{user}=\"{password}\""))
        .collect();
    let plain = format!(
        "{PLAIN_MODULE} username=\"{admin}\" password=\"{admin_password}\" {};",
        users.join(" ")
    );
    let prefix = "listener.name.client";
    let oauth = "org.apache.kafka.common.security.oauthbearer";
    let handler = format!("{oauth}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler");
    [
        (
            "sasl.enabled.mechanisms".to_owned(),
            "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER".to_owned(),
        ),
        ("sasl.mechanism.inter.broker.protocol".to_owned(), "PLAIN".to_owned()),
        (format!("{prefix}.plain.sasl.jaas.config"), plain),
        (
            format!("{prefix}.scram-sha-256.sasl.jaas.config"),
            "org.apache.kafka.common.security.scram.ScramLoginModule required;".to_owned(),
        ),
        (
            format!("{prefix}.scram-sha-512.sasl.jaas.config"),
            "org.apache.kafka.common.security.scram.ScramLoginModule required;".to_owned(),
        ),
        (
            format!("{prefix}.oauthbearer.sasl.jaas.config"),
            format!("{oauth}.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub=\"{admin}\";"),
        ),
        (
            format!("{prefix}.oauthbearer.sasl.server.callback.handler.class"),
            handler,
        ),
    ]
    .into_iter()
    .collect()
}
