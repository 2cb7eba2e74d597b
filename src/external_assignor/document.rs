//! What the user's command reads and writes: one JSON document each way, in version 1.
//!
//! ```json
//! {"version":1,"group":"orders","group_epoch":7,"assignor":"lag-balanced",
//!  "members":[{"id":"m-1","instance_id":null,"rack":"a","topics":["orders"],
//!              "metadata":{"version":0,"data":""},"target":{"orders":[0,1]}}],
//!  "topics":[{"name":"orders","id":"8f6c…","partitions":2,"lag":[15,null],"racks":[["a"],["b"]]}]}
//! ```
//! is answered with
//! ```json
//! {"version":1,"assignment":{"m-1":{"orders":[0,1]}}}
//! ```
//! or `{"version":1,"error":"why there is none"}`. Data are bytes in base64. A member that the assignment leaves out gets
//! nothing; every partition of a topic that somebody subscribes to has to be given to one who does.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

use super::command::beginning;

/// The version of both documents. A new optional field does not change it; what a command of today would misread does.
const VERSION: u32 = 1;

/// One computation, as the command reads it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Question {
    version: u32,
    pub group: String,
    pub group_epoch: i32,
    /// The name that the group's members ask for.
    pub assignor: String,
    pub members: Vec<Member>,
    pub topics: Vec<Topic>,
}

/// A member of the group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Member {
    pub id: String,
    /// `group.instance.id`, where there is one.
    pub instance_id: Option<String>,
    /// `client.rack`, where there is one.
    pub rack: Option<String>,
    /// The names of what it subscribes to; patterns are resolved.
    pub topics: Vec<String>,
    pub metadata: Metadata,
    /// The partitions that it is to have until now, by topic. Ascending.
    pub target: BTreeMap<String, Vec<i32>>,
}

/// Bytes of a client's own for the assignor, or of the assignor's for a client.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metadata {
    pub version: i16,
    #[serde(with = "in_base64", default)]
    pub data: Vec<u8>,
}

/// A topic that somebody subscribes to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Topic {
    pub name: String,
    #[serde(serialize_with = "as_text")]
    pub id: Uuid,
    pub partitions: i32,
    /// Of each partition how many records are behind the group's committed offset; `null` where nothing is committed, or it
    /// could not be told in time.
    pub lag: Vec<Option<i64>>,
    /// Of each partition the racks of the brokers that have a replica (`broker.rack`), in the replicas' order; empty where
    /// brokers have none, or it could not be told in time.
    pub racks: Vec<Vec<String>>,
}

impl Question {
    #[must_use]
    pub fn new(group: String, group_epoch: i32, assignor: String, members: Vec<Member>, topics: Vec<Topic>) -> Self {
        Self {
            version: VERSION,
            group,
            group_epoch,
            assignor,
            members,
            topics,
        }
    }
}

/// What the command answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    Assigned(Vec<Assigned>),
    /// It has no assignment, and says why.
    Failed(String),
}

/// What one member is to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assigned {
    pub member_id: String,
    pub partitions: BTreeMap<Uuid, Vec<i32>>,
    pub metadata: Metadata,
}

/// Why an answer means nothing.
#[derive(Debug, thiserror::Error)]
pub enum NotUnderstood {
    #[error("there is none, nothing was printed")]
    Nothing,
    #[error("it is not the JSON that was asked for: {reason}; it begins {begin:?}")]
    Json { reason: serde_json::Error, begin: String },
    #[error("it says that it is of version {0}, and only version {VERSION} is known")]
    Version(u32),
    #[error("it has neither \"assignment\" nor \"error\", or both")]
    NeitherOrBoth,
    #[error("member {member:?} is given topic {topic:?}, which nobody subscribes to")]
    UnknownTopic { member: String, topic: String },
    #[error("member {0:?} is given metadata and no assignment; give it an empty one ({{}})")]
    MetadataAlone(String),
}

#[derive(Debug, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "an object with \"version\" and \"assignment\" or \"error\""
)]
struct Document {
    version: u32,
    assignment: Option<ByKey<ByKey<Vec<i32>>>>,
    #[serde(default)]
    metadata: ByKey<Metadata>,
    error: Option<String>,
}

impl Question {
    /// Reads the answer to this question. Whether the assignment is sound is for the coordinator to say; here only names are
    /// looked up.
    ///
    /// # Errors
    /// What in it is not to be understood.
    pub fn read_answer(&self, bytes: &[u8]) -> Result<Answer, NotUnderstood> {
        if bytes.trim_ascii().is_empty() {
            return Err(NotUnderstood::Nothing);
        }
        let document: Document = serde_json::from_slice(bytes).map_err(|reason| NotUnderstood::Json {
            reason,
            begin: beginning(bytes),
        })?;
        if document.version != VERSION {
            return Err(NotUnderstood::Version(document.version));
        }
        match (document.assignment, document.error) {
            (Some(assignment), None) => self.assigned(assignment, document.metadata).map(Answer::Assigned),
            (None, Some(error)) => Ok(Answer::Failed(error)),
            _ => Err(NotUnderstood::NeitherOrBoth),
        }
    }

    fn assigned(
        &self,
        ByKey(assignment): ByKey<ByKey<Vec<i32>>>,
        ByKey(mut metadata): ByKey<Metadata>,
    ) -> Result<Vec<Assigned>, NotUnderstood> {
        let ids: BTreeMap<&str, Uuid> = self.topics.iter().map(|topic| (&*topic.name, topic.id)).collect();
        let mut assigned = Vec::with_capacity(assignment.len());
        for (member_id, topics) in assignment {
            let mut partitions = BTreeMap::new();
            for (topic, numbers) in topics.0 {
                let Some(id) = ids.get(topic.as_str()) else {
                    return Err(NotUnderstood::UnknownTopic {
                        member: member_id,
                        topic,
                    });
                };
                partitions.insert(*id, numbers);
            }
            assigned.push(Assigned {
                metadata: metadata.remove(&member_id).unwrap_or_default(),
                member_id,
                partitions,
            });
        }
        match metadata.into_keys().next() {
            Some(member) => Err(NotUnderstood::MetadataAlone(member)),
            None => Ok(assigned),
        }
    }
}

/// An object, in which no key comes twice: of two the first would be lost without a word.
#[derive(Debug)]
struct ByKey<V>(BTreeMap<String, V>);

impl<V> Default for ByKey<V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for ByKey<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys<V>(PhantomData<V>);

        impl<'de, V: Deserialize<'de>> Visitor<'de> for Keys<V> {
            type Value = ByKey<V>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
                let mut by_key = BTreeMap::new();
                while let Some(key) = entries.next_key::<String>()? {
                    if by_key.contains_key(&key) {
                        return Err(A::Error::custom(format_args!("{key:?} comes twice in an object")));
                    }
                    by_key.insert(key, entries.next_value()?);
                }
                Ok(ByKey(by_key))
            }
        }

        deserializer.deserialize_map(Keys(PhantomData))
    }
}

fn as_text<S: Serializer>(id: &Uuid, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(id)
}

mod in_base64 {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::{Engine, STANDARD};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD.decode(text).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDERS: Uuid = Uuid::from_u128(7);

    fn question() -> Question {
        let member = Member {
            id: "m-1".to_owned(),
            instance_id: None,
            rack: Some("a".to_owned()),
            topics: vec!["orders".to_owned()],
            metadata: Metadata {
                version: 3,
                data: vec![1, 2],
            },
            target: BTreeMap::from([("orders".to_owned(), vec![0])]),
        };
        let topic = Topic {
            name: "orders".to_owned(),
            id: ORDERS,
            partitions: 2,
            lag: vec![Some(15), None],
            racks: vec![vec!["a".to_owned()], Vec::new()],
        };
        Question::new("g".to_owned(), 7, "lag".to_owned(), vec![member], vec![topic])
    }

    #[test]
    fn a_question_has_every_field_by_its_documented_name() {
        let written = serde_json::to_value(question()).expect("it is written");
        let expected = serde_json::json!({
            "version": 1, "group": "g", "group_epoch": 7, "assignor": "lag",
            "members": [{
                "id": "m-1", "instance_id": null, "rack": "a", "topics": ["orders"],
                "metadata": {"version": 3, "data": "AQI="}, "target": {"orders": [0]},
            }],
            "topics": [{
                "name": "orders", "id": "00000000-0000-0000-0000-000000000007", "partitions": 2, "lag": [15, null],
                "racks": [["a"], []],
            }],
        });
        assert_eq!(written, expected);
    }

    #[test]
    fn an_assignment_is_read_with_the_topics_ids() {
        let answer = br#"{"version":1,"assignment":{"m-1":{"orders":[0,1]},"m-2":{}},
                          "metadata":{"m-1":{"version":2,"data":"/w=="}}}"#;
        let assigned = |member_id: &str, partitions, metadata| Assigned {
            member_id: member_id.to_owned(),
            partitions,
            metadata,
        };
        let metadata = Metadata {
            version: 2,
            data: vec![0xff],
        };
        assert_eq!(
            question().read_answer(answer).expect("an answer"),
            Answer::Assigned(vec![
                assigned("m-1", BTreeMap::from([(ORDERS, vec![0, 1])]), metadata),
                assigned("m-2", BTreeMap::new(), Metadata::default()),
            ])
        );
    }

    #[test]
    fn a_command_may_say_that_it_has_none() {
        let answer = question().read_answer(br#"{"version":1,"error":"no capacity"}"#);
        assert_eq!(answer.expect("an answer"), Answer::Failed("no capacity".to_owned()));
    }

    #[test]
    fn what_is_wrong_with_an_answer_is_named() {
        for (answer, said) in [
            ("", "there is none, nothing was printed"),
            ("\r\n", "nothing was printed"),
            ("[]", "expected an object with \"version\""),
            (r#"{"version":1,"assignment":[]}"#, "expected an object"),
            ("nonsense", "not the JSON that was asked for: expected"),
            ("hello, Müller", "it begins \"hello, Müller\""),
            (r#"{"version":1,"assignment":{}} {}"#, "trailing characters"),
            (r#"{"assignment":{}}"#, "missing field `version`"),
            (
                r#"{"version":2,"assignment":{}}"#,
                "of version 2, and only version 1 is known",
            ),
            (r#"{"version":1}"#, "neither \"assignment\" nor \"error\""),
            (r#"{"version":1,"assignment":{},"error":"x"}"#, "or both"),
            (r#"{"version":1,"assigment":{}}"#, "unknown field `assigment`"),
            (
                r#"{"version":1,"assignment":{"m-1":{"else":[0]}}}"#,
                r#"member "m-1" is given topic "else", which nobody subscribes to"#,
            ),
            (r#"{"version":1,"assignment":{"m-1":{"orders":[1.5]}}}"#, "expected i32"),
            (
                r#"{"version":1,"assignment":{"m-1":{},"m-1":{}}}"#,
                r#""m-1" comes twice"#,
            ),
            (
                r#"{"version":1,"assignment":{"m-1":{"orders":[0],"orders":[1]}}}"#,
                r#""orders" comes twice"#,
            ),
            (
                r#"{"version":1,"assignment":{},"metadata":{"m-1":{"version":1}}}"#,
                r#"member "m-1" is given metadata and no assignment"#,
            ),
            (
                r#"{"version":1,"assignment":{"m-1":{}},"metadata":{"m-1":{"version":1,"data":"%"}}}"#,
                "Invalid symbol",
            ),
        ] {
            let error = question().read_answer(answer.as_bytes()).expect_err(answer).to_string();
            assert!(error.contains(said), "{answer}: {error}");
        }
    }
}
