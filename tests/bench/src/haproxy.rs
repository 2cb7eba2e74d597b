//! HAProxy in TCP mode in front of one broker, with Debian's defaults for everything that costs or saves CPU.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use convoke_support::process::Process;
use convoke_support::{Result, ports};
use tempfile::TempDir;

const START_LIMIT: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct Haproxy {
    process: Process,
    address: SocketAddr,
    _folder: TempDir,
}

impl Haproxy {
    /// # Errors
    /// When it is not installed or does not listen within ten seconds.
    pub fn start(broker: SocketAddr) -> Result<Self> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, ports::free(1)?));
        let folder = tempfile::Builder::new().prefix("convoke-haproxy-").tempdir()?;
        let file = folder.path().join("haproxy.cfg");
        std::fs::write(&file, configuration(address, broker))?;
        let mut command = Command::new("haproxy");
        // In the foreground, in one process.
        command.arg("-db").arg("-f").arg(&file);
        let process =
            Process::spawn("haproxy", command).map_err(|error| format!("{error}; apt-get install haproxy"))?;
        let deadline = Instant::now() + START_LIMIT;
        // It says nothing when it is ready; this only paces the tries.
        while TcpStream::connect(address).is_err() {
            if Instant::now() > deadline {
                return Err(format!("haproxy does not listen\n{}", process.report()).into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(Self {
            process,
            address,
            _folder: folder,
        })
    }

    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    #[must_use]
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }
}

fn configuration(address: SocketAddr, broker: SocketAddr) -> String {
    format!(
        "global
  maxconn 4000
defaults
  mode tcp
  timeout connect 5s
  timeout client 1h
  timeout server 1h
listen kafka
  bind {address}
  server node1 {broker}
"
    )
}
