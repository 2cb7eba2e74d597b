//! Which conversations are held, how many at a time, and what is said about them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use convoke_support::Result;

use crate::accepted::ACCEPTED;
use crate::conversation::{End, Held, hold};
use crate::generate::{self, Conversation, Kind};
use crate::scripts::{self, Script};
use crate::shrink::shrink;
use crate::transcript;
use crate::world::World;

/// The brokers before and after the coordinator was rewritten.
const BROKERS: [&str; 2] = ["3.8.1", "4.4.0"];
/// Random conversations of each kind in the fixed set.
const FIXED: u64 = 25;
/// The same before an endless run goes to the next broker.
const ROUND: u64 = 200;
/// How often an endless run says how far it is.
const PROGRESS: Duration = Duration::from_secs(10);
/// Differences after which a run stops.
const ENOUGH: usize = 10;

/// What to run.
#[derive(Debug)]
pub struct Plan {
    brokers: Vec<String>,
    kinds: Vec<Kind>,
    first_seed: u64,
    /// Random conversations of each kind with each broker.
    count: u64,
    /// Whether as many follow, and so on.
    is_endless: bool,
    /// How often each of them is held: what only time makes differ does not always.
    times: u64,
    /// Whether this is the fixed set, which has to meet every accepted difference.
    is_fixed: bool,
}

impl Plan {
    pub fn from_arguments(arguments: &[String]) -> Result<Self> {
        let mut plan = Self {
            brokers: BROKERS.map(str::to_owned).to_vec(),
            kinds: Kind::ALL.to_vec(),
            first_seed: 1,
            count: FIXED,
            is_endless: false,
            times: 1,
            is_fixed: true,
        };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{argument} wants a value"));
            match argument.as_str() {
                "--forever" => {
                    plan.count = ROUND;
                    plan.is_endless = true;
                    plan.first_seed = u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?;
                }
                "--seed" => plan.first_seed = value()?.parse()?,
                "--count" => {
                    plan.count = value()?.parse()?;
                    plan.is_endless = false;
                }
                "--times" => plan.times = value()?.parse::<u64>()?.max(1),
                "--broker" => plan.brokers = vec![value()?.clone()],
                "--kind" => {
                    let name = value()?;
                    plan.kinds = vec![Kind::by_name(name).ok_or_else(|| format!("no kind {name}"))?];
                }
                // What cargo passes on to every test.
                other if other.starts_with("--") => return Err(format!("unknown argument {other}").into()),
                _ => {}
            }
            plan.is_fixed = false;
        }
        Ok(plan)
    }
}

/// Runs the plan and prints what came of it.
pub async fn run(plan: &Plan) -> Result<()> {
    let tally = Tally::default();
    let mut first_seed = plan.first_seed;
    loop {
        for broker in &plan.brokers {
            run_with(broker, plan, first_seed, &tally).await?;
        }
        if !plan.is_endless || tally.has_enough() {
            return tally.verdict(plan);
        }
        first_seed += plan.count;
    }
}

async fn run_with(broker: &str, plan: &Plan, first_seed: u64, tally: &Tally) -> Result<()> {
    let world = World::start(broker).await?;
    let kinds: Vec<Kind> = plan
        .kinds
        .iter()
        .copied()
        .filter(|kind| !world.is_old() || kind.is_old())
        .collect();
    if kinds.is_empty() {
        return Ok(());
    }
    let run = Run {
        plan,
        first_seed,
        world: &world,
        kinds,
        tally,
        next: AtomicU64::new(0),
        tokens: AtomicU64::new(0),
        began: Instant::now(),
        said: Mutex::new(Instant::now()),
    };
    run.all().await?;
    run.say_progress();
    Ok(())
}

/// What came of all conversations.
#[derive(Debug, Default)]
struct Tally {
    /// Conversations of each broker and kind, and how many requests each side had in them.
    held: Mutex<BTreeMap<String, (u64, usize)>>,
    met: Mutex<BTreeMap<&'static str, u64>>,
    differences: Mutex<Vec<String>>,
    /// Differences that a second conversation of the same words did not have.
    unsteady: Mutex<Vec<String>>,
}

struct Run<'a> {
    plan: &'a Plan,
    first_seed: u64,
    world: &'a World,
    kinds: Vec<Kind>,
    tally: &'a Tally,
    next: AtomicU64,
    /// What makes each conversation's groups new ones.
    tokens: AtomicU64,
    began: Instant,
    said: Mutex<Instant>,
}

impl Run<'_> {
    /// Scripts, then random conversations, several at a time.
    async fn all(&self) -> Result<()> {
        let alone = Mutex::new(scripts::alone(self.world.is_old()).into_iter());
        self.recite(&alone).await?;
        let scripts = Mutex::new(scripts::all(self.world.is_old()).into_iter());
        let slow = Mutex::new(scripts::slow(self.world.is_old()).into_iter());
        tokio::try_join!(
            self.recite(&slow),
            self.recite(&slow),
            self.recite(&slow),
            self.work(&scripts),
            self.work(&scripts),
            self.work(&scripts),
            self.work(&scripts)
        )?;
        Ok(())
    }

    async fn recite(&self, scripts: &Mutex<std::vec::IntoIter<Script>>) -> Result<()> {
        let next = || locked(scripts).next();
        while let Some(script) = next() {
            Box::pin(self.hold("scripts", script.name, &script.conversation)).await?;
        }
        Ok(())
    }

    async fn work(&self, scripts: &Mutex<std::vec::IntoIter<Script>>) -> Result<()> {
        self.recite(scripts).await?;
        let kinds = u64::try_from(self.kinds.len())?;
        let times = self.plan.times;
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.plan.count * kinds * times || self.tally.has_enough() {
                return Ok(());
            }
            let kind = self.kinds[usize::try_from(number / times % kinds)?];
            let seed = self.first_seed + number / times / kinds;
            let conversation = generate::conversation(kind, &self.world.versions, seed);
            Box::pin(self.hold(kind.name(), &format!("seed {seed}"), &conversation)).await?;
            self.say_progress_at_times();
        }
    }

    async fn hold(&self, kind: &str, name: &str, conversation: &Conversation) -> Result<()> {
        let Conversation { placement, steps } = conversation;
        let token = self.tokens.fetch_add(1, Ordering::Relaxed).to_string();
        let held = hold(self.world, &token, *placement, steps)
            .await
            .map_err(|error| format!("{kind}, {name}: {error}"))?;
        self.tally.note(self.world.kafka.version(), kind, &held);
        if !matches!(held.end, End::Differs) {
            return Ok(());
        }
        let what = format!("Kafka {}, {kind}, {name}", self.world.kafka.version());
        match shrink(self.world, &token, *placement, steps).await? {
            Some(shrunk) => {
                let shown = transcript::show(&shrunk.held);
                self.tally.differs(format!("{what} differ:\n{shown}"));
            }
            None => {
                let shown = transcript::show(&held);
                self.tally
                    .is_unsteady(format!("{what} differed once, and then not:\n{shown}"));
            }
        }
        Ok(())
    }

    fn say_progress_at_times(&self) {
        let mut said = locked(&self.said);
        if said.elapsed() >= PROGRESS {
            *said = Instant::now();
            self.say_progress();
        }
    }

    fn say_progress(&self) {
        let done = self.next.load(Ordering::Relaxed);
        println!(
            "Kafka {}: {done} random conversations from seed {} on, {:.0} a minute, {}",
            self.world.kafka.version(),
            self.first_seed,
            done as f64 * 60.0 / self.began.elapsed().as_secs_f64(),
            self.tally.found()
        );
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tally {
    fn note(&self, broker: &str, kind: &str, held: &Held) {
        let answers = held.turns.iter().map(|turn| turn.answers[0].len());
        let mut counts = locked(&self.held);
        let (conversations, requests) = counts.entry(format!("Kafka {broker}, {kind}")).or_default();
        *conversations += 1;
        *requests += answers.sum::<usize>();
        for name in &held.met {
            *locked(&self.met).entry(name).or_default() += 1;
        }
    }

    fn differs(&self, shown: String) {
        println!("{shown}");
        locked(&self.differences).push(shown);
    }

    fn is_unsteady(&self, shown: String) {
        println!("{shown}");
        locked(&self.unsteady).push(shown);
    }

    fn has_enough(&self) -> bool {
        locked(&self.differences).len() >= ENOUGH
    }

    fn found(&self) -> String {
        let (differences, unsteady) = (locked(&self.differences).len(), locked(&self.unsteady).len());
        format!("{differences} differ, {unsteady} differed once")
    }

    /// Prints what was held, and is an error if that is not as it should be.
    fn verdict(&self, plan: &Plan) -> Result<()> {
        for (what, (conversations, requests)) in &*locked(&self.held) {
            println!("{what}: {conversations} conversations, {requests} answers compared");
        }
        let met = locked(&self.met);
        for accepted in ACCEPTED {
            let times = met.get(accepted.name).copied().unwrap_or(0);
            println!("accepted {times} times: {} ({})", accepted.name, accepted.reason);
        }
        println!("{}", self.found());
        let never: Vec<&str> = ACCEPTED
            .iter()
            .filter(|accepted| !accepted.is_by_chance)
            .map(|accepted| accepted.name)
            .filter(|name| !met.contains_key(name))
            .collect();
        if plan.is_fixed && !never.is_empty() {
            return Err(format!("differences that are accepted and that nothing has: {never:?}").into());
        }
        if locked(&self.differences).is_empty() {
            return Ok(());
        }
        Err("conversations differ, see above".into())
    }
}
