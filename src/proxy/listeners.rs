//! Where clients connect: one bootstrap address and one address for each upstream node.
//!
//! An address once given to a node stays its address: while the node is away, and when it moves. Listeners are bound before
//! anything is accepted, so a client that is early waits in the kernel's queue and is not refused. Nodes that are met
//! later, in the cluster watcher's picture or in an answer to a client, get theirs while running.
//!
//! What a client is told is the template of `listen.advertise` if there is one. Else it is the host that the bootstrap listener
//! was configured with, and where that is a wildcard (`0.0.0.0`, `::`) the local address of the client's own connection: an
//! address at which that very client has just reached us, which no other guess can promise. Behind a NAT or a port mapping it is
//! not the address that the client used, and a template is needed.

mod address;

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use arc_swap::ArcSwap;
use socket2::{Domain, Protocol, Socket, Type};

pub use address::Advertised;

use crate::config::{AdvertiseTemplate, HostPort, ListenConfig, NodePorts};
use crate::upstream::cluster::Cluster;

/// Clients that may wait to be accepted, where the kernel allows as many: all of a fleet come at once after a restart.
const BACKLOG: i32 = 4096;

/// Why an address cannot be listened on.
#[derive(Debug, thiserror::Error)]
pub enum ListenerError {
    #[error("cannot find an address of listen.bootstrap {host:?}: {source}; give an address or a name of this machine")]
    Resolve { host: String, source: io::Error },
    #[error("cannot listen on {address} for {purpose}: {source}{}", hint(source))]
    Bind {
        address: SocketAddr,
        purpose: String,
        source: io::Error,
    },
    #[error(
        "node {node_id} gets no port: base port {base} plus the node id is not a port; use a lower base or a range"
    )]
    NoSuchPort { node_id: i32, base: u16 },
    #[error("node {node_id} gets no port: all of {first}-{last} are in use; widen the range of listen.nodes")]
    RangeExhausted { node_id: i32, first: u16, last: u16 },
    #[error("node {node_id} cannot be advertised: listen.advertise ({template}) makes no port from 1 to 65535 of it")]
    AdvertisedPort { node_id: i32, template: AdvertiseTemplate },
}

fn hint(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::AddrInUse => "; another program, or another Convoke, has the port",
        io::ErrorKind::AddrNotAvailable => "; this machine does not have the address",
        io::ErrorKind::PermissionDenied => "; ports below 1024 need a privilege",
        _ => "",
    }
}

/// What a listener stands for.
#[derive(Debug, Clone)]
pub enum Target {
    /// Any node: the upstream's bootstrap list.
    Bootstrap,
    Node(Arc<NodeListener>),
}

impl Target {
    /// The node's id, none for bootstrap.
    #[must_use]
    pub fn node_id(&self) -> Option<i32> {
        match self {
            Self::Bootstrap => None,
            Self::Node(node) => Some(node.node_id),
        }
    }
}

/// A node's listener.
#[derive(Debug)]
pub struct NodeListener {
    pub node_id: i32,
    /// The bound address.
    pub listen: SocketAddr,
    advertised: Advertised,
    upstream: ArcSwap<HostPort>,
}

impl NodeListener {
    /// Where the node is reached now.
    #[must_use]
    pub fn upstream(&self) -> Arc<HostPort> {
        self.upstream.load_full()
    }
}

/// A socket that is bound and not yet served.
#[derive(Debug)]
pub struct Bound {
    pub socket: TcpListener,
    pub target: Target,
}

/// Begins to serve a bound socket.
pub type Serve = Box<dyn Fn(Bound) + Send + Sync>;
/// Is told of each node as it gets its listener.
pub type Announce = Box<dyn Fn(&NodeListener) + Send + Sync>;

/// All listeners of the process.
pub struct Listeners {
    ip: IpAddr,
    host: String,
    ports: NodePorts,
    template: Option<AdvertiseTemplate>,
    bootstrap: SocketAddr,
    announce: Announce,
    nodes: RwLock<BTreeMap<i32, Arc<NodeListener>>>,
    /// Held while a node gets its listener, so that none gets two.
    stage: Mutex<Stage>,
}

enum Stage {
    /// Bound, waiting to be served.
    Waiting(Vec<Bound>),
    Serving(Serve),
}

impl std::fmt::Debug for Listeners {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listeners")
            .field("bootstrap", &self.bootstrap)
            .field("nodes", &self.nodes)
            .finish_non_exhaustive()
    }
}

impl Listeners {
    /// Binds the bootstrap listener.
    ///
    /// # Errors
    /// If its host has no address, or the port cannot be had.
    pub fn bind(config: &ListenConfig, announce: Announce) -> Result<Self, ListenerError> {
        let HostPort { host, port } = &config.bootstrap;
        let resolve = |source| ListenerError::Resolve {
            host: host.clone(),
            source,
        };
        let wanted = (host.as_str(), *port)
            .to_socket_addrs()
            .map_err(resolve)?
            .next()
            .ok_or_else(|| resolve(io::Error::from(io::ErrorKind::NotFound)))?;
        let (socket, bootstrap) = listen(wanted, || "bootstrap connections".to_owned())?;
        Ok(Self {
            ip: wanted.ip(),
            host: host.clone(),
            ports: config.nodes.clone(),
            template: config.advertise.clone(),
            bootstrap,
            announce,
            nodes: RwLock::default(),
            stage: Mutex::new(Stage::Waiting(vec![Bound {
                socket,
                target: Target::Bootstrap,
            }])),
        })
    }

    /// The bound bootstrap address.
    #[must_use]
    pub const fn bootstrap(&self) -> SocketAddr {
        self.bootstrap
    }

    /// Gives the node a listener if it has none, and answers what clients are told (with the bound address in place of a
    /// client's own local one). A node that has one keeps it, whatever address `upstream` says: only [`Self::follow`] moves nodes.
    ///
    /// # Errors
    /// If there is no port for it.
    pub fn ensure(&self, node_id: i32, upstream: &HostPort) -> Result<HostPort, ListenerError> {
        if let Some(node) = self.node(node_id) {
            return Ok(node.advertised.to(self.ip));
        }
        let mut stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(node) = self.node(node_id) {
            return Ok(node.advertised.to(self.ip));
        }
        let (socket, listen) = self.bind_node(node_id)?;
        let node = Arc::new(NodeListener {
            node_id,
            listen,
            advertised: Advertised::new(self.template.as_ref(), &self.host, self.ip, node_id, listen.port())?,
            upstream: ArcSwap::from_pointee(upstream.clone()),
        });
        (self.announce)(&node);
        let bound = Bound {
            socket,
            target: Target::Node(Arc::clone(&node)),
        };
        match &mut *stage {
            Stage::Waiting(waiting) => waiting.push(bound),
            Stage::Serving(serve) => serve(bound),
        }
        let advertised = node.advertised.to(self.ip);
        self.nodes
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(node_id, node);
        Ok(advertised)
    }

    /// Takes over a picture of the cluster: new nodes get listeners, in the order of their ids, nodes that moved are reached at
    /// their new address. Every node is tried; the errors of those that got none are returned.
    pub fn follow(&self, cluster: &Cluster) -> Vec<ListenerError> {
        let mut errors = Vec::new();
        for (node_id, upstream) in &cluster.nodes {
            match self.node(*node_id) {
                Some(node) if *node.upstream() == *upstream => {}
                Some(node) => {
                    tracing::info!(node = node_id, from = %node.upstream(), to = %upstream, "upstream node moved");
                    node.upstream.store(Arc::new(upstream.clone()));
                }
                None => errors.extend(self.ensure(*node_id, upstream).err()),
            }
        }
        errors
    }

    /// What a client is told of a node, on a connection whose local address is `local`.
    #[must_use]
    pub fn advertised(&self, node_id: i32, local: IpAddr) -> Option<HostPort> {
        self.node(node_id).map(|node| node.advertised.to(local))
    }

    /// Serves what is bound, and from now on each listener as soon as it is bound.
    pub fn serve(&self, serve: Serve) {
        let mut stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        if let Stage::Waiting(waiting) = &mut *stage {
            for bound in waiting.drain(..) {
                serve(bound);
            }
        }
        *stage = Stage::Serving(serve);
    }

    fn node(&self, node_id: i32) -> Option<Arc<NodeListener>> {
        self.nodes
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&node_id)
            .cloned()
    }

    fn bind_node(&self, node_id: i32) -> Result<(TcpListener, SocketAddr), ListenerError> {
        let purpose = || format!("node {node_id}");
        match self.ports {
            NodePorts::Ephemeral => listen(SocketAddr::new(self.ip, 0), purpose),
            NodePorts::Base(base) => {
                let port = u16::try_from(i32::from(base) + node_id.clamp(-1, i32::from(u16::MAX)))
                    .map_err(|_| ListenerError::NoSuchPort { node_id, base })?;
                listen(SocketAddr::new(self.ip, port), purpose)
            }
            NodePorts::Range { first, last } => {
                for port in first..=last {
                    match listen(SocketAddr::new(self.ip, port), purpose) {
                        Err(ListenerError::Bind { source, .. }) if source.kind() == io::ErrorKind::AddrInUse => {}
                        result => return result,
                    }
                }
                Err(ListenerError::RangeExhausted { node_id, first, last })
            }
        }
    }
}

fn listen(address: SocketAddr, purpose: impl FnOnce() -> String) -> Result<(TcpListener, SocketAddr), ListenerError> {
    let bind = || -> io::Result<(TcpListener, SocketAddr)> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        // A restart must not wait for connections of the process before to be forgotten.
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        let socket = TcpListener::from(socket);
        let bound = socket.local_addr()?;
        Ok((socket, bound))
    };
    bind().map_err(|source| ListenerError::Bind {
        address,
        purpose: purpose(),
        source,
    })
}

#[cfg(test)]
mod tests;
