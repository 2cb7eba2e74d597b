//! The queue between the two halves of a connection.
//!
//! One task polls both halves, the one that pushes first. So whoever waits for a slot is looked at again after every push, and
//! nobody has to be woken for it; waking the task that runs would only make it run a second time for nothing.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use super::slot::Slot;

/// Places that an empty queue keeps.
const KEPT: usize = 4;

/// Answers to come, in the order of their requests.
#[derive(Debug)]
pub(super) struct Queue {
    max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    slots: VecDeque<Slot>,
    /// Nothing more will be pushed.
    ended: bool,
    /// Waits for room.
    pusher: Option<Waker>,
}

/// What is at the front.
#[derive(Debug)]
pub(super) enum Front {
    Slot(Slot),
    Empty,
    /// Empty for good.
    Ended,
}

impl Queue {
    /// For at most `max` slots.
    pub(super) fn new(max: usize) -> Self {
        Self {
            max,
            state: Mutex::default(),
        }
    }

    /// Waits until there is room. Nothing is pushed if the future is dropped.
    pub(super) async fn push(&self, slot: Slot) {
        let mut slot = Some(slot);
        poll_fn(|cx| {
            let mut state = self.state();
            if state.slots.len() < self.max {
                state.slots.extend(slot.take());
                return Poll::Ready(());
            }
            state.pusher = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Whether a slot can be pushed without waiting.
    pub(super) fn has_room(&self) -> bool {
        self.state().slots.len() < self.max
    }

    /// Tells that nothing more will be pushed.
    pub(super) fn end(&self) {
        self.state().ended = true;
    }

    /// Takes what is at the front.
    pub(super) fn pop(&self) -> Front {
        let mut state = self.state();
        let Some(slot) = state.slots.pop_front() else {
            return if state.ended { Front::Ended } else { Front::Empty };
        };
        if state.slots.is_empty() {
            state.slots.shrink_to(KEPT);
        }
        if let Some(pusher) = state.pusher.take() {
            pusher.wake();
        }
        Front::Slot(slot)
    }

    /// Waits for the next slot; none if there will be none. Nothing is lost if the future is dropped.
    pub(super) async fn next(&self) -> Option<Slot> {
        poll_fn(|_| match self.pop() {
            Front::Slot(slot) => Poll::Ready(Some(slot)),
            Front::Ended => Poll::Ready(None),
            Front::Empty => Poll::Pending,
        })
        .await
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
