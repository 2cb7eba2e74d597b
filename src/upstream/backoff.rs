//! Delays between tries that grow, with jitter, so that many sidecars do not call on a broker at the same moment.

use std::time::Duration;

/// Doubling delays between two bounds.
#[derive(Debug, Clone)]
pub struct Backoff {
    first: Duration,
    max: Duration,
    next: Duration,
}

impl Backoff {
    #[must_use]
    pub const fn new(first: Duration, max: Duration) -> Self {
        Self {
            first,
            max,
            next: first,
        }
    }

    /// How long to wait before the next try: between half the current delay and all of it.
    pub fn delay(&mut self) -> Duration {
        let delay = self.next;
        self.next = (delay * 2).min(self.max);
        jittered(delay)
    }

    pub const fn reset(&mut self) {
        self.next = self.first;
    }
}

/// Between half of `delay` and all of it. Without randomness from the system it is all of it.
fn jittered(delay: Duration) -> Duration {
    let random = getrandom::u32().unwrap_or(u32::MAX);
    delay.mul_f64(0.5 + f64::from(random) / f64::from(u32::MAX) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_bound_and_start_anew_after_a_success() {
        let ms = Duration::from_millis;
        let mut backoff = Backoff::new(ms(100), ms(350));
        for whole in [100, 200, 350, 350] {
            let delay = backoff.delay();
            assert!(delay >= ms(whole / 2) && delay <= ms(whole), "{delay:?} of {whole}");
        }
        backoff.reset();
        assert!(backoff.delay() <= ms(100));
    }
}
