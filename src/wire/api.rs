//! The one table of APIs: what Convoke does with each, in which versions, and why.

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// The bytes go to the upstream node and its answer comes back, both untouched.
    Forward,
    /// The request goes up untouched; the answer is changed on its way back.
    Rewrite,
    /// The request ends here.
    Own,
    /// Never offered; a client that sends it all the same is treated as Kafka treats an unknown API.
    Refuse,
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Api {
    pub key: i16,
    /// Kafka's name, as metrics and logs print it.
    pub name: &'static str,
    /// The versions that we forward, rewrite or answer; what a client is offered is narrowed further by the upstream.
    pub min: i16,
    pub max: i16,
    /// The first version with flexible (tagged) headers, if any.
    pub flexible_since: Option<i16>,
    pub route: Route,
    /// The reason for the route and for the range, for readers.
    pub why: &'static str,
}

/// Every API that Convoke knows, by key.
pub static APIS: &[Api] = &[];

/// The row of a key.
#[must_use]
pub fn find(key: i16) -> Option<&'static Api> {
    APIS.iter().find(|api| api.key == key)
}
