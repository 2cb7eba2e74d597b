//! What a process has used, from /proc.

use std::fs;
use std::path::Path;
use std::time::Duration;

use convoke_support::Result;

/// The time that a process has had of the processors, all its threads together, also those that have ended.
#[derive(Clone, Copy, Debug)]
pub struct Cpu {
    user: Duration,
    kernel: Duration,
}

impl Cpu {
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            user: self.user.saturating_sub(before.user),
            kernel: self.kernel.saturating_sub(before.kernel),
        }
    }

    #[must_use]
    pub fn total(self) -> Duration {
        self.user + self.kernel
    }

    /// How much of it the kernel took, in percent; nothing if there was none.
    #[must_use]
    pub fn kernel_percent(self) -> Option<f64> {
        let total = self.total().as_secs_f64();
        (total > 0.0).then(|| 100.0 * self.kernel.as_secs_f64() / total)
    }
}

/// What the process has used until now.
///
/// # Errors
/// When there is no such process.
pub fn cpu(process: u32) -> Result<Cpu> {
    const UTIME: usize = 11;
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))
        .map_err(|error| format!("cannot read the CPU time of process {process}: {error}"))?;
    // The name in parentheses may hold spaces; numbering starts behind it, with the state.
    let (_, fields) = stat.rsplit_once(") ").ok_or("/proc/PID/stat has no name")?;
    let mut fields = fields.split(' ').skip(UTIME);
    let per_second = u32::try_from(rustix::param::clock_ticks_per_second())?;
    let mut time = || -> Result<Duration> {
        let ticks: u32 = fields.next().ok_or("/proc/PID/stat is short")?.parse()?;
        Ok(Duration::from_secs_f64(f64::from(ticks) / f64::from(per_second)))
    };
    Ok(Cpu {
        user: time()?,
        kernel: time()?,
    })
}

/// Resident bytes.
///
/// # Errors
/// When there is no such process.
pub fn resident(process: u32) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))
        .map_err(|error| format!("cannot read the memory of process {process}: {error}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    let kilobytes: u32 = kilobytes.ok_or("/proc/PID/status has no VmRSS")?.trim().parse()?;
    Ok(f64::from(kilobytes) * 1024.0)
}

/// The device and the type of the file system that a path is on.
///
/// # Errors
/// When /proc/self/mounts cannot be read.
pub fn file_system(path: &Path) -> Result<(String, String)> {
    let path = path.canonicalize()?;
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    let found = mounts
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(' ');
            Some((fields.next()?, fields.next()?, fields.next()?))
        })
        .filter(|(_, mounted_on, _)| path.starts_with(mounted_on))
        .max_by_key(|(_, mounted_on, _)| mounted_on.len());
    let (device, _, kind) = found.ok_or("no mount holds the path")?;
    Ok((device.to_owned(), kind.to_owned()))
}
