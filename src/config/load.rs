//! Makes a `Config` of what was given: every value read, every contradiction found, all problems reported together.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use super::keys::{self, KEYS, SETTINGS_SECTION};
use super::layers::{Given, Item, Layers, PROBLEMS_MAX, read_text};
use super::problem::{ConfigError, Place, Problem};
use super::rules::group_pattern;
use super::settings;
use super::units::{parse_duration, parse_size};
use super::{
    AdminConfig, Config, Effective, GroupsConfig, HostPort, LimitsConfig, ListenConfig, Loaded, LogConfig, NodePorts,
    SaslConfig, SaslMechanism, Sources, StoreConfig, UpstreamConfig, checks,
};
use crate::telemetry::log::{self, LogFormat};

/// Loads the configuration.
///
/// # Errors
/// Every problem at once.
pub fn load(sources: &Sources) -> Result<Loaded, ConfigError> {
    let mut layers = Layers::read(sources);
    let problems = std::mem::take(&mut layers.problems);
    let mut reader = Reader { layers, problems };
    let config = reader.config();
    checks::contradictions(&mut reader, config.as_ref());
    match config {
        Some(config) if reader.problems.is_empty() => Ok(Loaded {
            effective: effective(&config, &reader.layers),
            config,
            warnings: reader.layers.warnings,
        }),
        _ => {
            reader.problems.sort_by(|left, right| left.place.cmp(&right.place));
            Err(ConfigError {
                problems: reader.problems,
            })
        }
    }
}

/// The admin address alone, for asking a running Convoke; no other key needs to be there or right.
///
/// # Errors
/// When it is given and is no address, or asks for any free port, or when the file cannot be read.
pub fn admin_address(sources: &Sources) -> Result<SocketAddr, ConfigError> {
    let key = "admin.listen";
    let mut layers = Layers::read(sources);
    let mut problems = std::mem::take(&mut layers.problems);
    problems.retain(|problem| problem.key.is_empty() || problem.key == key);
    let mut reader = Reader { layers, problems };
    let listen = reader.optional(key, |text| match address(text)? {
        address if address.port() == 0 => Err(format!("`{text}` names no port; give the one that `ready` printed")),
        address => Ok(address),
    });
    match listen {
        Some(address) if reader.problems.is_empty() => Ok(address),
        _ => Err(ConfigError {
            problems: reader.problems,
        }),
    }
}

/// Reads values and collects what is wrong with them.
pub(super) struct Reader {
    pub(super) layers: Layers,
    pub(super) problems: Vec<Problem>,
}

impl Reader {
    pub(super) fn problem(&mut self, place: Place, key: &str, message: impl Into<String>) {
        self.problems.push(Problem {
            place,
            key: key.to_owned(),
            message: message.into(),
        });
    }

    /// Where a key was given.
    pub(super) fn place(&self, key: &str) -> Place {
        self.layers
            .given
            .get(key)
            .map_or(Place::Nowhere, |given| given.place.clone())
    }

    pub(super) fn is_given(&self, key: &str) -> bool {
        self.layers.given.contains_key(key)
    }

    /// The values of a list as they were written.
    pub(super) fn items(&self, key: &str) -> Vec<Item> {
        self.given(key).map(|given| given.items).unwrap_or_default()
    }

    /// What was given, else the default.
    fn given(&self, key: &str) -> Option<Given> {
        self.layers.given.get(key).cloned().or_else(|| {
            let default = keys::find(key)?.default?;
            let item = Item {
                text: default.to_owned(),
                place: Place::Nowhere,
            };
            Some(Given {
                place: Place::Nowhere,
                items: vec![item],
                rules: Vec::new(),
            })
        })
    }

    pub(super) fn item<T>(&mut self, key: &str, item: &Item, parse: impl Fn(&str) -> Result<T, String>) -> Option<T> {
        parse(&item.text)
            .map_err(|message| self.problem(item.place.clone(), key, message))
            .ok()
    }

    fn optional<T>(&mut self, key: &str, parse: impl Fn(&str) -> Result<T, String>) -> Option<T> {
        let given = self.given(key)?;
        let item = given.items.first()?;
        self.item(key, item, parse)
    }

    /// A key without default that must be given.
    fn required<T>(&mut self, key: &str, hint: &str, parse: impl Fn(&str) -> Result<T, String>) -> Option<T> {
        if !self.is_given(key) {
            if self.layers.file_unknown {
                return None;
            }
            let variable = keys::environment_name(key);
            self.problem(
                Place::Nowhere,
                key,
                format!("missing; give {hint}, {variable} or the key in the file"),
            );
            return None;
        }
        self.optional(key, parse)
    }

    fn list<T>(&mut self, key: &str, parse: impl Fn(&str) -> Result<T, String>) -> Vec<T> {
        let items = self.items(key);
        let before = self.problems.len();
        let mut values = Vec::with_capacity(items.len());
        for item in &items {
            if self.is_enough(key, before) {
                break;
            }
            values.extend(self.item(key, item, &parse));
        }
        values
    }

    /// Whether there are so many problems more than there were `before` that nobody would read of the next one; said once.
    pub(super) fn is_enough(&mut self, key: &str, before: usize) -> bool {
        let is_enough = self.problems.len() - before >= PROBLEMS_MAX;
        if is_enough {
            self.problem(Place::Nowhere, key, "more of it may be wrong; these are the first");
        }
        is_enough
    }

    fn duration(&mut self, key: &str, min: Duration, max: Duration) -> Option<Duration> {
        self.optional(key, |text| {
            let value = parse_duration(text)?;
            in_range(value, min, max, text, &format!("{min:?} to {max:?}"))
        })
    }

    fn size(&mut self, key: &str, min: usize, max: usize) -> Option<usize> {
        self.optional(key, |text| {
            let value = parse_size(text)?;
            in_range(value, min, max, text, &format!("{min} to {max} bytes"))
        })
    }

    fn count(&mut self, key: &str, min: usize, max: usize) -> Option<usize> {
        self.optional(key, |text| {
            let value = text.parse().map_err(|_| format!("`{text}` is not a whole number"))?;
            in_range(value, min, max, text, &format!("{min} to {max}"))
        })
    }

    /// Every part is read, whatever is wrong with the others.
    fn config(&mut self) -> Option<Config> {
        let upstream = self.upstream();
        let admin = self.optional("admin.listen", address);
        let listen = self.listen(admin.map_or(0, |admin: SocketAddr| admin.port()));
        let data = self.required("store.data", "--data DIR", |text| match text {
            "" => Err("it is empty; give the directory of the state".to_owned()),
            _ => Ok(PathBuf::from(text)),
        });
        let delegate = self.list("groups.delegate", group_pattern);
        let assignors = self.assignors();
        let assign = self.assign(&assignors);
        let settings = self.settings();
        let limits = self.limits();
        let drain_timeout = self.duration("drain_timeout", Duration::ZERO, HOUR);
        let log = self.log();
        Some(Config {
            upstream: upstream?,
            listen: listen?,
            admin: AdminConfig { listen: admin? },
            store: StoreConfig { data: data? },
            groups: GroupsConfig { delegate, assign },
            assignors,
            settings,
            limits: limits?,
            drain_timeout: drain_timeout?,
            log: log?,
        })
    }

    fn upstream(&mut self) -> Option<UpstreamConfig> {
        let key = "upstream.bootstrap";
        let bootstrap = self.list(key, upstream_address);
        let missing = self.layers.given.get(key).is_none_or(|given| given.items.is_empty());
        if missing && !self.layers.file_unknown {
            let variable = keys::environment_name(key);
            let message = format!("missing; give --upstream HOST:PORT, {variable} or the key in the file");
            self.problem(self.place(key), key, message);
        }
        let sasl = self.sasl();
        let connect_timeout = self.duration("upstream.connect_timeout", MILLISECONDS_100, HOUR);
        let request_timeout = self.duration("upstream.request_timeout", MILLISECONDS_100, HOUR);
        let metadata_refresh = self.duration("upstream.metadata_refresh", MILLISECONDS_100, HOUR);
        Some(UpstreamConfig {
            bootstrap,
            sasl,
            connect_timeout: connect_timeout?,
            request_timeout: request_timeout?,
            metadata_refresh: metadata_refresh?,
        })
    }

    /// The passwords themselves appear in no message.
    fn sasl(&mut self) -> Option<SaslConfig> {
        let mechanism = self.optional("upstream.sasl.mechanism", |text| {
            SaslMechanism::find(text).ok_or_else(|| {
                format!("`{text}` is not a mechanism that Convoke has; use PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512")
            })
        });
        let username = self.optional("upstream.sasl.username", |text| Ok(text.to_owned()));
        let password = self.optional("upstream.sasl.password", |text| Ok(text.to_owned()));
        let from_file = self.optional("upstream.sasl.password_file", password_from);
        Some(SaslConfig {
            mechanism: mechanism?,
            username: username?,
            password: password.or(from_file)?,
        })
    }

    fn listen(&mut self, admin_port: u16) -> Option<ListenConfig> {
        let bootstrap = self.optional("listen.bootstrap", HostPort::from_str);
        let nodes = self.optional("listen.nodes", NodePorts::from_str);
        let advertise = self.optional("listen.advertise", str::parse);
        let bootstrap = bootstrap?;
        Some(ListenConfig {
            nodes: nodes.unwrap_or_else(|| NodePorts::after(bootstrap.port, admin_port)),
            bootstrap,
            advertise,
        })
    }

    fn settings(&mut self) -> std::collections::BTreeMap<String, String> {
        let mut values = std::collections::BTreeMap::new();
        for setting in settings::SETTINGS {
            let key = format!("{SETTINGS_SECTION}.{}", setting.name);
            if let Some(value) = self.optional(&key, |text| setting.parse(text)) {
                values.insert(setting.name.to_owned(), value);
            }
        }
        values
    }

    fn limits(&mut self) -> Option<LimitsConfig> {
        let frame_max = self.size("limits.frame_max", KIB, GIB);
        let owned_request_max = self.size("limits.owned_request_max", KIB, GIB);
        let owned_memory_max = self.size("limits.owned_memory_max", KIB, 1024 * GIB);
        let group_memory_max = self.size("limits.group_memory_max", KIB, 1024 * GIB);
        let connections_max = self.count("limits.connections_max", 1, 1_000_000);
        let connections_max_per_ip = self.count("limits.connections_max_per_ip", 1, 1_000_000);
        let idle_timeout = self.duration("limits.idle_timeout", Duration::from_secs(1), DAYS_30);
        let buffer = self.size("limits.buffer", 4 * KIB, 16 * KIB * KIB);
        let pipeline_max = self.count("limits.pipeline_max", 1, 100_000);
        let assignor_metadata_max = self.size("limits.assignor_metadata_max", 0, KIB * KIB);
        Some(LimitsConfig {
            frame_max: frame_max?,
            owned_request_max: owned_request_max?,
            owned_memory_max: owned_memory_max?,
            group_memory_max: group_memory_max?,
            connections_max: connections_max?,
            connections_max_per_ip: connections_max_per_ip?,
            idle_timeout: idle_timeout?,
            buffer: buffer?,
            pipeline_max: pipeline_max?,
            assignor_metadata_max: assignor_metadata_max?,
        })
    }

    fn log(&mut self) -> Option<LogConfig> {
        let filter = self.optional("log.level", |text| {
            let checked = log::parse_filter(text).map_err(|error| error.to_string())?;
            drop(checked);
            Ok(text.to_owned())
        });
        let format = self.optional("log.format", LogFormat::from_str);
        Some(LogConfig {
            filter: filter?,
            format: format?,
        })
    }
}

const MILLISECONDS_100: Duration = Duration::from_millis(100);
const HOUR: Duration = Duration::from_secs(3_600);
const DAYS_30: Duration = Duration::from_secs(30 * 86_400);
const KIB: usize = 1 << 10;
const GIB: usize = 1 << 30;
const PASSWORD_FILE_MAX: u64 = 64 * 1024;

fn in_range<T: PartialOrd>(value: T, min: T, max: T, text: &str, range: &str) -> Result<T, String> {
    if value < min || value > max {
        return Err(format!("{text} is out of range; it may be {range}"));
    }
    Ok(value)
}

fn upstream_address(text: &str) -> Result<HostPort, String> {
    let address: HostPort = text.parse()?;
    if address.port == 0 {
        return Err(format!("`{text}` is no address of a broker: its port is 0"));
    }
    Ok(address)
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let named: HostPort = text.parse()?;
    if named.host == "localhost" {
        return Ok(SocketAddr::from(([127, 0, 0, 1], named.port)));
    }
    text.parse()
        .map_err(|_| format!("`{text}` is not an IP address and a port, such as 127.0.0.1:9190"))
}

/// The first line of the file; editors end it with a line break that is not part of the password.
/// The password in the first line of a file.
///
/// # Errors
/// Why there is none, without anything of it.
pub fn password_from(path: &str) -> Result<String, String> {
    let text = read_text(path, PASSWORD_FILE_MAX).map_err(|reason| format!("cannot read {path}: {reason}"))?;
    let password = text.lines().next().unwrap_or_default();
    if password.is_empty() {
        return Err(format!("{path} holds no password in its first line"));
    }
    Ok(password.to_owned())
}

/// What holds for each key, and where it comes from. Passwords are not shown.
fn effective(config: &Config, layers: &Layers) -> Vec<Effective> {
    let settings = config.settings.keys().map(|name| format!("{SETTINGS_SECTION}.{name}"));
    KEYS.iter()
        .map(|key| key.name.to_owned())
        .chain(settings)
        .filter_map(|name| {
            let given = layers.given.get(&name);
            let value = match given {
                _ if name == "upstream.sasl.password" => given.map(|_| "(not shown)".to_owned()),
                Some(given) => Some(given.shown()),
                None if name == "listen.nodes" => Some(config.listen.nodes.to_string()),
                None => keys::find(&name)?.default.map(ToOwned::to_owned),
            };
            Some(Effective {
                value: value?,
                place: given.map_or(Place::Nowhere, |given| given.place.clone()),
                key: name,
            })
        })
        .collect()
}
