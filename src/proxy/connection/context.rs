//! What the two halves of one connection share.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, Semaphore};

use super::progress::Progress;
use crate::config::HostPort;
use crate::coordinator::request::Text;
use crate::proxy::listeners::Target;
use crate::proxy::rewrite::Addresses;
use crate::proxy::sasl::{SaslState, Sent};
use crate::proxy::services::Services;

/// One connection's surroundings and shared state.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) services: Arc<Services>,
    pub(super) target: Target,
    /// The address at which the client reached us.
    pub(super) local: IpAddr,
    /// As Kafka prints it: `/1.2.3.4`.
    pub(super) client_host: Text,
    pub(super) progress: Progress,
    /// Bytes of answers made here that wait for the client.
    pub(super) answer_budget: Arc<Semaphore>,
    sasl: Mutex<SaslState>,
    /// Told when the answer to a SASL frame has come.
    pub(super) sasl_answered: Notify,
}

impl Context {
    pub(super) fn new(services: Arc<Services>, target: Target, peer: SocketAddr, local: IpAddr) -> Self {
        Self {
            target,
            local,
            client_host: Text::from(format!("/{}", peer.ip().to_canonical())),
            progress: Progress::default(),
            answer_budget: Arc::new(Semaphore::new(services.limits.buffer)),
            sasl: Mutex::new(SaslState::new()),
            sasl_answered: Notify::new(),
            services,
        }
    }

    pub(super) fn sasl(&self) -> MutexGuard<'_, SaslState> {
        self.sasl.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the answer to a SASL frame.
    pub(super) fn sasl_was_answered(&self, sent: Sent, body: &[u8]) {
        self.sasl().answered(sent, body, self.services.now_ms());
        self.sasl_answered.notify_one();
    }
}

impl Addresses for Context {
    fn advertised(&self, node_id: i32) -> Option<HostPort> {
        self.services.listeners.advertised(node_id, self.local)
    }
}
