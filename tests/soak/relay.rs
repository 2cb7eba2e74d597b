//! A relay that holds up and cuts what goes through it.

use std::net::SocketAddr;
use std::time::Duration;

use convoke_support::Result;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::watch;

/// What happens to what is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weather {
    Fair,
    /// Each piece is held for so long.
    Slow(Duration),
    /// Nothing gets through, and nobody is told.
    Still,
}

#[derive(Debug, Clone, Copy)]
struct State {
    weather: Weather,
    /// How often all connections were cut.
    cuts: u64,
}

/// Passes connections on, each route from its own address to another's.
#[derive(Debug)]
pub struct Relay(watch::Sender<State>);

impl Relay {
    /// Listens at the first address of each route, for connections to the second.
    pub fn start(runtime: &Handle, routes: &[(SocketAddr, SocketAddr)]) -> Result<Self> {
        let (sender, state) = watch::channel(State {
            weather: Weather::Fair,
            cuts: 0,
        });
        for &(at, to) in routes {
            let listener = runtime
                .block_on(TcpListener::bind(at))
                .map_err(|error| format!("the relay cannot listen at {at}: {error}"))?;
            runtime.spawn(serve(listener, to, state.clone()));
        }
        Ok(Self(sender))
    }

    pub fn weather(&self, weather: Weather) {
        self.0.send_modify(|state| state.weather = weather);
    }

    /// Closes every connection there is.
    pub fn cut(&self) {
        self.0.send_modify(|state| state.cuts += 1);
    }
}

async fn serve(listener: TcpListener, to: SocketAddr, state: watch::Receiver<State>) {
    loop {
        let Ok((client, _)) = listener.accept().await else {
            // No descriptor is free: others will be.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        tokio::spawn(pass(client, to, state.clone()));
    }
}

/// Whatever ends a connection on one side ends it on the other.
async fn pass(client: TcpStream, to: SocketAddr, mut state: watch::Receiver<State>) {
    let Ok(server) = TcpStream::connect(to).await else {
        return;
    };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let cuts = state.borrow().cuts;
    let (client_reads, client_writes) = client.into_split();
    let (server_reads, server_writes) = server.into_split();
    let there = pump(client_reads, server_writes, state.clone());
    let back = pump(server_reads, client_writes, state.clone());
    tokio::select! {
        _ = async { tokio::try_join!(there, back) } => {}
        _ = state.wait_for(|state| state.cuts != cuts) => {}
    }
}

async fn pump(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut state: watch::Receiver<State>) -> Result<()> {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let read = from.read(&mut buffer).await?;
        let weather = state.wait_for(|state| state.weather != Weather::Still).await?.weather;
        if let Weather::Slow(hold) = weather {
            tokio::time::sleep(hold).await;
        }
        if read == 0 {
            return Ok(to.shutdown().await?);
        }
        to.write_all(&buffer[..read]).await?;
    }
}
