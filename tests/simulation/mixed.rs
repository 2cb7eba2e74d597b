//! A client of a group that changes its protocol: each of its processes speaks one of the two, as in a rolling upgrade and
//! in one that is taken back.

use convoke::coordinator::request::{Response, Text};
use convoke::wire::error_code::ErrorCode;

use crate::client::{Speaker, Surroundings, Wish};
use crate::consumer::Consumer;
use crate::member::Member;
use crate::plan::{ConsumerPlan, GroupPlan, MemberPlan};

#[derive(Debug)]
pub(crate) struct Mixed {
    classic: Consumer,
    consumer: Member,
    is_classic: bool,
}

impl Mixed {
    pub(crate) fn new(
        group_id: &Text,
        index: usize,
        group: &GroupPlan,
        (classic, consumer): (&ConsumerPlan, &MemberPlan),
        reads_on: bool,
    ) -> Self {
        Self {
            classic: Consumer::new(group_id, group, index, classic),
            consumer: Member::new(group_id, index, consumer, reads_on),
            // Most groups begin as they always were.
            is_classic: index != 2,
        }
    }

    pub(crate) fn speaker(&self) -> Speaker<'_> {
        match self.is_classic {
            true => Speaker::Classic(&self.classic),
            false => Speaker::Consumer(&self.consumer),
        }
    }

    pub(crate) fn next(&mut self, around: &mut Surroundings<'_>) -> Wish {
        if self.speaker().is_away() {
            let due_ms = *self.comes_at();
            if around.now_ms < due_ms {
                return Wish::WakeAt(due_ms);
            }
            self.choose(around);
        } else if self.speaker().is_settled() && around.rng.chance(around.faults.switch) {
            self.crash(around);
        }
        match self.is_classic {
            true => self.classic.next(around),
            false => self.consumer.next(around),
        }
    }

    /// The next process is of the other kind where the group would not have this one.
    fn choose(&mut self, around: &mut Surroundings<'_>) {
        let is_of_wrong_kind = matches!(
            self.speaker().refusal(),
            Some(ErrorCode::INCONSISTENT_GROUP_PROTOCOL | ErrorCode::GROUP_ID_NOT_FOUND)
        );
        let may_choose = around.faults.switch > 0;
        if is_of_wrong_kind || (may_choose && around.rng.chance(500)) {
            let due_ms = *self.comes_at();
            self.is_classic = !self.is_classic;
            *self.comes_at() = due_ms;
            (self.classic.refusal, self.consumer.refusal) = (None, None);
        }
    }

    fn comes_at(&mut self) -> &mut u64 {
        match self.is_classic {
            true => self.classic.comes_at(),
            false => self.consumer.comes_at(),
        }
    }

    pub(crate) fn on_response(&mut self, response: Response, around: &mut Surroundings<'_>) -> Result<(), String> {
        match self.is_classic {
            true => self.classic.on_response(response, around),
            false => self.consumer.on_response(response, around),
        }
    }

    pub(crate) fn on_lost(&mut self, around: &mut Surroundings<'_>) {
        match self.is_classic {
            true => self.classic.on_lost(around),
            false => self.consumer.on_lost(around),
        }
    }

    pub(crate) fn crash(&mut self, around: &mut Surroundings<'_>) {
        match self.is_classic {
            true => self.classic.crash(around),
            false => self.consumer.crash(around),
        }
    }
}
