//! How the ports of the node listeners are written.

use std::fmt;
use std::str::FromStr;

use super::{NodePorts, SaslMechanism};

/// How many ports follow the bootstrap port by default.
const DEFAULT_RANGE: u16 = 100;

impl NodePorts {
    /// The default: the ports after the bootstrap port and before the admin port where that is among them, or any free ones
    /// where the bootstrap port is any.
    pub(super) fn after(bootstrap: u16, admin: u16) -> Self {
        if bootstrap == 0 {
            return Self::Ephemeral;
        }
        let last = bootstrap.saturating_add(DEFAULT_RANGE);
        let first = bootstrap.saturating_add(if admin == bootstrap.saturating_add(1) { 2 } else { 1 });
        let last = if (first..=last).contains(&admin) {
            admin - 1
        } else {
            last
        };
        if first > last || first == bootstrap {
            return Self::Ephemeral;
        }
        Self::Range { first, last }
    }
}

impl fmt::Display for NodePorts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ephemeral => f.write_str("any"),
            Self::Base(base) => write!(f, "{base}+{{node}}"),
            Self::Range { first, last } => write!(f, "{first}-{last}"),
        }
    }
}

impl FromStr for NodePorts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || {
            format!(
                "`{text}` is none of: a range such as 19093-19192, a base such as 19100+{{node}} (node 3 gets 19103), or any"
            )
        };
        let port = |text: &str| {
            text.trim()
                .parse::<u16>()
                .ok()
                .filter(|port| *port != 0)
                .ok_or_else(wrong)
        };
        if text == "any" {
            return Ok(Self::Ephemeral);
        }
        if let Some(base) = text.strip_suffix("+{node}") {
            return Ok(Self::Base(port(base)?));
        }
        let (first, last) = text.split_once('-').ok_or_else(wrong)?;
        let (first, last) = (port(first)?, port(last)?);
        if first > last {
            return Err(format!("`{text}` is an empty range: {first} is larger than {last}"));
        }
        Ok(Self::Range { first, last })
    }
}

impl SaslMechanism {
    /// The mechanism of that name, as SASL registers it.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        match name {
            "PLAIN" => Some(Self::Plain),
            "SCRAM-SHA-256" => Some(Self::ScramSha256),
            "SCRAM-SHA-512" => Some(Self::ScramSha512),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read_and_printed() {
        for text in ["any", "19093-19192", "19100+{node}"] {
            let ports: NodePorts = text.parse().unwrap();
            assert_eq!(ports.to_string(), text);
        }
        for text in ["", "0", "19093", "0-5", "9-8", "70000+{node}", "19100+{id}"] {
            assert!(text.parse::<NodePorts>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_default_follows_the_bootstrap_port() {
        for (bootstrap, admin, ports) in [
            (0, 9190, "any"),
            (19_092, 9190, "19093-19192"),
            (9092, 9190, "9093-9189"),
            (9092, 9093, "9094-9192"),
            (65_500, 9190, "65501-65535"),
            (65_534, 65_535, "any"),
            (65_535, 9190, "any"),
        ] {
            assert_eq!(
                NodePorts::after(bootstrap, admin).to_string(),
                ports,
                "{bootstrap} {admin}"
            );
        }
    }
}
