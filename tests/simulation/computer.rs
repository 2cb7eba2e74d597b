//! Whoever can compute assignments, a member or an external assignor: what it says of its assignors, and what it does once it is
//! asked to compute.

use bytes::Bytes;
use convoke::coordinator::request::{
    ClientAssignor, InstallAssignmentRequest, PrepareAssignmentRequest, PrepareAssignmentResponse, Request, Text,
};
use convoke::wire::error_code::ErrorCode;

use crate::client::Surroundings;
use crate::placing::{Placement, honest, lie};
use crate::plan::{ComputerPlan, LISTS, VERSIONS};

/// What it does when it is asked to compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    /// As it should.
    Compute,
    /// Nothing.
    Ignore,
    /// It is done when its time is long over.
    Dawdle,
    /// What it installs is no assignment.
    Lie,
    /// It installs an error.
    Fail,
    /// It dies when it knows what to compute from.
    Die,
}

impl Deed {
    /// What a program may do every time.
    pub(crate) const BAD: [Self; 4] = [Self::Ignore, Self::Dawdle, Self::Lie, Self::Fail];
}

/// What has to follow an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    GoOn,
    /// Its epoch is another.
    Heartbeat,
    Die,
}

/// Who it is in its group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller<'a> {
    pub(crate) group_id: &'a Text,
    pub(crate) member_id: &'a Text,
    pub(crate) epoch: i32,
}

#[derive(Debug)]
enum Work {
    Asked(Deed),
    /// It is done at this time.
    Computes(Deed, Placement, u64),
}

#[derive(Debug)]
pub(crate) struct Computer {
    assignors: Vec<ClientAssignor>,
    timeout_ms: u64,
    always: Option<Deed>,
    must_tell: bool,
    work: Option<Work>,
}

impl Computer {
    pub(crate) fn new(plan: &ComputerPlan) -> Self {
        Self {
            assignors: list(plan.names, plan.versions),
            timeout_ms: u64::from(plan.timeout_ms.unsigned_abs()),
            always: plan.always,
            must_tell: false,
            work: None,
        }
    }

    /// Whether the program does what it should, as far as it can.
    pub(crate) const fn is_well(&self) -> bool {
        self.always.is_none()
    }

    pub(crate) const fn must_tell(&self) -> bool {
        self.must_tell
    }

    pub(crate) fn says(&self) -> Vec<ClientAssignor> {
        self.assignors.clone()
    }

    /// What it said has come, or is to be said once more.
    pub(crate) fn told(&mut self, is_known: bool) {
        self.must_tell = !is_known;
        if is_known {
            // A reason asks with each heartbeat that has it.
            self.assignors.iter_mut().for_each(|assignor| assignor.reason = 0);
        }
    }

    /// The process is another, or begins anew.
    pub(crate) fn forget(&mut self) {
        self.work = None;
    }

    /// It asks for a new assignment, has something else to say to whoever computes, or runs and reads something else.
    pub(crate) fn change_mind(&mut self, around: &mut Surroundings<'_>) {
        self.must_tell = true;
        match around.rng.below(3) {
            0 => self.assignors.iter_mut().for_each(|assignor| assignor.reason = 1),
            1 => {
                let metadata = Bytes::copy_from_slice(&around.fresh_number().to_be_bytes());
                self.assignors
                    .iter_mut()
                    .for_each(|assignor| assignor.metadata = metadata.clone());
            }
            _ => self.assignors = list(around.rng.pick::<&[&str]>(&LISTS), *around.rng.pick(&VERSIONS)),
        }
    }

    /// Whether a heartbeat's answer says that it is to compute.
    pub(crate) fn hear(&mut self, should_compute: bool, around: &mut Surroundings<'_>) {
        if !should_compute {
            self.work.take_if(|work| matches!(work, Work::Asked(Deed::Ignore)));
        } else if !matches!(self.work, Some(Work::Asked(_))) {
            let deed = match self.always {
                Some(deed) => deed,
                None if around.rng.chance(around.faults.misdeed) => match around.rng.chance(300) {
                    true => Deed::Die,
                    false => *around.rng.pick(&Deed::BAD),
                },
                None => Deed::Compute,
            };
            self.work = Some(Work::Asked(deed));
        }
    }

    /// What it has to ask now.
    pub(crate) fn due(&self, caller: Caller<'_>, now_ms: u64) -> Option<Request> {
        match self.work.as_ref()? {
            Work::Asked(Deed::Ignore) => None,
            Work::Asked(_) => Some(Request::PrepareAssignment(PrepareAssignmentRequest {
                group_id: caller.group_id.clone(),
                member_id: caller.member_id.clone(),
                member_epoch: caller.epoch,
            })),
            Work::Computes(_, placement, at_ms) => (*at_ms <= now_ms).then(|| {
                Request::InstallAssignment(InstallAssignmentRequest {
                    group_id: caller.group_id.clone(),
                    member_id: caller.member_id.clone(),
                    member_epoch: caller.epoch,
                    group_epoch: placement.group_epoch,
                    error: placement.error,
                    members: placement.members.clone(),
                })
            }),
        }
    }

    /// When it is done with what it computes.
    pub(crate) const fn done_at_ms(&self) -> Option<u64> {
        match self.work {
            Some(Work::Computes(_, _, at_ms)) => Some(at_ms),
            _ => None,
        }
    }

    pub(crate) fn on_prepared(
        &mut self,
        response: &PrepareAssignmentResponse,
        around: &mut Surroundings<'_>,
    ) -> Result<Then, String> {
        let Some(Work::Asked(deed)) = self.work else {
            return Err(format!("nobody asked for {response:?}"));
        };
        match response.error {
            ErrorCode::NONE => {}
            ErrorCode::STALE_MEMBER_EPOCH => return Ok(Then::Heartbeat),
            ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::GROUP_ID_NOT_FOUND => {
                self.work = None;
                return Ok(Then::GoOn);
            }
            _ => return Err(format!("unexpected {response:?}")),
        }
        if ClientAssignor::find(&self.assignors, &response.assignor_name).is_none() || response.members.is_empty() {
            return Err(format!("unexpected {response:?} to {:?}", self.assignors));
        }
        if deed == Deed::Die {
            return Ok(Then::Die);
        }
        let placement = match deed {
            Deed::Lie => lie(response, around),
            Deed::Fail => Placement {
                group_epoch: response.group_epoch,
                error: 7,
                members: Vec::new(),
            },
            _ => honest(response, around),
        };
        let takes_ms = match deed {
            Deed::Dawdle => self.timeout_ms + around.rng.between(1_000, 10_000),
            _ => around.rng.between(0, 2_000),
        };
        self.work = Some(Work::Computes(deed, placement, around.now_ms + takes_ms));
        Ok(Then::GoOn)
    }

    pub(crate) fn on_installed(&mut self, error: ErrorCode, message: Option<&Text>) -> Result<Then, String> {
        let Some(Work::Computes(deed, placement, at_ms)) = self.work.take() else {
            return Err(format!("nothing was installed: {error:?} {message:?}"));
        };
        // A request that came twice may have been told of a newer epoch.
        let is_overtaken = message.is_some_and(|message| message.starts_with("It was computed for epoch"));
        match (error, deed) {
            (ErrorCode::NONE, Deed::Lie) => return Err(format!("{placement:?} was installed")),
            (ErrorCode::NONE | ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::GROUP_ID_NOT_FOUND, _) => {}
            (ErrorCode::STALE_MEMBER_EPOCH, _) => {
                self.work = Some(Work::Computes(deed, placement, at_ms));
                return Ok(Then::Heartbeat);
            }
            (ErrorCode::INVALID_ASSIGNMENT, _) if deed == Deed::Lie || is_overtaken => {
                self.work = Some(Work::Asked(deed));
            }
            _ => return Err(format!("{placement:?} is refused: {error:?} {message:?}")),
        }
        Ok(Then::GoOn)
    }
}

/// Each can read these versions of what members say, and says its own in the last of them.
fn list(names: &[&str], (minimum_version, maximum_version): (i16, i16)) -> Vec<ClientAssignor> {
    let assignor = |name: &&str| ClientAssignor {
        name: (*name).into(),
        minimum_version,
        maximum_version,
        reason: 0,
        metadata_version: maximum_version,
        metadata: Bytes::new(),
    };
    names.iter().map(assignor).collect()
}
