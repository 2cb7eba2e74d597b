//! How one who has asked a shard waits for the answer.

use tokio::sync::oneshot;

use super::shard_cell::unavailable;
use crate::coordinator::request::Response;
use crate::wire::error_code::ErrorCode;

/// What one who waits is told.
#[derive(Debug)]
pub(super) enum Told {
    Answered(Response),
    /// The request is its group's now, and the answer comes by this.
    Admitted(Waiting),
}

/// The end that tells.
pub(super) type Teller = oneshot::Sender<Told>;

/// The end that waits.
#[derive(Debug)]
pub(super) struct Waiting(oneshot::Receiver<Told>);

impl Waiting {
    pub(super) fn new() -> (Teller, Self) {
        let (teller, told) = oneshot::channel();
        (teller, Self(told))
    }

    /// Waits for what is told next; a shard that is no more does not coordinate anything.
    pub(super) async fn told(self) -> Told {
        self.0
            .await
            .unwrap_or_else(|_| Told::Answered(unavailable(ErrorCode::NOT_COORDINATOR)))
    }

    /// Waits for the answer.
    pub(super) async fn answer(self) -> Response {
        let mut waiting = self;
        loop {
            match waiting.told().await {
                Told::Answered(response) => return response,
                Told::Admitted(admitted) => waiting = admitted,
            }
        }
    }
}

/// What became of a request by the time when it is certain whether its group is coordinated here.
#[derive(Debug)]
pub enum Submitted {
    Answered(Response),
    /// It is, and the answer may take long.
    Admitted(Admitted),
}

/// A join or a sync that its group has taken in.
#[derive(Debug)]
pub struct Admitted(pub(super) Waiting);

impl Admitted {
    /// Waits for the answer, which is not `NotOwned`. A parked join or sync is answered when its group says so, however long
    /// that takes.
    pub async fn answer(self) -> Response {
        self.0.answer().await
    }
}
