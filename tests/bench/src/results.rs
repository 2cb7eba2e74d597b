//! The figures of all rounds, and their medians.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::rig::Route;
use crate::work::{Figure, Work};

/// The figures of one round.
pub type Sample = BTreeMap<Figure, f64>;

/// What has figures on each route.
pub trait Row: Copy + Ord {
    /// As the JSON file has it.
    fn key(self) -> String;

    /// As the tables have it.
    fn title(self) -> String;
}

#[derive(Debug)]
pub struct Results<W = Work> {
    samples: BTreeMap<(W, Route), Vec<Sample>>,
}

impl<W> Default for Results<W> {
    fn default() -> Self {
        Self {
            samples: BTreeMap::new(),
        }
    }
}

impl<W: Row> Results<W> {
    pub fn record(&mut self, work: W, route: Route, sample: Sample) {
        self.samples.entry((work, route)).or_default().push(sample);
    }

    /// The median over the rounds; none where nothing was measured.
    #[must_use]
    pub fn median(&self, work: W, route: Route, figure: Figure) -> Option<f64> {
        median(self.values(work, route, figure))
    }

    /// The median of one route over the median of another.
    #[must_use]
    pub fn ratio(&self, work: W, figure: Figure, of: Route, over: Route) -> Option<f64> {
        let (of, over) = (self.median(work, of, figure)?, self.median(work, over, figure)?);
        (over > 0.0).then(|| of / over)
    }

    /// `{work: {route: {figure: {median, rounds}}}}`
    #[must_use]
    pub fn json(&self) -> Value {
        let mut out = json!({});
        for (&(work, route), samples) in &self.samples {
            for &figure in samples.iter().flat_map(BTreeMap::keys) {
                out[work.key()][route.name()][figure.key()] = json!({
                    "median": self.median(work, route, figure),
                    "rounds": self.values(work, route, figure),
                });
            }
        }
        out
    }

    fn values(&self, work: W, route: Route, figure: Figure) -> Vec<f64> {
        let samples = self.samples.get(&(work, route)).into_iter().flatten();
        samples.filter_map(|sample| sample.get(&figure).copied()).collect()
    }
}

#[must_use]
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    if values.len() % 2 == 1 {
        return Some(upper);
    }
    Some(f64::midpoint(values[middle - 1], upper))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_or_between_the_two_middle_ones() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0]), Some(3.0));
        assert_eq!(median(vec![9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 9.0]), Some(3.0));
    }

    #[test]
    fn ratios_are_of_medians() {
        let mut results = Results::default();
        for (route, value) in [(Route::Haproxy, 10.0), (Route::Convoke, 5.0), (Route::Convoke, 7.0)] {
            let sample = [(Figure::CpuUsPerRequest, value)].into();
            results.record(Work::Produce1K, route, sample);
        }
        let ratio = |figure| results.ratio(Work::Produce1K, figure, Route::Convoke, Route::Haproxy);
        assert_eq!(ratio(Figure::CpuUsPerRequest), Some(0.6));
        assert_eq!(ratio(Figure::P99Us), None);
    }
}
