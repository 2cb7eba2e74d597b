//! Answers that carry addresses, on their way to the client.

use bytes::{BufMut, Bytes, BytesMut};

use super::end::End;
use super::responses::{Responses, parse_head};
use super::slot::Forwarded;
use crate::config::HostPort;
use crate::proxy::rewrite::{self, Addresses, RewriteError};
use crate::wire::api;
use crate::wire::frame::LENGTH_SIZE;

/// Answers to Metadata up to here are looked through for new topics: some hundred partitions of the topics that a client uses,
/// and not the list of all topics of a large cluster, which is looked at here as well.
const READ_FOR_TOPICS_MAX: usize = 64 << 10;

impl Responses<'_> {
    /// Sends the next frame, which the buffer can hold, with its addresses changed; it seldom has any.
    pub(super) async fn readdress(&mut self, forwarded: &Forwarded, size: usize) -> Result<(), End> {
        let Forwarded {
            api_key, api_version, ..
        } = *forwarded;
        self.need(size).await?;
        let frame = self.pending().get(..size).unwrap_or_default();
        let head = parse_head(api_key, api_version, frame)?;
        let body = frame.get(LENGTH_SIZE + head.body_offset..).unwrap_or_default();
        let found = rewrite::has_endpoints(api_key, api_version, body);
        if found.map_err(|error| End::upstream_malformed(error.to_string()))? {
            self.rewrite(forwarded, size).await
        } else {
            self.copy(size, None).await
        }
    }

    /// Takes the next frame, changes its addresses and sends it.
    pub(super) async fn rewrite(&mut self, forwarded: &Forwarded, size: usize) -> Result<(), End> {
        let frame = self.gather(size).await?;
        let head = parse_head(forwarded.api_key, forwarded.api_version, &frame)?;
        let body = frame.slice(LENGTH_SIZE + head.body_offset..);
        let changed = self.rewritten(forwarded, &body)?;
        if forwarded.api_key == api::METADATA && body.len() <= READ_FOR_TOPICS_MAX {
            self.see_topics(forwarded.api_version, &body);
        }
        if changed == body {
            return self.emit(&frame).await;
        }
        let head = frame
            .get(LENGTH_SIZE..LENGTH_SIZE + head.body_offset)
            .unwrap_or_default();
        let len = i32::try_from(head.len() + changed.len())
            .map_err(|_| End::upstream_malformed("an answer that has no room for our addresses"))?;
        let mut out = BytesMut::with_capacity(LENGTH_SIZE + head.len() + changed.len());
        out.put_i32(len);
        out.put_slice(head);
        out.put_slice(&changed);
        self.emit(&out).await
    }

    /// A topic that nobody here knows was created a moment ago, maybe by the very question. What cannot be read is for the client
    /// to complain of.
    fn see_topics(&self, version: i16, body: &[u8]) {
        if let Ok(topics) = rewrite::topics_in_metadata(version, body) {
            self.ctx.services.cluster.seen(topics.into_iter());
        }
    }

    fn rewritten(&self, forwarded: &Forwarded, body: &Bytes) -> Result<Bytes, End> {
        let Forwarded {
            api_key, api_version, ..
        } = *forwarded;
        let result = match rewrite::response(api_key, api_version, body.clone(), self.ctx) {
            Err(RewriteError::UnknownNodes(nodes)) => {
                self.give_listeners(&nodes);
                rewrite::response(api_key, api_version, body.clone(), &OrNowhere(self.ctx))
            }
            result => result,
        };
        result.map_err(|error| End::upstream_malformed(error.to_string()))
    }

    /// Nodes that the watcher has not seen yet get their listeners before the client hears of them.
    fn give_listeners(&self, nodes: &[(i32, HostPort)]) {
        let services = &self.ctx.services;
        services.cluster.request_refresh();
        for (node_id, upstream) in nodes {
            if let Err(error) = services.listeners.ensure(*node_id, upstream) {
                services.metrics.listener_failures.inc();
                if services.listener_complaints.may_say() {
                    tracing::error!("{error}; clients are told that the node is out of reach");
                }
            }
        }
    }
}

/// A node that can have no listener is told with a name that resolves nowhere (RFC 2606) and that says why, so that clients
/// lose this node and not the cluster, and never learn the upstream's own address.
struct OrNowhere<'a>(&'a dyn Addresses);

impl Addresses for OrNowhere<'_> {
    fn advertised(&self, node_id: i32) -> Option<HostPort> {
        let nowhere = || HostPort {
            host: format!("node-{node_id}.has-no-convoke-listener.invalid"),
            port: 1,
        };
        Some(self.0.advertised(node_id).unwrap_or_else(nowhere))
    }
}
