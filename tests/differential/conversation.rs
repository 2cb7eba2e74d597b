//! One conversation, held with both sides at once, step by step.
//!
//! A step is over when all its answers are here: its own, and those of parked joins and syncs that it let go. Whether a request
//! is parked nobody says, so where one may be, a question is asked on another connection, which each coordinator answers after
//! what it had before; then nothing may arrive for [`QUIET`]. One side that answered something which the other
//! has not is waited for much longer, so that only differences are differences.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use convoke::wire::{api, codec};
use convoke_support::Result;
use kafka_protocol::messages::{DescribeGroupsRequest, DescribeGroupsResponse};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use crate::accepted::{self, Then};
use crate::actor::Actors;
use crate::answers::{self, Placement, Viewer};
use crate::change;
use crate::clean_up;
use crate::connection::{Arrival, Connection, QUEUE};
use crate::names::Names;
use crate::probe;
use crate::requests::{self, Speaker, encode, text};
use crate::seen::Seen;
use crate::step::{Ask, Group, Step};
use crate::world::{OWN_TOPIC, Side, Topics, World};

/// Actors of a conversation.
pub const ACTORS: usize = 6;
/// An answer that waits for nothing but a timer of no milliseconds takes less.
const QUIET: Duration = Duration::from_millis(10);
/// An answer that waits for nobody takes far less.
const LIMIT: Duration = Duration::from_secs(10);
/// One side may be so much slower than the other.
const CATCH_UP: Duration = Duration::from_millis(1_500);
/// A connection of the harness's own, for questions that compare nothing.
const CONTROL_LANE: usize = usize::MAX;
/// The steps of such questions.
const CONTROL_STEP: usize = 1 << 20;

/// What arrived of each step's answers in one turn: a text for each.
pub type Arrived = BTreeMap<usize, String>;

/// One turn: what was said, and what both sides answered meanwhile.
#[derive(Debug, Clone)]
pub struct Turn {
    pub step: usize,
    /// The broker's answers and Convoke's.
    pub answers: [Arrived; 2],
}

/// How a conversation ended.
#[derive(Debug)]
pub enum End {
    Same,
    /// Something that is accepted, after which the two sides are no longer in the same state.
    Accepted,
    Differs,
}

/// A conversation that was held.
#[derive(Debug)]
pub struct Held {
    /// What was said, on the connections that it went out on.
    pub steps: Vec<Step>,
    pub turns: Vec<Turn>,
    pub end: End,
    /// Which accepted differences were met.
    pub met: BTreeSet<&'static str>,
}

/// Holds a conversation; `token` makes its groups new ones.
pub async fn hold(world: &World, token: &str, placement: Placement, steps: &[Step]) -> Result<Held> {
    let mut talk = Talk {
        world,
        steps: steps.to_vec(),
        placement,
        sides: [
            Talker::new(world, Side::Broker, token)?,
            Talker::new(world, Side::Convoke, token)?,
        ],
        said: 0,
        forgiven: BTreeSet::new(),
    };
    let mut held = Held {
        steps: Vec::new(),
        turns: Vec::new(),
        end: End::Same,
        met: BTreeSet::new(),
    };
    for step in 0..steps.len() {
        let turn = talk.take_turn(step).await?;
        held.turns.push(turn);
        if !talk.judge(&mut held) {
            break;
        }
    }
    talk.clean_up().await?;
    held.steps = talk.steps;
    held.steps.truncate(held.turns.len());
    Ok(held)
}

struct Talk<'a> {
    world: &'a World,
    steps: Vec<Step>,
    placement: Placement,
    sides: [Talker<'a>; 2],
    /// How many steps were said.
    said: usize,
    /// Steps that one side answered and the other may or may not answer later.
    forgiven: BTreeSet<usize>,
}

impl Talk<'_> {
    async fn take_turn(&mut self, step: usize) -> Result<Turn> {
        match self.steps[step].ask {
            Ask::Silence { ms } => sleep(Duration::from_millis(ms)).await,
            Ask::Topic(change) => change::topic(self.world, &mut self.sides, change).await?,
            Ask::ShortSessions => change::sessions(&mut self.sides).await?,
            _ => {
                self.steps[step].lane = self.lane(step);
                for side in &mut self.sides {
                    side.say(step, &self.steps[step]).await?;
                }
            }
        }
        self.said = step + 1;
        self.settle(step).await?;
        let mut answers = [Arrived::new(), Arrived::new()];
        for (arrived, side) in answers.iter_mut().zip(&mut self.sides) {
            *arrived = side.take_answers(&self.steps, self.placement)?;
        }
        Ok(Turn { step, answers })
    }

    /// The connection for a step: its own, or the next that is free if too much waits there. When requests wait behind parked ones
    /// on two connections, chance decides which is heard first.
    fn lane(&self, step: usize) -> usize {
        let waiting = |lane: usize| {
            let waiting = self.sides.iter().flat_map(|side| &side.waiting);
            waiting
                .filter(|other| self.steps[**other].lane == lane)
                .collect::<BTreeSet<_>>()
                .len()
        };
        let lanes: BTreeSet<usize> = self.steps[..step].iter().map(|step| step.lane).collect();
        let is_one_behind = lanes.into_iter().any(|lane| waiting(lane) > 1);
        let own = self.steps[step].lane;
        let may_wait = if is_one_behind { 0 } else { 1 };
        let mut candidates = (own..).step_by(ACTORS);
        candidates.find(|lane| waiting(*lane) <= may_wait).unwrap_or(own)
    }

    /// Waits until both sides have answered all that they are going to.
    async fn settle(&mut self, step: usize) -> Result<()> {
        let may_park = self.steps[step].ask.may_park();
        for side in &mut self.sides {
            if !may_park && !side.is_behind_another(step, &self.steps) {
                side.until(LIMIT, |side| !side.waiting.contains(&step)).await;
            }
        }
        if self.all_answered() {
            return Ok(());
        }
        for side in &mut self.sides {
            side.ask_after_all_else(self.steps[step].group).await?;
        }
        let until = Instant::now() + CATCH_UP;
        loop {
            let [first, second] = &mut self.sides;
            let arrival = tokio::select! {
                arrival = first.arrivals.recv() => arrival.map(|arrival| first.note(arrival)),
                arrival = second.arrivals.recv() => arrival.map(|arrival| second.note(arrival)),
                () = sleep(QUIET) => None,
            };
            if self.all_answered() || (arrival.is_none() && !self.is_about_to_answer(step, until).await?) {
                break;
            }
        }
        let deadline = Instant::now() + CATCH_UP;
        while self.waiting(0) != self.waiting(1) {
            let [first, second] = &mut self.sides;
            let arrival = tokio::select! {
                arrival = first.arrivals.recv() => arrival.map(|arrival| first.note(arrival)),
                arrival = second.arrivals.recv() => arrival.map(|arrival| second.note(arrival)),
                () = sleep_until(deadline) => None,
            };
            if arrival.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// Whether, before that time, a side has a round whose members have all joined: its timer of no milliseconds is late.
    async fn is_about_to_answer(&mut self, step: usize, until: Instant) -> Result<bool> {
        if Instant::now() > until || !matches!(self.steps[step].ask, Ask::Join { .. }) {
            return Ok(false);
        }
        let group = self.steps[step].group;
        for side in &mut self.sides {
            let parked = side.waiting.iter().filter(|step| {
                let step = self.steps.get(**step);
                step.is_some_and(|step| step.group == group && matches!(step.ask, Ask::Join { .. }))
            });
            let parked = parked.count();
            if parked > 0
                && side
                    .ask_after_all_else(group)
                    .await?
                    .is_some_and(|members| members <= parked)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn waiting(&self, side: usize) -> BTreeSet<usize> {
        &self.sides[side].waiting - &self.forgiven
    }

    fn all_answered(&self) -> bool {
        self.waiting(0).is_empty() && self.waiting(1).is_empty()
    }

    /// Compares the last turn's answers. Says whether the conversation goes on.
    fn judge(&mut self, held: &mut Held) -> bool {
        let Some(turn) = held.turns.last() else {
            return true;
        };
        let [broker, convoke] = &turn.answers;
        let steps: BTreeSet<usize> = broker.keys().chain(convoke.keys()).copied().collect();
        for step in steps {
            if self.forgiven.contains(&step) {
                continue;
            }
            let seen = Seen {
                is_old: self.world.is_old(),
                steps: &self.steps,
                step,
                turns: &held.turns,
                broker: broker.get(&step).map(String::as_str),
                convoke: convoke.get(&step).map(String::as_str),
            };
            let Some(accepted) = accepted::find(&seen) else {
                if seen.broker == seen.convoke {
                    continue;
                }
                held.end = End::Differs;
                return false;
            };
            held.met.insert(accepted.name);
            if accepted.then != Then::GoesOn {
                held.end = End::Accepted;
                return false;
            }
            for side in 0..self.sides.len() {
                if turn.answers[side].contains_key(&step) {
                    continue;
                }
                let lane = self.steps[step].lane;
                if self.has_more_on(lane, step) {
                    // The other side hears what this one does not.
                    held.end = End::Accepted;
                    return false;
                }
                self.forgiven.insert(step);
                self.sides[side].waiting.remove(&step);
                self.sides[side].lanes.remove(&lane);
            }
        }
        true
    }

    /// Whether more was said on a connection after this step.
    fn has_more_on(&self, lane: usize, step: usize) -> bool {
        let said = self.steps.iter().enumerate().take(self.said).skip(step + 1);
        said.into_iter().any(|(_, step)| step.lane == lane)
    }

    /// Takes everybody out of the groups and the groups away, so that neither side grows.
    async fn clean_up(&mut self) -> Result<()> {
        let groups: BTreeSet<usize> = self.steps.iter().flat_map(|step| step.groups()).collect();
        for side in &mut self.sides {
            for group in groups.iter().chain(&probe::PROBES) {
                clean_up::group(side, *group).await?;
            }
        }
        if self.steps.iter().any(Step::commits_namelessly) {
            // There is one such group for both, since Convoke deletes it at its upstream, too.
            for side in &mut self.sides {
                clean_up::nameless(side).await?;
            }
        }
        if self.sides[0].topics.own_partitions() > 0 {
            self.world.admin.delete(self.sides[0].topics.called(OWN_TOPIC)).await?;
        }
        Ok(())
    }
}

/// One side of a conversation.
pub struct Talker<'a> {
    world: &'a World,
    address: String,
    pub actors: Actors,
    pub names: Names,
    pub topics: Topics,
    lanes: BTreeMap<usize, Connection>,
    arrivals: mpsc::Receiver<Arrival>,
    report: mpsc::Sender<Arrival>,
    /// Steps without an answer.
    waiting: BTreeSet<usize>,
    /// Answers that were not looked at yet.
    arrived: BTreeMap<usize, Option<Bytes>>,
    control_steps: usize,
}

impl<'a> Talker<'a> {
    fn new(world: &'a World, side: Side, token: &str) -> Result<Self> {
        let (report, arrivals) = mpsc::channel(QUEUE);
        Ok(Self {
            world,
            address: world.address(side)?,
            actors: Actors::new(ACTORS),
            names: Names::new(format!("{}{token}-", side.prefix())),
            topics: world.topics.with_own(&format!("own-{token}")),
            lanes: BTreeMap::new(),
            arrivals,
            report,
            waiting: BTreeSet::new(),
            arrived: BTreeMap::new(),
            control_steps: 0,
        })
    }

    pub fn has_consumer_groups(&self) -> bool {
        !self.world.is_old()
    }

    async fn say(&mut self, number: usize, step: &Step) -> Result<()> {
        let api_key = step.ask.api_key().ok_or("nothing is said")?;
        let speaker = Speaker {
            actors: &self.actors,
            names: &self.names,
            topics: &self.topics,
        };
        let body = requests::body(step, speaker).map_err(|error| format!("{step:?}: {error}"))?;
        let client_id = step.client_id(number);
        self.open(step.lane).await?;
        self.send(step.lane, number, api_key, step.version, &client_id, &body)
            .await
    }

    async fn open(&mut self, lane: usize) -> Result<()> {
        if !self.lanes.contains_key(&lane) {
            let connection = Connection::open(&self.address, self.report.clone()).await?;
            self.lanes.insert(lane, connection);
            // A question that any side answers, so that the connection is one before something is said on it.
            self.ask_on(lane, api::API_VERSIONS, 0, &[]).await?;
        }
        Ok(())
    }

    async fn send(
        &mut self,
        lane: usize,
        step: usize,
        api_key: i16,
        version: i16,
        client_id: &str,
        body: &[u8],
    ) -> Result<()> {
        self.waiting.insert(step);
        let connection = self.lanes.get_mut(&lane).ok_or("no connection")?;
        connection.send(step, api_key, version, client_id, body).await
    }

    /// Whether an earlier request on the same connection has no answer yet.
    fn is_behind_another(&self, step: usize, steps: &[Step]) -> bool {
        let lane = |step: &usize| steps.get(*step).map(|step| step.lane);
        self.waiting
            .iter()
            .any(|other| *other < step && lane(other) == lane(&step))
    }

    fn note(&mut self, arrival: Arrival) {
        self.waiting.remove(&arrival.step);
        self.arrived.insert(arrival.step, arrival.body);
    }

    async fn until(&mut self, limit: Duration, is_over: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + limit;
        while !is_over(self) {
            match timeout_at(deadline, self.arrivals.recv()).await {
                Ok(Some(arrival)) => self.note(arrival),
                _ => return,
            }
        }
    }

    /// A question that a coordinator answers after what it was asked before: how many members a group has whose round is not
    /// over.
    async fn ask_after_all_else(&mut self, group: Group) -> Result<Option<usize>> {
        let Group::Known(group) = group else {
            return Ok(None);
        };
        let request = DescribeGroupsRequest::default().with_groups(vec![text(&self.names.group(group)).into()]);
        let answer = self.control(api::DESCRIBE_GROUPS, 0, &encode(&request, 0)?).await?;
        let described: DescribeGroupsResponse = codec::decode_response(0, answer)?;
        let group = described.groups.first();
        let group = group.filter(|group| group.group_state.as_str() == "PreparingRebalance");
        Ok(group.map(|group| group.members.len()))
    }

    /// Asks something that is not part of the conversation.
    pub async fn control(&mut self, api_key: i16, version: i16, body: &[u8]) -> Result<Bytes> {
        self.open(CONTROL_LANE).await?;
        self.ask_on(CONTROL_LANE, api_key, version, body).await
    }

    async fn ask_on(&mut self, lane: usize, api_key: i16, version: i16, body: &[u8]) -> Result<Bytes> {
        let step = CONTROL_STEP + self.control_steps;
        self.control_steps += 1;
        self.send(lane, step, api_key, version, "control", body).await?;
        self.until(LIMIT, |side| !side.waiting.contains(&step)).await;
        let answer = self.arrived.remove(&step).flatten();
        answer.ok_or_else(|| format!("{} does not answer {api_key} v{version}", self.address).into())
    }

    /// What arrived since the last turn, as text. All of it is learnt from before any of it is shown, since one answer may
    /// name the member that another one is about.
    fn take_answers(&mut self, steps: &[Step], placement: Placement) -> Result<Arrived> {
        let mut read = Vec::new();
        for (number, body) in std::mem::take(&mut self.arrived) {
            let step = steps.get(number).ok_or("an answer to nothing")?;
            let answer = match (body, step.ask.api_key()) {
                (Some(body), Some(api_key)) => {
                    let answer = answers::read(api_key, step.version, body)
                        .map_err(|error| format!("the answer of {} to {step:?}: {error}", self.address))?;
                    self.actors.learn(step.actor, &answer, &mut self.names, &self.topics);
                    Some(answer)
                }
                _ => {
                    self.lanes.remove(&step.lane);
                    None
                }
            };
            read.push((number, answer));
        }
        let viewer = Viewer {
            names: &self.names,
            address: &self.address,
            placement,
            is_old: self.world.is_old(),
        };
        let show = |answer| match answer {
            Some(answer) => viewer.show(answer).replace(self.topics.called(OWN_TOPIC), OWN_TOPIC),
            None => "closed the connection".to_owned(),
        };
        Ok(read
            .into_iter()
            .map(|(number, answer)| (number, show(answer)))
            .collect())
    }
}
