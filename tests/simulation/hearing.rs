//! What a classic consumer makes of the answers that it hears.

use convoke::coordinator::request::{JoinGroupResponse, Response, SyncGroupResponse};
use convoke::wire::error_code::ErrorCode;

use crate::client::{REFUSED_MS, RETRY_BACKOFF_MS, Surroundings};
use crate::consumer::{Consumer, Phase, Sent};
use crate::protocol::{COOPERATIVE, assign, decode, topics_of};

impl Consumer {
    pub(crate) fn on_response(&mut self, response: Response, around: &mut Surroundings<'_>) -> Result<(), String> {
        let unexpected = format!("{}: unexpected {response:?} in {:?}", self.name, self.phase);
        match (self.sent, response) {
            (_, Response::Unavailable { .. }) => {
                self.on_lost(around);
                Ok(())
            }
            (Sent::Join, Response::JoinGroup(response)) => self.on_join(response, around),
            (Sent::Sync, Response::SyncGroup(response)) => self.on_sync(&response, around.now_ms),
            (Sent::Heartbeat, Response::Heartbeat { error }) => self.on_error(error, around),
            (Sent::Leave, Response::LeaveGroup(_)) => {
                let away_ms = around.rng.between(0, 5_000);
                self.begin_anew(around.now_ms + away_ms);
                Ok(())
            }
            (Sent::Fetch, Response::OffsetFetch(response)) if response.error.is_none() => {
                self.phase = Phase::Stable;
                self.heartbeat_ms = around.now_ms;
                self.commit_ms = around.now_ms + around.rng.between(0, 3_000);
                Ok(())
            }
            (Sent::Commit, Response::OffsetCommit(response)) => {
                let error = response.topics[0].1[0].1;
                if response
                    .topics
                    .iter()
                    .flat_map(|(_, partitions)| partitions)
                    .any(|(_, e)| *e != error)
                {
                    return Err(unexpected);
                }
                self.on_error(error, around)?;
                if error.is_none() {
                    self.after_commit(around.now_ms);
                }
                Ok(())
            }
            _ => Err(unexpected),
        }
    }

    fn on_join(&mut self, response: JoinGroupResponse, around: &mut Surroundings<'_>) -> Result<(), String> {
        let now_ms = around.now_ms;
        let unexpected = format!("{}: unexpected {response:?}", self.name);
        match response.error {
            ErrorCode::NONE => {}
            ErrorCode::MEMBER_ID_REQUIRED if self.member_id.is_empty() && !response.member_id.is_empty() => {
                self.member_id = response.member_id;
                return Ok(());
            }
            ErrorCode::COORDINATOR_LOAD_IN_PROGRESS | ErrorCode::REBALANCE_IN_PROGRESS => {
                self.not_before_ms = now_ms + RETRY_BACKOFF_MS;
                return Ok(());
            }
            ErrorCode::UNKNOWN_MEMBER_ID => {
                self.forget();
                self.not_before_ms = now_ms + RETRY_BACKOFF_MS;
                return Ok(());
            }
            ErrorCode::INCONSISTENT_GROUP_PROTOCOL | ErrorCode::GROUP_MAX_SIZE_REACHED => {
                self.begin_anew(now_ms + REFUSED_MS);
                self.refusal = Some(response.error);
                return Ok(());
            }
            ErrorCode::FENCED_INSTANCE_ID if self.instance_id.is_some() => {
                self.begin_anew(now_ms + 1_000);
                return Ok(());
            }
            _ => return Err(unexpected),
        }
        let is_leader = response.leader == response.member_id;
        let is_named = response
            .protocol_name
            .as_deref()
            .is_some_and(|name| self.protocols.contains(&name));
        let is_told = response
            .members
            .iter()
            .any(|member| member.member_id == response.member_id);
        if response.member_id.is_empty()
            || (!self.member_id.is_empty() && self.member_id != response.member_id)
            || response.protocol_type.as_ref() != Some(&self.protocol_type)
            || !is_named
            || response.generation_id <= 0
            || is_told != is_leader
        {
            return Err(unexpected);
        }
        self.refusal = None;
        self.member_id = response.member_id;
        self.generation_id = response.generation_id;
        let assigns = is_leader && !response.skip_assignment;
        let count = |topic| around.picture.count(topic);
        let is_cooperative = response.protocol_name.as_deref() == Some(COOPERATIVE);
        let assignments = match assigns {
            true => assign(&response.members, is_cooperative, count),
            false => Vec::new(),
        };
        let led = || {
            topics_of(&response.members)
                .into_iter()
                .map(|topic| (topic, count(topic)))
        };
        self.led = is_leader.then(|| led().collect());
        self.has_assigned = assigns;
        self.phase = Phase::Sync(assignments);
        Ok(())
    }

    fn on_sync(&mut self, response: &SyncGroupResponse, now_ms: u64) -> Result<(), String> {
        match response.error {
            ErrorCode::NONE => {
                if response.protocol_type.as_ref() != Some(&self.protocol_type) {
                    return Err(format!("{}: unexpected {response:?}", self.name));
                }
                let assigned = decode(&response.assignment);
                // What a cooperative member gives up it says by joining again.
                let gives_up = !self.owned.is_subset(&assigned);
                self.owned = assigned;
                self.creations = self.asked_creations;
                self.phase = if gives_up { Phase::Join } else { Phase::Fetch };
            }
            ErrorCode::REBALANCE_IN_PROGRESS => self.rejoin(now_ms + RETRY_BACKOFF_MS),
            ErrorCode::ILLEGAL_GENERATION => {
                self.owned.clear();
                self.rejoin(now_ms + RETRY_BACKOFF_MS);
            }
            ErrorCode::UNKNOWN_MEMBER_ID => {
                self.forget();
                self.rejoin(now_ms + RETRY_BACKOFF_MS);
            }
            ErrorCode::FENCED_INSTANCE_ID if self.instance_id.is_some() => self.begin_anew(now_ms + 1_000),
            _ => return Err(format!("{}: unexpected {response:?}", self.name)),
        }
        Ok(())
    }

    /// Of a heartbeat or a commit.
    fn on_error(&mut self, error: ErrorCode, around: &mut Surroundings<'_>) -> Result<(), String> {
        match error {
            ErrorCode::NONE => {}
            ErrorCode::REBALANCE_IN_PROGRESS => {
                let commits_first = self.sent == Sent::Heartbeat && !self.owned.is_empty() && around.rng.chance(500);
                if commits_first {
                    self.phase = Phase::Revoke;
                } else {
                    self.rejoin(around.now_ms);
                }
            }
            ErrorCode::ILLEGAL_GENERATION => {
                self.owned.clear();
                self.rejoin(around.now_ms);
            }
            // A group that was deleted is not known at all.
            ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::GROUP_ID_NOT_FOUND => {
                self.forget();
                self.rejoin(around.now_ms);
            }
            ErrorCode::FENCED_INSTANCE_ID if self.instance_id.is_some() => self.begin_anew(around.now_ms + 1_000),
            _ => return Err(format!("{}: unexpected {error:?} to {:?}", self.name, self.sent)),
        }
        Ok(())
    }
}
