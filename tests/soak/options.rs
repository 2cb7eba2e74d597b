//! What a run is to be.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::crew::{self, Place};
use crate::journal::now;

/// Minutes of a run that was not told how long.
const MINUTES: u64 = 60;

#[derive(Debug)]
pub struct Run {
    /// How long faults go on; `None` for each of the short ones once.
    pub time: Option<Duration>,
    pub seed: u64,
    pub nodes: i32,
    pub places: &'static [Place],
    /// Of each of the three producers, between two records.
    pub interval: Duration,
    /// What it leaves behind.
    pub folder: PathBuf,
}

impl Run {
    /// `--soak [MINUTES [SEED]]`; without it, the short run that is one of the tests.
    ///
    /// # Errors
    /// When these are no numbers.
    pub fn from(arguments: &[String]) -> Result<Self, String> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("soak");
        let Some((_, arguments)) = arguments.split_first().filter(|(first, _)| *first == "--soak") else {
            return Ok(Self {
                time: None,
                seed: 1,
                nodes: 1,
                places: &crew::FEW,
                interval: Duration::from_millis(50),
                folder: folder.join(format!("short-{}", std::process::id())),
            });
        };
        let number = |at: usize, default: u64| {
            let argument = arguments.get(at);
            argument.map_or(Ok(default), |text| text.parse())
        };
        let read = || Ok::<_, std::num::ParseIntError>((number(0, MINUTES)?, number(1, now() / 1_000_000)?));
        let (minutes, seed) = read().map_err(|error| format!("MINUTES and SEED are numbers: {error}"))?;
        Ok(Self {
            time: Some(Duration::from_secs(60 * minutes)),
            seed,
            nodes: 3,
            places: &crew::PLACES,
            interval: Duration::from_millis(170),
            folder: folder.join(format!("seed-{seed}")),
        })
    }
}
