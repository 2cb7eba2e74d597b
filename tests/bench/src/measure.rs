//! One measured stretch of a closed loop, with what the server and the load used meanwhile.

use std::net::SocketAddr;
use std::time::Duration;

use convoke_support::Result;

use crate::closed_loop::{ClosedLoop, Repeated};
use crate::results::Sample;
use crate::usage;
use crate::work::Figure;

/// Before each measured stretch: connections are dialled, buffers and branch predictors are warm.
const WARM_UP: Duration = Duration::from_millis(300);

/// Runs the loop against `address`, where `server` is the process whose CPU counts.
///
/// # Errors
/// When a connection ends or an answer is not good.
pub fn closed_loop(address: SocketAddr, server: u32, requests: Vec<Repeated>, duration: Duration) -> Result<Sample> {
    let mut load = ClosedLoop::connect(address, requests)?;
    load.run(WARM_UP)?;
    let client = std::process::id();
    let (server_before, client_before) = (usage::cpu(server)?, usage::cpu(client)?);
    let tally = load.run(duration)?;
    let server_cpu = usage::cpu(server)?.since(server_before);
    let client_cpu = usage::cpu(client)?.since(client_before);
    let seconds = tally.elapsed.as_secs_f64();
    #[allow(clippy::cast_precision_loss, reason = "counts below 2^53")]
    let (requests, bytes) = (tally.requests as f64, tally.bytes as f64);
    let mut sample = Sample::from([
        (Figure::MegabytesPerSecond, bytes / 1e6 / seconds),
        (Figure::RequestsPerSecond, requests / seconds),
        (Figure::P50Us, tally.latency_us(0.5)),
        (Figure::P99Us, tally.latency_us(0.99)),
        (
            Figure::CpuUsPerRequest,
            server_cpu.total().as_secs_f64() * 1e6 / requests,
        ),
        (
            Figure::CpuMsPerGigabyte,
            server_cpu.total().as_secs_f64() * 1e3 / (bytes / 1e9),
        ),
        (
            Figure::ClientCpuUsPerRequest,
            client_cpu.total().as_secs_f64() * 1e6 / requests,
        ),
        (Figure::ResidentMb, usage::resident(server)? / 1e6),
    ]);
    if let Some(percent) = server_cpu.kernel_percent() {
        sample.insert(Figure::KernelPercent, percent);
    }
    Ok(sample)
}
