//! Contradictions: values that are fine each for itself and do not go together.

use super::keys;
use super::load::Reader;
use super::problem::Place;
use super::{Config, HostPort, NodePorts, settings};

pub(super) fn contradictions(reader: &mut Reader, config: Option<&Config>) {
    sidecar_in_front_of_some(reader);
    sasl(reader);
    let Some(config) = config else { return };
    ports(reader, config);
    loops(reader, config);
    limits(reader, config);
    session_bounds(reader, config);
}

/// The keys of a sidecar that stands in front of some nodes only are known, and refused with the reason.
fn sidecar_in_front_of_some(reader: &mut Reader) {
    for key in ["listen.nodes_in_front", "listen.elsewhere"] {
        if reader.is_given(key) {
            let message = "a sidecar in front of some nodes only needs a store that all sidecars share, which this version \
                           does not have; leave the key out and put one Convoke in front of all nodes";
            reader.problem(reader.place(key), key, message);
        }
    }
}

fn sasl(reader: &mut Reader) {
    let [mechanism, username, password, file] = [
        "upstream.sasl.mechanism",
        "upstream.sasl.username",
        "upstream.sasl.password",
        "upstream.sasl.password_file",
    ];
    let given = [mechanism, username, password, file].map(|key| reader.is_given(key));
    if given == [false; 4] {
        return;
    }
    let first = [mechanism, username, password, file]
        .into_iter()
        .find(|key| reader.is_given(key));
    let place = first.map_or(Place::Nowhere, |key| reader.place(key));
    for key in [mechanism, username] {
        if !reader.is_given(key) {
            let message = format!(
                "missing, while other keys of upstream.sasl are given; add it or {}",
                keys::environment_name(key)
            );
            reader.problem(place.clone(), key, message);
        }
    }
    match (reader.is_given(password), reader.is_given(file)) {
        (true, true) => reader.problem(
            reader.place(file),
            file,
            format!("given together with {password}; keep one"),
        ),
        (false, false) => {
            let message = format!("missing; add it or {file}, or set {}", keys::environment_name(password));
            reader.problem(place, password, message);
        }
        _ => {}
    }
}

/// Whether two bound addresses can meet: the same host, or one that stands for every address.
fn hosts_meet(left: &HostPort, right: &HostPort) -> bool {
    left.host == right.host || left.is_wildcard() || right.is_wildcard()
}

fn ports(reader: &mut Reader, config: &Config) {
    let listen = &config.listen;
    let admin = HostPort {
        host: config.admin.listen.ip().to_string(),
        port: config.admin.listen.port(),
    };
    let admin_meets = hosts_meet(&listen.bootstrap, &admin) && admin.port != 0;
    if admin_meets && admin.port == listen.bootstrap.port {
        let message = format!(
            "{admin} is the port of listen.bootstrap ({}) too; give it another",
            listen.bootstrap
        );
        let given = ["admin.listen", "listen.bootstrap"]
            .into_iter()
            .find(|key| reader.is_given(key));
        let place = given.map_or(Place::Nowhere, |key| reader.place(key));
        reader.problem(place, "admin.listen", message);
    }
    let key = "listen.nodes";
    match listen.nodes {
        NodePorts::Range { first, last } => {
            let holds = |port: u16| (first..=last).contains(&port);
            if holds(listen.bootstrap.port) {
                let message = format!(
                    "{first}-{last} holds the port of listen.bootstrap ({}); choose a range without it",
                    listen.bootstrap.port
                );
                reader.problem(reader.place(key), key, message);
            }
            if admin_meets && holds(admin.port) {
                let message = format!(
                    "{first}-{last} holds the port of admin.listen ({}); move one of them",
                    admin.port
                );
                let place = if reader.is_given(key) {
                    reader.place(key)
                } else {
                    reader.place("admin.listen")
                };
                reader.problem(place, key, message);
            }
        }
        NodePorts::Base(base) if listen.bootstrap.port >= base && listen.bootstrap.port - base < 10 => {
            let message = format!(
                "node {} would get the port of listen.bootstrap ({}); choose a base above it",
                listen.bootstrap.port - base,
                listen.bootstrap.port
            );
            reader.problem(reader.place(key), key, message);
        }
        NodePorts::Base(_) | NodePorts::Ephemeral => {}
    }
}

/// An upstream address that is one of our own, as far as it can be seen without looking names up; the rest is noticed when it
/// is dialled.
fn loops(reader: &mut Reader, config: &Config) {
    let key = "upstream.bootstrap";
    let admin = config.admin.listen;
    let own = [
        ("listen.bootstrap", config.listen.bootstrap.clone()),
        (
            "admin.listen",
            HostPort {
                host: admin.ip().to_string(),
                port: admin.port(),
            },
        ),
    ];
    for item in reader.items(key) {
        let Ok(address) = item.text.parse::<HostPort>() else {
            continue;
        };
        if let Some((name, _)) = own.iter().find(|(_, own)| ends_at(&address, own)) {
            let message = format!(
                "{address} is Convoke's own address ({name}), so it would connect to itself; give the brokers' own \
                 HOST:PORT"
            );
            reader.problem(item.place, key, message);
        }
    }
}

/// Whether who connects to the address reaches what is bound at the other one.
fn ends_at(address: &HostPort, bound: &HostPort) -> bool {
    let loopback = ["localhost", "127.0.0.1", "::1"].contains(&&*address.host.to_ascii_lowercase());
    let same_host = address.host.eq_ignore_ascii_case(&bound.host)
        || address.host.eq_ignore_ascii_case("localhost") && ["127.0.0.1", "::1"].contains(&&*bound.host)
        || bound.is_wildcard() && (loopback || address.is_wildcard());
    address.port == bound.port && same_host
}

fn limits(reader: &mut Reader, config: &Config) {
    let limits = &config.limits;
    if limits.owned_request_max > limits.frame_max {
        let key = "limits.owned_request_max";
        reader.problem(
            reader.place(key),
            key,
            "larger than limits.frame_max, which every request must fit in",
        );
    }
    if limits.owned_request_max > limits.owned_memory_max {
        let key = "limits.owned_memory_max";
        reader.problem(
            reader.place(key),
            key,
            "smaller than limits.owned_request_max, so the largest request would wait for ever",
        );
    }
    if limits.owned_request_max > limits.group_memory_max {
        let key = "limits.group_memory_max";
        reader.problem(
            reader.place(key),
            key,
            "smaller than limits.owned_request_max, so the largest join would always be refused",
        );
    }
    if limits.connections_max_per_ip > limits.connections_max && reader.is_given("limits.connections_max_per_ip") {
        let key = "limits.connections_max_per_ip";
        reader.problem(
            reader.place(key),
            key,
            "larger than limits.connections_max, so it would never matter",
        );
    }
}

fn session_bounds(reader: &mut Reader, config: &Config) {
    let [min, max] = ["group.min.session.timeout.ms", "group.max.session.timeout.ms"];
    let value = |name: &str| {
        let text = config.settings.get(name)?;
        settings::find(name)?.parse(text).ok()?.parse::<i64>().ok()
    };
    if let (Some(low), Some(high)) = (value(min), value(max))
        && low > high
    {
        let key = format!("settings.{min}");
        reader.problem(reader.place(&key), &key, format!("{low} is larger than {max} ({high})"));
    }
}
