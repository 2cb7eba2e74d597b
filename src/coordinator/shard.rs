//! One shard: the groups that hash to one partition of `__consumer_offsets`.
//!
//! A step fires the timers that are due, takes the input, and hands out what came of it. All records of a step are one batch.
//! A reply is held until the last batch that existed when it was made is durable, a heartbeat's or a fetch's as well: memory
//! runs ahead of the store, and nobody may see what a crash could still take back. `NotOwned` shows nothing and leaves at once.
//! Whoever has waited for the store for `offsets.commit.timeout.ms` is asked to try again; what it wanted may still become durable.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use uuid::Uuid;

use super::admission::{self, Admission};
use super::context::{Context, Effects};
use super::event::{EpochReason, Event};
use super::external::{Externals, Scope};
use super::group_config::GroupConfigs;
use super::groups::Groups;
use super::input::{Input, InspectFailure, Lsn, Now, Output, Ticket, UpstreamGroup};
use super::member_id::MemberIds;
use super::ownership::{Ownership, Standing};
use super::record::Record;
use super::request::{ListGroupsResponse, Request, Response, Text};
use super::settings::Settings;
use super::timer::{TimerKey, Timers};
use super::topics::Topics;
use crate::wire::error_code::ErrorCode;

/// A longer time between two steps means that the process stood still, one for which a batch is on its way to the disk that
/// the store did, in milliseconds.
const STALL_MS: u64 = 3_000;
/// How often sessions begin anew while the store stands still, in milliseconds: less than any session is long.
const RENEW_EVERY_MS: u64 = 1_000;
/// How often a shard with group timers wants a step, so that a stall shows, in milliseconds.
const STEP_AT_LEAST_EVERY_MS: u64 = 1_000;

/// The pause within a pass over what has run out of its retention, in milliseconds: requests come in between.
const EXPIRY_PAUSE_MS: u64 = 10;

/// Which partition of `__consumer_offsets` the shard stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardNumber(pub u32);

/// The state machine of one shard. See [`Input`] and [`Output`] for what goes in and out.
#[derive(Debug)]
pub struct Shard {
    /// Those that were told, with what single groups were given here.
    settings: Arc<Settings>,
    told_settings: Arc<Settings>,
    group_configs: GroupConfigs,
    /// Nothing before the first `Input::Topics`.
    topics: Arc<Topics>,
    has_topics: bool,
    groups: Groups,
    externals: Externals,
    ownership: Ownership,
    timers: Timers,
    member_ids: MemberIds,
    /// The group that a pass over what has run out of its retention goes on with; `None` between two passes.
    expiry_rest: Option<Text>,
    /// What came of loading; part of the first step.
    effects: Effects,
    last_step_ms: Option<u64>,
    appended: Lsn,
    durable: Lsn,
    /// When each batch that is not durable was handed out, in monotonic milliseconds.
    under_way: VecDeque<(Lsn, u64)>,
    renewed_ms: u64,
    held: VecDeque<Held>,
}

/// A reply that waits for the batch up to which everything it could show has to be durable.
#[derive(Debug)]
struct Held {
    lsn: Lsn,
    /// In monotonic milliseconds.
    since_ms: u64,
    ticket: Ticket,
    response: Response,
}

impl Shard {
    /// An empty shard. Feed it with `replay`, then call `loaded`.
    #[must_use]
    pub fn new(number: ShardNumber, settings: Arc<Settings>, seed: u64) -> Self {
        Self {
            settings: Arc::clone(&settings),
            told_settings: settings,
            group_configs: GroupConfigs::default(),
            topics: Arc::default(),
            has_topics: false,
            groups: Groups::default(),
            externals: Externals::default(),
            ownership: Ownership::default(),
            timers: Timers::default(),
            // Shards that share a seed still make ids of their own.
            member_ids: MemberIds::new(seed ^ (u64::from(number.0) << 32)),
            expiry_rest: None,
            effects: Effects::default(),
            last_step_ms: None,
            appended: Lsn::default(),
            durable: Lsn::default(),
            under_way: VecDeque::new(),
            renewed_ms: 0,
            held: VecDeque::new(),
        }
    }

    /// Takes a record in: the one way in which durable state changes, for new records and loaded ones.
    pub fn replay(&mut self, record: &Record) {
        self.groups.apply(record);
        self.ownership.apply(record);
        self.group_configs.apply(record);
    }

    /// Everything was replayed: sessions begin now.
    pub fn loaded(&mut self, now: Now) {
        self.last_step_ms = Some(now.monotonic_ms);
        self.take_over_group_configs();
        self.tell_passed_over();
        self.arm_expiry(now);
        let (groups, _, mut cx) = self.lend(now);
        groups.on_loaded(&mut cx);
    }

    /// Works on one input and appends what came of it.
    pub fn step(&mut self, now: Now, input: Input, out: &mut Vec<Output>) {
        self.renew_after_stall(now);
        self.fire_due(now);
        match input {
            Input::Request { ticket, request } => self.on_request(now, ticket, request, out),
            Input::Inspected { group_id, result } => self.on_inspected(now, &group_id, result),
            Input::Durable(lsn) => self.on_durable(now, lsn, out),
            Input::TopicsDeleted(topics) => {
                let (groups, _, mut cx) = self.lend(now);
                groups.delete_topics(&topics, &mut cx);
            }
            Input::Topics(topics) => self.on_topics(now, topics),
            Input::Settings(settings) => self.on_settings(now, settings),
            Input::Tick => {}
        }
        // What the input armed without a delay.
        self.fire_due(now);
        self.finish(now, out);
    }

    /// When the shard wants its next step at the latest, in monotonic milliseconds.
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        let deadlines_ms = self.timers.next_deadline().into_iter().chain(self.gives_up_at());
        let deadline_ms = deadlines_ms.min()?;
        match self.last_step_ms {
            Some(last_ms) if self.timers.any_of_a_group() => {
                Some(deadline_ms.min(last_ms.saturating_add(STEP_AT_LEAST_EVERY_MS)))
            }
            _ => Some(deadline_ms),
        }
    }

    /// When somebody will have waited for the store for too long, in monotonic milliseconds.
    #[must_use]
    pub fn gives_up_at(&self) -> Option<u64> {
        let since_ms = self.held.front()?.since_ms;
        Some(since_ms.saturating_add(self.patience_ms()))
    }

    /// Asks those who have waited for the store for too long to try again. Nothing else happens: a driver whose store takes no
    /// more batches may do it without a step.
    pub fn give_up(&mut self, now: Now, out: &mut Vec<Output>) {
        let error = ErrorCode::COORDINATOR_NOT_AVAILABLE;
        while self.gives_up_at().is_some_and(|at_ms| at_ms <= now.monotonic_ms)
            && let Some(Held { ticket, .. }) = self.held.pop_front()
        {
            let response = Response::Unavailable { error };
            out.push(Output::Reply { ticket, response });
        }
    }

    /// How long anybody waits for the store, in milliseconds.
    #[must_use]
    pub fn patience_ms(&self) -> u64 {
        u64::try_from(self.settings.offsets_commit_timeout_ms).unwrap_or(0)
    }

    /// Every topic that has an offset committed with an id, by that id: whether they are still there is to be found out
    /// after a load, since nobody told meanwhile.
    #[must_use]
    pub fn topics(&self) -> BTreeMap<Uuid, Text> {
        self.groups.topics()
    }

    /// Ends the shard: answers for every request that is parked or held, so that its client asks again.
    #[must_use]
    pub fn unload(self, error: ErrorCode) -> Vec<(Ticket, Response)> {
        let unsent = self.effects.replies.into_iter().map(|(ticket, _)| ticket);
        let held = self.held.into_iter().map(|held| held.ticket);
        let parked = self.groups.parked().chain(self.externals.parked());
        let parked = parked.chain(self.ownership.parked());
        let tickets = unsent.chain(held).chain(parked);
        tickets
            .map(|ticket| (ticket, Response::Unavailable { error }))
            .collect()
    }

    fn on_request(&mut self, now: Now, ticket: Ticket, request: Request, out: &mut Vec<Output>) {
        if request == Request::View {
            // For people, who want to see a shard whose store hangs.
            let response = Response::View(self.groups.view(&self.settings, &self.externals));
            return out.push(Output::Reply { ticket, response });
        }
        let standing = match request.group_id() {
            Some(group_id) => self.ownership.standing(group_id),
            None => Standing::Ours,
        };
        let is_offered = |group_id: &str, assignor: &str| self.groups.is_offered(group_id, assignor, &self.externals);
        let admission = admission::admit(&request, standing, &self.settings, is_offered);
        let (groups, ownership, mut cx) = self.lend(now);
        match admission {
            Admission::Run => run(groups, ownership, ticket, request, &mut cx),
            Admission::AskFirst(group_id) => ownership.park(&group_id, ticket, request, &mut cx),
            Admission::Refuse(response) => cx.reply(ticket, response),
        }
        self.take_over_group_configs();
    }

    fn on_inspected(&mut self, now: Now, group_id: &Text, result: Result<UpstreamGroup, InspectFailure>) {
        let (groups, ownership, mut cx) = self.lend(now);
        let Some(parked) = ownership.settle(group_id, &result, &mut cx) else {
            return;
        };
        let Ok(upstream) = result else {
            let error = ErrorCode::COORDINATOR_LOAD_IN_PROGRESS;
            for (ticket, _) in parked {
                cx.reply(ticket, Response::Unavailable { error });
            }
            return;
        };
        if !upstream.offsets.is_empty() {
            let offsets = groups.import(group_id, &upstream.offsets, &mut cx);
            ownership.take_over(group_id, offsets, &mut cx);
        }
        let standing = ownership.standing(group_id);
        for (ticket, request) in parked {
            let is_offered = |group_id: &str, assignor: &str| groups.is_offered(group_id, assignor, cx.externals);
            match admission::admit(&request, standing, cx.settings, is_offered) {
                Admission::Refuse(response) => cx.reply(ticket, response),
                Admission::Run | Admission::AskFirst(_) => run(groups, ownership, ticket, request, &mut cx),
            }
        }
    }

    fn on_durable(&mut self, now: Now, lsn: Lsn, out: &mut Vec<Output>) {
        let waited_ms = self.store_stands_still_ms(now);
        self.durable = self.durable.max(lsn);
        while self.under_way.pop_front_if(|(lsn, _)| *lsn <= self.durable).is_some() {}
        if waited_ms > STALL_MS {
            self.renew_sessions(now, waited_ms);
        }
        while let Some(held) = self.held.pop_front_if(|held| held.lsn <= self.durable) {
            let Held { ticket, response, .. } = held;
            out.push(Output::Reply { ticket, response });
        }
    }

    fn on_topics(&mut self, now: Now, topics: Arc<Topics>) {
        self.topics = topics;
        self.has_topics = true;
        let (groups, _, mut cx) = self.lend(now);
        groups.on_topics(&mut cx);
    }

    fn on_settings(&mut self, now: Now, settings: Arc<Settings>) {
        let interval_ms = self.settings.offsets_retention_check_interval_ms;
        self.settings = self.group_configs.over(&settings);
        let kept_before = self.told_settings.keeps_group_configs;
        self.told_settings = settings;
        if kept_before {
            self.tell_passed_over();
        }
        if interval_ms != self.settings.offsets_retention_check_interval_ms {
            self.arm_expiry(now);
        }
    }

    /// What single groups were given here, if that has changed, holds from now on.
    fn take_over_group_configs(&mut self) {
        if let Some(settings) = self.group_configs.take_over(&self.told_settings) {
            self.settings = settings;
        }
    }

    /// Tells of what single groups were given here and does not count.
    fn tell_passed_over(&mut self) {
        let groups = self.group_configs.len();
        if groups > 0 && !self.told_settings.keeps_group_configs {
            self.effects.events.push(Event::GroupConfigsPassedOver { groups });
        }
    }

    /// After a stall nobody could have been heard: every wait of a group begins anew. While the store stands still nobody is
    /// answered, and clients that wait for an answer send nothing, so nobody can be held to be silent either.
    fn renew_after_stall(&mut self, now: Now) {
        let gap_ms = self
            .last_step_ms
            .map_or(0, |last_ms| now.monotonic_ms.saturating_sub(last_ms));
        self.last_step_ms = Some(now.monotonic_ms);
        if gap_ms > STALL_MS {
            self.renew_sessions(now, gap_ms);
        } else if self.store_stands_still_ms(now) > STALL_MS
            && now.monotonic_ms.saturating_sub(self.renewed_ms) >= RENEW_EVERY_MS
        {
            // Told when it ends.
            self.renewed_ms = now.monotonic_ms;
            self.timers.renew_groups(now.monotonic_ms);
        }
    }

    fn renew_sessions(&mut self, now: Now, gap_ms: u64) {
        let members = self.timers.renew_groups(now.monotonic_ms);
        if members > 0 {
            self.effects.events.push(Event::SessionsRenewed { gap_ms, members });
        }
    }

    /// How long the oldest batch that is not durable has been on its way.
    fn store_stands_still_ms(&self, now: Now) -> u64 {
        self.under_way
            .front()
            .map_or(0, |(_, since_ms)| now.monotonic_ms.saturating_sub(*since_ms))
    }

    fn fire_due(&mut self, now: Now) {
        let pass = self.timers.pass();
        while let Some(key) = self.timers.pop_due(now.monotonic_ms, pass) {
            match key {
                TimerKey::Expiry => self.expire(now),
                TimerKey::Verdict(group_id) => self.ownership.forget_verdict(&group_id),
                TimerKey::External(scope, timer) => {
                    let (groups, _, mut cx) = self.lend(now);
                    groups.on_external_timer(&scope, timer, &mut cx);
                }
                TimerKey::Group(group_id, timer) => {
                    let (groups, _, mut cx) = self.lend(now);
                    groups.on_timer(&group_id, timer, &mut cx);
                }
            }
        }
    }

    fn expire(&mut self, now: Now) {
        let from = self.expiry_rest.take();
        let (groups, ownership, mut cx) = self.lend(now);
        let rest = groups.expire(from.as_ref(), &mut cx);
        if rest.is_some() {
            self.timers.arm(now.monotonic_ms, TimerKey::Expiry, EXPIRY_PAUSE_MS);
        } else {
            ownership.expire(|group_id| groups.contains(group_id), &mut cx);
            self.arm_expiry(now);
        }
        self.expiry_rest = rest;
    }

    fn arm_expiry(&mut self, now: Now) {
        let interval_ms = u64::try_from(self.settings.offsets_retention_check_interval_ms).unwrap_or(0);
        self.timers.arm(now.monotonic_ms, TimerKey::Expiry, interval_ms.max(1));
    }

    /// Hands out what came of the step. Its replies wait for its records, and for those of earlier steps.
    fn finish(&mut self, now: Now, out: &mut Vec<Output>) {
        let (_, ownership, mut cx) = self.lend(now);
        ownership.mark(&mut cx);
        let effects = &mut self.effects;
        if !effects.records.is_empty() {
            self.appended = Lsn(self.appended.0 + 1);
            self.under_way.push_back((self.appended, now.monotonic_ms));
            out.push(Output::Append {
                lsn: self.appended,
                records: std::mem::take(&mut effects.records),
            });
        }
        let inspections = effects.inspections.drain(..);
        out.extend(inspections.map(|group_id| Output::Inspect { group_id }));
        out.extend(effects.events.drain(..).map(Output::Event));
        out.extend(effects.admitted.drain(..).map(|ticket| Output::Admitted { ticket }));
        for (ticket, response) in effects.replies.drain(..) {
            // What goes on to the upstream shows nothing of ours, and must be there before the group is taken over: held, a
            // commit would come too late to be imported.
            match self.appended <= self.durable || response == Response::NotOwned {
                true => out.push(Output::Reply { ticket, response }),
                false => self.held.push_back(Held {
                    lsn: self.appended,
                    since_ms: now.monotonic_ms,
                    ticket,
                    response,
                }),
            }
        }
        self.give_up(now, out);
    }

    fn lend(&mut self, now: Now) -> (&mut Groups, &mut Ownership, Context<'_>) {
        let cx = Context {
            now,
            settings: &self.settings,
            topics: &self.topics,
            has_topics: self.has_topics,
            group_configs: &mut self.group_configs,
            timers: &mut self.timers,
            externals: &mut self.externals,
            member_ids: &mut self.member_ids,
            effects: &mut self.effects,
        };
        (&mut self.groups, &mut self.ownership, cx)
    }
}

/// Runs a request that was admitted.
fn run(groups: &mut Groups, ownership: &Ownership, ticket: Ticket, request: Request, cx: &mut Context<'_>) {
    if matches!(request, Request::JoinGroup(_) | Request::SyncGroup(_)) {
        cx.effects.admitted.push(ticket);
    }
    let response = match request {
        Request::JoinGroup(request) => return groups.join(ticket, request, cx),
        Request::SyncGroup(request) => return groups.sync(ticket, request, cx),
        Request::LeaveGroup(request) => return groups.leave(ticket, request, cx),
        Request::ConsumerGroupHeartbeat(request) => return groups.consumer_heartbeat(ticket, request, cx),
        Request::PatternHeartbeat(request) => return groups.pattern_heartbeat(ticket, &request, cx),
        Request::ExternalGone {
            group_id,
            is_pattern,
            member_id,
            connection,
        } => {
            let scope = match is_pattern {
                true => Scope::Pattern(group_id),
                false => Scope::Group(group_id),
            };
            let external = cx.externals.registered(&scope, &member_id);
            if external.is_some_and(|external| external.connection == connection) {
                groups.remove_external(&scope, &member_id, EpochReason::Disconnected, cx);
            }
            Response::ExternalGone
        }
        Request::PrepareAssignment(request) => groups.prepare_assignment(&request, cx),
        Request::InstallAssignment(request) => groups.install_assignment(request, cx),
        Request::Heartbeat(request) => groups.heartbeat(&request, cx),
        Request::OffsetCommit(request) => groups.commit(&request, cx),
        Request::OffsetFetch(request) => groups.fetch(&request),
        Request::OffsetDelete(request) => groups.delete_offsets(&request, cx),
        Request::DeleteGroup { group_id } => groups.delete(&group_id, cx),
        Request::DescribeGroup { group_id } => Response::DescribeGroup(groups.describe(&group_id)),
        Request::ConsumerGroupDescribe { group_id } => {
            Response::ConsumerGroupDescribe(groups.describe_consumer(&group_id, cx))
        }
        Request::AlterGroupConfig(request) => cx.alter_group_config(&request),
        Request::DescribeGroupConfig { group_id } => {
            Response::DescribeGroupConfig(cx.group_configs.describe(&group_id, cx.settings))
        }
        Request::ListGroups(request) => Response::ListGroups(ListGroupsResponse {
            groups: groups.list(&request),
            owned: ownership.marked().cloned().collect(),
        }),
        Request::View => Response::View(groups.view(cx.settings, cx.externals)),
    };
    cx.reply(ticket, response);
}
