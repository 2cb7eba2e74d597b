//! What clients are told of a listener, which need not be what is bound.

use std::net::IpAddr;

use super::ListenerError;
use crate::config::{AdvertiseTemplate, HostPort};

/// The advertised address of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advertised {
    /// None: the local address of the client's connection.
    host: Option<String>,
    port: u16,
}

impl Advertised {
    pub(super) fn new(
        template: Option<&AdvertiseTemplate>,
        host: &str,
        bound: IpAddr,
        node_id: i32,
        port: u16,
    ) -> Result<Self, ListenerError> {
        let Some(template) = template else {
            let host = (!bound.is_unspecified()).then(|| host.to_owned());
            return Ok(Self { host, port });
        };
        let advertised = template
            .address(node_id, port)
            .ok_or_else(|| ListenerError::AdvertisedPort {
                node_id,
                template: template.clone(),
            })?;
        Ok(Self {
            host: Some(advertised.host),
            port: advertised.port,
        })
    }

    /// The address for a client whose connection has this local address.
    pub(super) fn to(&self, local: IpAddr) -> HostPort {
        let host = self.host.clone().unwrap_or_else(|| local.to_canonical().to_string());
        HostPort { host, port: self.port }
    }
}
