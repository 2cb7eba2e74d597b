//! Where the processes of a test live, so that a leaked broker address is a dead end for clients.
//!
//! As root the brokers and Convoke share a network namespace of the test's own: the brokers are on that namespace's loopback,
//! and clients outside reach only Convoke, over a veth pair. Elsewhere everything is on the machine's loopback, which is said once.

use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::Result;

/// Numbers that are tried for a namespace.
const ATTEMPTS: u32 = 4;

static COUNT: AtomicU32 = AtomicU32::new(0);

/// The network of one test cluster. Dropping it removes it.
#[derive(Debug)]
pub enum Network {
    /// Brokers and Convoke in the namespace `name`; `outside` and `inside` are the ends of the veth pair.
    Namespace {
        name: String,
        outside: Ipv4Addr,
        inside: Ipv4Addr,
    },
    /// Everything on loopback.
    Loopback,
}

impl Network {
    /// A namespace where that is possible, else loopback.
    #[must_use]
    pub fn new() -> Self {
        // A test run that was killed may have left a namespace of the same number behind.
        let mut error = None;
        for _ in 0..ATTEMPTS {
            match Self::namespace() {
                Ok(network) => return network,
                Err(failure) => error = Some(failure),
            }
        }
        let error = error.map(|error| error.to_string()).unwrap_or_default();
        eprintln!("no network namespace here ({error}); clients are not kept from the brokers' own addresses");
        Self::Loopback
    }

    fn namespace() -> Result<Self> {
        let number = (std::process::id() * 16 + COUNT.fetch_add(1, Ordering::Relaxed)) % (64 * 256);
        let [_, _, block, slot] = number.to_be_bytes();
        let name = format!("convoke-{number}");
        // One /30 for each namespace: 10.192.0.0 to 10.255.255.252.
        let base = Ipv4Addr::new(10, 192 + block, slot, 0);
        let [first, second, third, _] = base.octets();
        let (outside, inside) = (
            Ipv4Addr::new(first, second, third, 1),
            Ipv4Addr::new(first, second, third, 2),
        );
        let (there, here) = (format!("cv{number}i"), format!("cv{number}o"));
        ip(&["netns", "add", &name])?;
        // From here on it is ours to remove, also when a step fails.
        let network = Self::Namespace {
            name: name.clone(),
            outside,
            inside,
        };
        ip(&[
            "link", "add", &here, "type", "veth", "peer", "name", &there, "netns", &name,
        ])?;
        ip(&["addr", "add", &format!("{outside}/30"), "dev", &here])?;
        ip(&["link", "set", &here, "up"])?;
        ip(&["-n", &name, "addr", "add", &format!("{inside}/30"), "dev", &there])?;
        ip(&["-n", &name, "link", "set", &there, "up"])?;
        ip(&["-n", &name, "link", "set", "lo", "up"])?;
        Ok(network)
    }

    /// A command that runs beside the brokers.
    #[must_use]
    pub fn command_inside(&self, program: &str) -> Command {
        match self {
            Self::Namespace { name, .. } => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", name, program]);
                command
            }
            Self::Loopback => Command::new(program),
        }
    }

    /// The address that Convoke binds and that clients reach.
    #[must_use]
    pub fn convoke_address(&self) -> IpAddr {
        match self {
            Self::Namespace { inside, .. } => IpAddr::V4(*inside),
            Self::Loopback => IpAddr::V4(Ipv4Addr::LOCALHOST),
        }
    }

    /// Whether clients cannot reach the brokers.
    #[must_use]
    pub const fn isolates(&self) -> bool {
        matches!(self, Self::Namespace { .. })
    }
}

impl Default for Network {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        if let Self::Namespace { name, .. } = self {
            // The veth pair goes with the namespace.
            let _ = ip(&["netns", "del", name]);
        }
    }
}

fn ip(arguments: &[&str]) -> Result<()> {
    let output = Command::new("ip")
        .args(arguments)
        .output()
        .map_err(|error| format!("cannot run ip: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("ip {}: {}", arguments.join(" "), said.trim()).into())
}
