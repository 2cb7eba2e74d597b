//! `HOST:PORT` as people write it, and the template of what clients are told.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use super::{AdvertiseTemplate, HostPort};

impl fmt::Display for HostPort {
    /// An IPv6 address stands in brackets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Characters of the longest name that DNS takes; an address in brackets is shorter.
const HOST_MAX: usize = 253;

impl FromStr for HostPort {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() > HOST_MAX + ":65535".len() {
            return Err(format!("a host name of more than {HOST_MAX} characters is none"));
        }
        let wrong = |reason: &str| format!("`{text}` is not HOST:PORT: {reason}");
        if text.contains("://") {
            return Err(wrong("leave out the protocol, as in kafka-1:9092"));
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(|| wrong("the port is missing"))?;
        let host = match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(address) => {
                let _: Ipv6Addr = address
                    .parse()
                    .map_err(|_| wrong("the brackets hold no IPv6 address"))?;
                address
            }
            None if host.contains(':') => return Err(wrong("an IPv6 address stands in brackets, as in [::1]:9092")),
            None => host,
        };
        if host.is_empty() {
            return Err(wrong("the host is missing"));
        }
        if let Some(bad) = host.chars().find(|letter| !is_host_char(*letter)) {
            return Err(wrong(&format!("a host name has no {bad:?}")));
        }
        let port = port
            .parse()
            .map_err(|_| wrong(&format!("`{port}` is no port from 0 to 65535")))?;
        Ok(Self {
            host: host.to_owned(),
            port,
        })
    }
}

fn is_host_char(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_' | ':' | '%')
}

impl HostPort {
    /// Whether this stands for every address of the machine, so that no client can connect to it as it is.
    #[must_use]
    pub fn is_wildcard(&self) -> bool {
        matches!(self.host.as_str(), "0.0.0.0" | "::")
    }
}

impl AdvertiseTemplate {
    /// The address that clients are told for a node whose listener got `bound_port`; `None` when the port comes to no number
    /// from 1 to 65535.
    #[must_use]
    pub fn address(&self, node_id: i32, bound_port: u16) -> Option<HostPort> {
        let fill = |template: &str| {
            template
                .replace("{node}", &node_id.to_string())
                .replace("{port}", &bound_port.to_string())
        };
        let port = fill(&self.port).parse().ok().filter(|port| *port != 0)?;
        Some(HostPort {
            host: fill(&self.host),
            port,
        })
    }
}

impl fmt::Display for AdvertiseTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl FromStr for AdvertiseTemplate {
    type Err = String;

    /// `HOST` or `HOST:PORT`, with `{node}` and `{port}` in either; the bound port where none is named.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = |reason: &str| format!("`{text}` is no address template: {reason}");
        let bare = text.replace("{node}", "").replace("{port}", "");
        if bare.contains(['{', '}']) {
            return Err(wrong(
                "only {node} (the node's id) and {port} (the bound port) can be filled in",
            ));
        }
        let named = |host: &str, port: &str| Self {
            host: host.to_owned(),
            port: port.to_owned(),
        };
        let template = match (
            text.strip_prefix('[').and_then(|rest| rest.split_once(']')),
            text.rsplit_once(':'),
        ) {
            (Some((host, "")), _) => named(host, "{port}"),
            (Some((host, rest)), _) => named(host, rest.strip_prefix(':').unwrap_or(rest)),
            (None, Some((host, port))) => named(host, port),
            (None, None) => named(text, "{port}"),
        };
        let Some(first) = template.address(0, 1) else {
            return Err(wrong(
                "the part after the last colon does not come to a port from 1 to 65535",
            ));
        };
        let as_written: HostPort = first.to_string().parse()?;
        if template.address(1, 2) == Some(as_written) {
            return Err(wrong(
                "it has neither {node} nor {port}, so every node would be told to clients at the same address",
            ));
        }
        Ok(template)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host_port(text: &str) -> Result<HostPort, String> {
        text.parse()
    }

    #[test]
    fn addresses_are_read_and_printed() {
        for text in ["kafka-1.example:9092", "127.0.0.1:0", "[::1]:65535"] {
            assert_eq!(host_port(text).map(|address| address.to_string()).as_deref(), Ok(text));
        }
    }

    #[test]
    fn bad_addresses_say_what_is_wrong() {
        for (text, said) in [
            ("kafka", "the port is missing"),
            (":9092", "the host is missing"),
            ("kafka:ninety", "`ninety` is no port"),
            ("kafka:65536", "`65536` is no port"),
            ("::1:9092", "stands in brackets"),
            ("[kafka]:9092", "no IPv6 address"),
            ("PLAINTEXT://kafka:9092", "leave out the protocol"),
            ("ka fka:9092", "no ' '"),
        ] {
            let error = host_port(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn templates_are_filled() {
        let address = |text: &str, node, port| -> Option<String> {
            let template: AdvertiseTemplate = text.parse().unwrap();
            Some(template.address(node, port)?.to_string())
        };
        assert_eq!(
            address("kafka.example:{port}", 3, 19_093).as_deref(),
            Some("kafka.example:19093")
        );
        assert_eq!(
            address("kafka.example", 3, 19_093).as_deref(),
            Some("kafka.example:19093")
        );
        assert_eq!(
            address("kafka-{node}.example:9092", 3, 19_093).as_deref(),
            Some("kafka-3.example:9092")
        );
        assert_eq!(address("[::1]:{port}", 3, 19_093).as_deref(), Some("[::1]:19093"));
        assert_eq!(address("kafka:1909{node}", 12_345, 1), None);
    }

    #[test]
    fn bad_templates_say_what_is_wrong() {
        for (text, said) in [
            ("kafka:9092", "at the same address"),
            ("kafka-{id}:9092", "only {node}"),
            ("kafka-{node}:none", "does not come to a port"),
            ("{port}:0", "does not come to a port"),
        ] {
            let error = text.parse::<AdvertiseTemplate>().unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
