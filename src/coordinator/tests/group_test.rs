//! A shard with a clock, a store and an upstream that do as the test says.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use super::requests::{fetch_of, first_join, join_as, sync_as, vacant};
use crate::coordinator::event::{Event, RebalanceReason};
use crate::coordinator::input::{Input, InspectFailure, Lsn, Now, Output, Ticket, UpstreamGroup};
use crate::coordinator::record::{GroupMetadataValue, Record};
use crate::coordinator::request::{
    DescribeGroupResponse, HeartbeatRequest, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest,
    LeaveGroupResponse, LeavingMember, ListGroupsRequest, ListGroupsResponse, OffsetCommitRequest, OffsetFetchRequest,
    Request, Response, ShardView, SyncGroupRequest, SyncGroupResponse, Text,
};
use crate::coordinator::settings::Settings;
use crate::coordinator::shard::{Shard, ShardNumber};
use crate::coordinator::topics::Topics;
use crate::wire::error_code::ErrorCode;

pub(super) const INITIAL_DELAY_MS: u64 = 3_000;
/// The wall clock at the virtual clock's origin.
pub(super) const WALL_MS: i64 = 1_700_000_000_000;

/// A shard and everything around it. The group is always "g".
pub(super) struct GroupTest {
    shard: Shard,
    settings: Settings,
    seed: u64,
    topics: Option<Arc<Topics>>,
    now_ms: u64,
    /// How far the wall clock was set since the start.
    clock_set_ms: i64,
    tickets: u64,
    replies: BTreeMap<Ticket, Response>,
    appended: Lsn,
    /// Whether batches become durable at once.
    pub(super) store_is_prompt: bool,
    /// How the upstream answers at once; `None` leaves it to the test.
    pub(super) upstream: Option<Result<UpstreamGroup, InspectFailure>>,
    pub(super) records: Vec<Record>,
    pub(super) events: Vec<Event>,
    pub(super) inspected: Vec<Text>,
    /// Joins and syncs that are their groups'.
    pub(super) admitted: BTreeSet<Ticket>,
}

impl GroupTest {
    pub(super) fn new() -> Self {
        Self::with_settings(Settings::default())
    }

    pub(super) fn with_settings(settings: Settings) -> Self {
        Self::loaded_from(settings, &[])
    }

    /// A shard that was loaded with these records.
    pub(super) fn loaded_from(settings: Settings, records: &[Record]) -> Self {
        Self::loaded_with(settings, records, 1)
    }

    /// The same with member ids that this seed makes.
    pub(super) fn loaded_with(settings: Settings, records: &[Record], seed: u64) -> Self {
        let mut shard = Shard::new(ShardNumber(0), Arc::new(settings.clone()), seed);
        for record in records {
            shard.replay(record);
        }
        let mut test = Self {
            shard,
            settings,
            seed,
            topics: None,
            now_ms: 1_000_000,
            clock_set_ms: 0,
            tickets: 0,
            replies: BTreeMap::new(),
            appended: Lsn(0),
            store_is_prompt: true,
            upstream: Some(Ok(vacant())),
            records: Vec::new(),
            events: Vec::new(),
            inspected: Vec::new(),
            admitted: BTreeSet::new(),
        };
        let now = test.now();
        test.shard.loaded(now);
        test
    }

    /// The shard after a restart: loaded from everything that was appended, by a process that makes other ids.
    pub(super) fn restarted(&self) -> Self {
        let mut test = Self::loaded_with(self.settings.clone(), &self.records, self.seed + 1);
        test.tickets = self.tickets;
        if let Some(topics) = self.topics.clone() {
            test.tell_topics(topics);
        }
        test
    }

    /// Says what topics there are upstream.
    pub(super) fn tell_topics(&mut self, topics: Arc<Topics>) {
        self.topics = Some(topics.clone());
        self.input(Input::Topics(topics));
    }

    /// Why classic groups' rebalances began, of the events since they were last cleared.
    pub(super) fn began_because(&self) -> Vec<RebalanceReason> {
        let began = self.events.iter().filter_map(|event| match event {
            Event::RebalanceStarted { reason, .. } => Some(*reason),
            _ => None,
        });
        began.collect()
    }

    pub(super) fn now(&self) -> Now {
        Now {
            monotonic_ms: self.now_ms,
            wall_ms: self.wall_ms(),
        }
    }

    pub(super) fn wall_ms(&self) -> i64 {
        WALL_MS + self.clock_set_ms + i64::try_from(self.now_ms).expect("a short test")
    }

    /// Sets the wall clock forth or back.
    pub(super) const fn set_clock(&mut self, by_ms: i64) {
        self.clock_set_ms += by_ms;
    }

    pub(super) fn input(&mut self, input: Input) {
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            let mut out = Vec::new();
            self.shard.step(self.now(), input, &mut out);
            for output in out {
                inputs.extend(self.take(output));
            }
        }
    }

    /// Takes an output in; says what follows from it at once.
    fn take(&mut self, output: Output) -> Option<Input> {
        match output {
            Output::Append { lsn, records } => {
                assert_eq!(lsn, Lsn(self.appended.0 + 1), "batches are counted without gaps");
                assert!(!records.is_empty(), "a batch holds something");
                self.appended = lsn;
                self.records.extend(records);
                self.store_is_prompt.then_some(Input::Durable(lsn))
            }
            Output::Admitted { ticket } => {
                assert!(!self.replies.contains_key(&ticket), "nobody waits any more");
                self.admitted.insert(ticket);
                None
            }
            Output::Reply { ticket, response } => {
                let before = self.replies.insert(ticket, response);
                assert_eq!(before, None, "a request is answered once");
                None
            }
            Output::Inspect { group_id } => {
                self.inspected.push(group_id.clone());
                let result = self.upstream.clone()?;
                Some(Input::Inspected { group_id, result })
            }
            Output::Event(event) => {
                self.events.push(event);
                None
            }
        }
    }

    /// Says that everything appended so far is durable.
    pub(super) fn sync_store(&mut self) {
        self.input(Input::Durable(self.appended));
    }

    pub(super) fn appended(&self) -> Lsn {
        self.appended
    }

    /// Lets the time pass as the driver does: with a step whenever the shard wants one.
    pub(super) fn advance_ms(&mut self, ms: u64) {
        let end_ms = self.now_ms + ms;
        while let Some(deadline_ms) = self.shard.next_deadline()
            && deadline_ms <= end_ms
        {
            self.now_ms = deadline_ms.max(self.now_ms);
            self.input(Input::Tick);
        }
        self.now_ms = end_ms;
    }

    /// When the shard wants its next step.
    pub(super) fn next_deadline_ms(&self) -> Option<u64> {
        self.shard.next_deadline()
    }

    /// Lets the time pass without a single step.
    pub(super) fn stall_ms(&mut self, ms: u64) {
        self.now_ms += ms;
    }

    pub(super) fn unload(self, error: ErrorCode) -> BTreeMap<Ticket, Response> {
        let answers = self.shard.unload(error);
        let count = answers.len();
        let answers: BTreeMap<Ticket, Response> = answers.into_iter().collect();
        assert_eq!(answers.len(), count, "a request is answered once");
        answers
    }

    pub(super) fn send(&mut self, request: Request) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.input(Input::Request { ticket, request });
        ticket
    }

    /// Whether the request has been answered.
    pub(super) fn is_answered(&self, ticket: Ticket) -> bool {
        self.replies.contains_key(&ticket)
    }

    /// The answer to a request.
    pub(super) fn reply(&self, ticket: Ticket) -> Response {
        let reply = self.replies.get(&ticket);
        reply.cloned().unwrap_or_else(|| panic!("{ticket:?} is not answered"))
    }

    pub(super) fn call(&mut self, request: Request) -> Response {
        let ticket = self.send(request);
        self.reply(ticket)
    }

    pub(super) fn join(&mut self, request: JoinGroupRequest) -> Ticket {
        self.send(Request::JoinGroup(request))
    }

    pub(super) fn join_reply(&self, ticket: Ticket) -> JoinGroupResponse {
        match self.reply(ticket) {
            Response::JoinGroup(response) => response,
            other => panic!("not the answer to a join: {other:?}"),
        }
    }

    /// The answer to a join that succeeded.
    pub(super) fn joined(&self, ticket: Ticket) -> JoinGroupResponse {
        let response = self.join_reply(ticket);
        assert_eq!(response.error, ErrorCode::NONE, "{response:?}");
        response
    }

    /// An id by MEMBER_ID_REQUIRED.
    pub(super) fn member_id(&mut self) -> Text {
        let ticket = self.join(first_join());
        let response = self.join_reply(ticket);
        assert_eq!(response.error, ErrorCode::MEMBER_ID_REQUIRED);
        response.member_id
    }

    pub(super) fn sync(&mut self, request: SyncGroupRequest) -> Ticket {
        self.send(Request::SyncGroup(request))
    }

    pub(super) fn sync_reply(&self, ticket: Ticket) -> SyncGroupResponse {
        match self.reply(ticket) {
            Response::SyncGroup(response) => response,
            other => panic!("not the answer to a sync: {other:?}"),
        }
    }

    pub(super) fn heartbeat(&mut self, member_id: &Text, generation_id: i32) -> ErrorCode {
        self.heartbeat_of(HeartbeatRequest {
            group_id: "g".into(),
            generation_id,
            member_id: member_id.clone(),
            group_instance_id: None,
        })
    }

    pub(super) fn heartbeat_of(&mut self, request: HeartbeatRequest) -> ErrorCode {
        match self.call(Request::Heartbeat(request)) {
            Response::Heartbeat { error } => error,
            other => panic!("not the answer to a heartbeat: {other:?}"),
        }
    }

    /// Leaves; the errors of the members, in their order.
    pub(super) fn leave(&mut self, members: &[(&str, Option<&str>)]) -> Vec<ErrorCode> {
        let response = self.leave_group(members);
        assert_eq!(response.error, ErrorCode::NONE);
        response.members.into_iter().map(|member| member.error).collect()
    }

    pub(super) fn leave_group(&mut self, members: &[(&str, Option<&str>)]) -> LeaveGroupResponse {
        let leaving = |(member_id, instance_id): &(&str, Option<&str>)| LeavingMember {
            member_id: (*member_id).into(),
            group_instance_id: instance_id.map(Text::from),
            reason: None,
        };
        let request = LeaveGroupRequest {
            group_id: "g".into(),
            members: members.iter().map(leaving).collect(),
        };
        match self.call(Request::LeaveGroup(request)) {
            Response::LeaveGroup(response) => response,
            other => panic!("not the answer to a leave: {other:?}"),
        }
    }

    /// Commits; the errors of the partitions, in their order.
    pub(super) fn commit(&mut self, request: OffsetCommitRequest) -> Vec<ErrorCode> {
        match self.call(Request::OffsetCommit(request)) {
            Response::OffsetCommit(response) => {
                let partitions = response.topics.into_iter().flat_map(|(_, partitions)| partitions);
                partitions.map(|(_, error)| error).collect()
            }
            other => panic!("not the answer to a commit: {other:?}"),
        }
    }

    /// The committed offset of partition 0 of a topic; -1 for none.
    pub(super) fn fetch(&mut self, topic: &str) -> i64 {
        match self.call(Request::OffsetFetch(fetch_of(topic))) {
            Response::OffsetFetch(response) => {
                assert_eq!(response.error, ErrorCode::NONE);
                response.topics[0].1[0].offset
            }
            other => panic!("not the answer to a fetch: {other:?}"),
        }
    }

    /// How many partitions of the group have an offset.
    pub(super) fn fetch_all(&mut self) -> usize {
        let request = OffsetFetchRequest {
            topics: None,
            ..fetch_of("")
        };
        match self.call(Request::OffsetFetch(request)) {
            Response::OffsetFetch(response) => response.topics.iter().map(|(_, partitions)| partitions.len()).sum(),
            other => panic!("not the answer to a fetch: {other:?}"),
        }
    }

    pub(super) fn delete_group(&mut self) -> ErrorCode {
        match self.call(Request::DeleteGroup { group_id: "g".into() }) {
            Response::DeleteGroup { error } => error,
            other => panic!("not the answer to a deletion: {other:?}"),
        }
    }

    pub(super) fn describe(&mut self) -> DescribeGroupResponse {
        match self.call(Request::DescribeGroup { group_id: "g".into() }) {
            Response::DescribeGroup(response) => response,
            other => panic!("not a description: {other:?}"),
        }
    }

    pub(super) fn list(&mut self, states: &[&str], types: &[&str]) -> ListGroupsResponse {
        let texts = |list: &[&str]| list.iter().copied().map(Text::from).collect();
        let request = ListGroupsRequest {
            states: texts(states),
            types: texts(types),
        };
        match self.call(Request::ListGroups(request)) {
            Response::ListGroups(response) => response,
            other => panic!("not a list: {other:?}"),
        }
    }

    pub(super) fn view(&mut self) -> ShardView {
        match self.call(Request::View) {
            Response::View(view) => view,
            other => panic!("not a view: {other:?}"),
        }
    }

    /// The state of the group; "" if there is none.
    pub(super) fn state(&mut self) -> Text {
        let group = self.view().groups.into_iter().next();
        group.map_or_else(|| "".into(), |group| group.state)
    }

    pub(super) fn generation_id(&mut self) -> i32 {
        self.view().groups[0].generation_id
    }

    /// The last record of the group's metadata; `None` inside is the tombstone.
    pub(super) fn last_metadata(&self) -> Option<&GroupMetadataValue> {
        let is_metadata = |record: &&Record| matches!(record, Record::GroupMetadata { .. });
        match self.records.iter().rev().find(is_metadata) {
            Some(Record::GroupMetadata { value, .. }) => value.as_ref(),
            _ => panic!("no metadata was written"),
        }
    }

    /// What was answered so far.
    pub(super) fn replies(&self) -> &BTreeMap<Ticket, Response> {
        &self.replies
    }

    /// A group of dynamic members in Stable, in the order in which they joined; the first of them leads. Each has the
    /// assignment "a" and its place.
    pub(super) fn stable_group(&mut self, size: usize) -> Vec<Text> {
        let ids: Vec<Text> = (0..size).map(|_| self.member_id()).collect();
        self.form(ids.iter().map(join_as).collect())
    }

    /// Joins all these at once into a group without members, and syncs them. Their ids, in order.
    pub(super) fn form(&mut self, requests: Vec<JoinGroupRequest>) -> Vec<Text> {
        let tickets: Vec<Ticket> = requests.into_iter().map(|request| self.join(request)).collect();
        self.advance_ms(2 * INITIAL_DELAY_MS);
        let replies: Vec<JoinGroupResponse> = tickets.iter().map(|ticket| self.joined(*ticket)).collect();
        let ids: Vec<Text> = replies.iter().map(|reply| reply.member_id.clone()).collect();
        self.sync_all(&ids, replies[0].generation_id);
        ids
    }

    /// Syncs every member, the first as the leader with assignments "a0", "a1" ...
    pub(super) fn sync_all(&mut self, ids: &[Text], generation_id: i32) {
        let assignments = ids.iter().enumerate();
        let assignments = assignments.map(|(place, id)| (id.clone(), Bytes::from(format!("a{place}"))));
        let leader = SyncGroupRequest {
            assignments: assignments.collect(),
            ..sync_as(&ids[0], generation_id)
        };
        let mut tickets = vec![self.sync(leader)];
        tickets.extend(
            ids[1..]
                .iter()
                .map(|id| self.sync(sync_as(id, generation_id)))
                .collect::<Vec<_>>(),
        );
        for (place, ticket) in tickets.into_iter().enumerate() {
            let reply = self.sync_reply(ticket);
            assert_eq!(
                (reply.error, reply.assignment),
                (ErrorCode::NONE, format!("a{place}").into())
            );
        }
        assert_eq!(&*self.state(), "Stable");
    }
}
