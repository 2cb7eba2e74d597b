use super::*;

/// Each message of the listing that kafka-clients printed: its fields as (path, type, first version, last version).
fn listing(heading: &str) -> Vec<(&'static str, &'static str, i16, i16)> {
    let texts = [
        include_str!("../../../tests/golden/message_schemas.txt"),
        include_str!("../../../tests/golden/assignment_messages.txt"),
    ];
    let mut lines = texts
        .into_iter()
        .flat_map(str::lines)
        .skip_while(|line| !line.starts_with(heading));
    lines.next().unwrap_or_else(|| panic!("{heading} is in the listing"));
    lines.take_while(|line| line.starts_with(' ')).map(parse).collect()
}

fn parse(line: &'static str) -> (&'static str, &'static str, i16, i16) {
    let words: Vec<_> = line.split_whitespace().collect();
    let (first, last) = words[2].split_once('-').expect("a range");
    (
        words[0],
        words[1],
        first.parse().expect("a version"),
        last.parse().expect("a version"),
    )
}

/// Whether Kafka does not have the field: our tags are far above its own.
fn is_our_own(field: &Field) -> bool {
    field.tag.is_some_and(|tag| tag >= 20_000)
}

/// The lines that the listing should have for one version of a table.
fn flatten(fields: &[Field], version: i16, path: &str, lines: &mut Vec<(String, String)>) {
    for tagged in [false, true] {
        for field in fields
            .iter()
            .filter(|field| field.is_in(version) && field.tag.is_some() == tagged && !is_our_own(field))
        {
            let tag = field.tag.map(|tag| format!("@{tag}")).unwrap_or_default();
            let path = format!("{path}{}{tag}", field.name);
            let nullable = if field.is_nullable(version) { "?" } else { "" };
            lines.push((path.clone(), format!("{}{nullable}", type_name(field.kind))));
            match field.kind {
                Kind::Structs(fields) => flatten(fields, version, &format!("{path}[]."), lines),
                Kind::Struct(fields) => flatten(fields, version, &format!("{path}."), lines),
                _ => {}
            }
        }
    }
}

fn type_name(kind: Kind) -> String {
    match kind {
        Kind::Array(element) => format!("array:{}", type_name(*element)),
        Kind::Structs(_) => "structs".to_owned(),
        Kind::Struct(_) => "struct".to_owned(),
        plain => format!("{plain:?}").to_lowercase(),
    }
}

#[test]
fn tables_are_those_of_kafka_clients_in_every_version() {
    for schema in ALL {
        let api = crate::wire::api::find(schema.api_key).expect("decided on");
        let (name, kind) = schema.name.split_once(' ').expect("a name and a kind");
        assert_eq!(name, api.name);
        let flexible = if schema.flexible_since == NEVER {
            "never".to_owned()
        } else {
            schema.flexible_since.to_string()
        };
        let heading = format!(
            "{kind} {} {name} {}-{} flexible {flexible}",
            api.key, schema.min, schema.max
        );
        let listed = listing(&heading);
        for version in schema.min..=schema.max {
            let mut ours = Vec::new();
            flatten(schema.fields, version, "", &mut ours);
            let theirs: Vec<_> = listed
                .iter()
                .filter(|(_, _, first, last)| (*first..=*last).contains(&version))
                .map(|(path, kind, _, _)| ((*path).to_owned(), (*kind).to_owned()))
                .collect();
            assert_eq!(ours, theirs, "{} v{version}", schema.name);
        }
        assert_eq!(
            schema.flexible_since,
            api.flexible_since.unwrap_or(NEVER),
            "{}",
            schema.name
        );
    }
}

#[test]
fn what_ends_here_is_decoded_in_every_version_that_is_offered() {
    use crate::wire::api::{APIS, Route};
    for api in APIS.iter().filter(|api| api.route == Route::Own) {
        let schema = ALL
            .iter()
            .find(|schema| schema.api_key == api.key && schema.name.ends_with("request"));
        let schema = schema.unwrap_or_else(|| panic!("{} requests have no table", api.name));
        assert_eq!((schema.min, schema.max), (api.min, api.max), "{}", schema.name);
    }
}

#[test]
fn what_may_end_here_is_decoded_in_every_version_that_can_name_a_group() {
    use crate::wire::api::{APIS, DESCRIBE_CONFIGS, Route};
    for api in APIS.iter().filter(|api| api.route == Route::Split) {
        let schema = ALL
            .iter()
            .find(|schema| schema.api_key == api.key && schema.name.ends_with("request"));
        let schema = schema.unwrap_or_else(|| panic!("{} requests have no table", api.name));
        // DescribeConfigs v0 is older than resource types beside topics and brokers.
        let min = if api.key == DESCRIBE_CONFIGS { 1 } else { api.min };
        assert_eq!((schema.min, schema.max), (min, api.max), "{}", schema.name);
    }
}

#[test]
fn every_table_is_in_the_list() {
    let files = [
        include_str!("requests.rs"),
        include_str!("answers.rs"),
        include_str!("assignment.rs"),
        include_str!("rewritten.rs"),
    ];
    let tables = files.iter().flat_map(|file| file.matches(": Schema = Schema {"));
    assert_eq!(tables.count(), ALL.len());
}
