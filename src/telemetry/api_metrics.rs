//! The metrics of one API, resolved once.

use std::sync::OnceLock;

use prometheus::{Histogram, HistogramVec, IntCounter, IntCounterVec};

use super::metrics::Maker;
use crate::wire::error_code::ErrorCode;

/// Error codes from -1 up to here have a slot of their own; Kafka's end at 133 today. Others but our own share the label `other`.
const ERROR_CODE_MAX: i16 = 160;

/// From a heartbeat answered from memory to a join that waits for a whole rebalance.
const LATENCY_BUCKETS: &[f64] = &[
    0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
];

/// The families whose children `ApiMetrics` holds.
#[derive(Debug)]
pub(super) struct ApiVecs {
    requests: IntCounterVec,
    request_bytes: IntCounterVec,
    response_bytes: IntCounterVec,
    ours_seconds: HistogramVec,
    upstream_seconds: HistogramVec,
    denied: IntCounterVec,
    errors: IntCounterVec,
}

impl ApiVecs {
    pub(super) fn new(make: &Maker<'_>) -> Self {
        Self {
            requests: make.counters("convoke_requests_total", "Requests from clients, by API.", &["api"]),
            request_bytes: make.counters(
                "convoke_request_bytes_total",
                "Bytes of requests from clients, length field included.",
                &["api"],
            ),
            response_bytes: make.counters(
                "convoke_response_bytes_total",
                "Bytes of responses to clients, length field included.",
                &["api"],
            ),
            ours_seconds: make.histograms(
                "convoke_request_ours_seconds",
                "Time that a request spent in Convoke, waiting for other members included, for the upstream not.",
                &["api"],
                LATENCY_BUCKETS,
            ),
            upstream_seconds: make.histograms(
                "convoke_request_upstream_seconds",
                "Time from sending a request upstream until the first byte of its response.",
                &["api"],
                LATENCY_BUCKETS,
            ),
            denied: make.counters(
                "convoke_access_denied_total",
                "Groups and topics that a client's user may not use as it asked, by API.",
                &["api"],
            ),
            errors: make.counters(
                "convoke_request_errors_total",
                "Responses made by Convoke that carry an error, by API and Kafka's name of the error.",
                &["api", "error"],
            ),
        }
    }
}

/// The metrics of one API.
#[derive(Debug)]
pub struct ApiMetrics {
    pub requests: IntCounter,
    pub request_bytes: IntCounter,
    pub response_bytes: IntCounter,
    pub ours_seconds: Histogram,
    pub upstream_seconds: Histogram,
    /// Groups and topics that a user asked for without the right to.
    pub denied: IntCounter,
    name: &'static str,
    errors: IntCounterVec,
    /// By code + 1; then our own code; the last one is for every code that has no slot.
    by_code: Vec<OnceLock<IntCounter>>,
}

impl ApiMetrics {
    pub(super) fn new(vecs: &ApiVecs, name: &'static str) -> Self {
        let slots = usize::try_from(ERROR_CODE_MAX).unwrap_or_default() + 4;
        Self {
            requests: vecs.requests.with_label_values(&[name]),
            request_bytes: vecs.request_bytes.with_label_values(&[name]),
            response_bytes: vecs.response_bytes.with_label_values(&[name]),
            ours_seconds: vecs.ours_seconds.with_label_values(&[name]),
            upstream_seconds: vecs.upstream_seconds.with_label_values(&[name]),
            denied: vecs.denied.with_label_values(&[name]),
            name,
            errors: vecs.errors.clone(),
            by_code: (0..slots).map(|_| OnceLock::new()).collect(),
        }
    }

    /// Counts an error that a client is answered; NONE is not one.
    pub fn error(&self, code: i16) {
        if code == 0 {
            return;
        }
        let is_ours = ErrorCode(code) == ErrorCode::INVALID_ASSIGNMENT;
        let known = is_ours || (-1..=ERROR_CODE_MAX).contains(&code);
        let index = match code {
            _ if is_ours => self.by_code.len().checked_sub(2),
            -1..=ERROR_CODE_MAX => usize::try_from(i32::from(code) + 1).ok(),
            _ => self.by_code.len().checked_sub(1),
        };
        let Some(slot) = index.and_then(|index| self.by_code.get(index)) else {
            return;
        };
        slot.get_or_init(|| {
            let label = if known {
                ErrorCode(code).to_string()
            } else {
                "other".to_owned()
            };
            self.errors.with_label_values(&[self.name, &label])
        })
        .inc();
    }
}
