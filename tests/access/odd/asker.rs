//! One side of the comparison: sends what is odd, and makes of the answers what can be compared.

use std::time::Duration;

use bytes::Bytes;
use convoke::upstream::connection::CLIENT_ID;
use convoke::wire::api;
use convoke_support::Result;
use kafka_protocol::messages::GroupId;
use tokio::time::timeout;

use super::requests::text;
use crate::answers;
use crate::client::Client;
use crate::rules::Side;
use crate::world::{self, World};

/// A broker answers in milliseconds whatever it answers.
const PATIENCE: Duration = Duration::from_secs(3);

/// Stands in the text of a request for a byte that is not UTF-8.
const NOT_UTF_8: char = '~';
/// The same for a second such byte.
const NEITHER: char = '^';

/// One side: its connection, and what its requests are about.
pub struct Asker<'a> {
    world: &'a World,
    side: Side,
    user: &'static str,
    client: Client,
    /// The id that the side's member was given.
    pub member_id: String,
}

/// What comes of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    Answer(Vec<u8>),
    Closed,
    /// Not for [`PATIENCE`].
    Nothing,
}

impl<'a> Asker<'a> {
    /// Logs in; the admin becomes a member.
    pub async fn start(world: &'a World, side: Side, user: &'static str) -> Result<Self> {
        let client = world.login(side, user).await?;
        let mut asker = Asker {
            world,
            side,
            user,
            client,
            member_id: String::new(),
        };
        if user == "admin" {
            asker.join().await?;
        }
        Ok(asker)
    }

    /// The id of a group of this side; every name begins with "odd".
    pub fn group(&self, name: &str) -> GroupId {
        text(&self.side.group(name)).into()
    }

    pub async fn send(&mut self, api_key: i16, version: i16, body: &[u8]) -> Result<Outcome> {
        let body: Vec<u8> = body
            .iter()
            .map(|byte| match char::from(*byte) {
                NOT_UTF_8 => 0xff,
                NEITHER => 0xfe,
                _ => *byte,
            })
            .collect();
        let outcome = match timeout(PATIENCE, self.client.raw(api_key, version, &body)).await {
            Ok(Ok(answer)) => return self.normal(api_key, version, answer),
            Ok(Err(error)) if error.to_string().contains("closed the connection") => Outcome::Closed,
            Ok(Err(error)) => return Err(error),
            Err(_) => Outcome::Nothing,
        };
        self.client = self.world.login(self.side, self.user).await?;
        Ok(outcome)
    }

    /// An answer in which both sides' groups and members are called the same. Groups, and all topics of one, stand in the order
    /// of Kafka's hash maps, so those are sorted.
    fn normal(&self, api_key: i16, version: i16, answer: Bytes) -> Result<Outcome> {
        const SORTED: [i16; 5] = [
            api::OFFSET_FETCH,
            api::DESCRIBE_GROUPS,
            api::LIST_GROUPS,
            api::DELETE_GROUPS,
            api::CONSUMER_GROUP_DESCRIBE,
        ];
        if SORTED.contains(&api_key) {
            let sorted = answers::normal(self.side, api_key, version, answer)?;
            return Ok(Outcome::Answer(self.same_names(sorted.as_bytes())));
        }
        Ok(Outcome::Answer(self.same_names(&answer)))
    }

    fn same_names(&self, answer: &[u8]) -> Vec<u8> {
        let mut normal = answer.to_vec();
        let own = self.side.group("odd");
        let given = format!("{CLIENT_ID}-");
        for at in 0..normal.len() {
            if normal[at..].starts_with(own.as_bytes()) {
                normal[at] = b'?';
            }
            if normal[at..].starts_with(given.as_bytes()) {
                let end = (at + given.len() + 36).min(normal.len());
                normal[at + given.len()..end].fill(b'?');
            }
        }
        normal
    }

    /// Makes a member of the group "odd-busy".
    async fn join(&mut self) -> Result<()> {
        let joined = world::join(&self.client, self.group("odd-busy")).await?;
        self.member_id = joined.member_id.to_string();
        match joined.error_code {
            0 => Ok(()),
            error => Err(format!("{:?}: no member: {error}", self.side).into()),
        }
    }
}

impl Outcome {
    /// For people.
    pub fn show(&self) -> String {
        match self {
            Self::Answer(answer) => {
                let shown = answer.iter().flat_map(|byte| std::ascii::escape_default(*byte));
                shown.map(char::from).collect()
            }
            Self::Closed => "closed".to_owned(),
            Self::Nothing => "nothing".to_owned(),
        }
    }
}
