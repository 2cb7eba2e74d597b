//! The command as a user or a script starts it: what it prints where, and how it ends.

mod serving;

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStderr, Command};
use tokio::time::timeout;

const LIMIT: Duration = Duration::from_secs(60);

/// An address of this machine at which nothing answers: a port that was free a moment ago.
fn nobody() -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("its address")
}

fn convoke(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_convoke"));
    command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("CONVOKE_") {
            command.env_remove(name);
        }
    }
    command
}

async fn output(command: &mut Command) -> Output {
    timeout(LIMIT, command.output())
        .await
        .expect("it ends by itself")
        .expect("it starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A Convoke that waits for an upstream at which nobody is.
struct Waiting {
    child: Child,
    log: Lines<BufReader<ChildStderr>>,
    bootstrap: SocketAddr,
    admin: SocketAddr,
    /// The log up to the line that names the addresses.
    said: Vec<String>,
}

impl Waiting {
    async fn start(data: &Path) -> Self {
        Self::start_by(convoke(&[]), data).await
    }

    async fn start_by(mut command: Command, data: &Path) -> Self {
        let (data, upstream) = (data.display().to_string(), nobody().to_string());
        let arguments = [
            "run",
            "--listen",
            "127.0.0.1:0",
            "--admin",
            "127.0.0.1:0",
            "--log-format",
            "json",
        ];
        let mut child = command
            .args(arguments)
            .args(["--data", &data, "--upstream", &upstream])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut log = BufReader::new(child.stderr.take().expect("standard error")).lines();
        let mut said = Vec::new();
        loop {
            let line = timeout(LIMIT, log.next_line()).await.expect("a log line in time");
            let line = line.expect("a log line").expect("the log goes on until it is bound");
            let entry: BTreeMap<String, serde_json::Value> = serde_json::from_str(&line).expect("a JSON line");
            let address = |name: &str| entry.get(name)?.as_str()?.parse().ok();
            if let (Some(bootstrap), Some(admin)) = (address("bootstrap"), address("admin")) {
                return Self {
                    child,
                    log,
                    bootstrap,
                    admin,
                    said,
                };
            }
            said.push(line);
        }
    }

    async fn health(&self, extra: &[&str]) -> Output {
        let admin = self.admin.to_string();
        output(convoke(&["health", "--admin", &admin]).args(extra)).await
    }

    /// Sends the signal and waits for the end; answers the exit code and all of standard output.
    async fn end(mut self, signal: &str) -> (Option<i32>, String) {
        let id = self.child.id().expect("it runs").to_string();
        let sent = Command::new("kill")
            .args([signal, &id])
            .status()
            .await
            .expect("kill runs");
        assert!(sent.success());
        let drain = tokio::spawn(async move { while let Ok(Some(_)) = self.log.next_line().await {} });
        let status = timeout(LIMIT, self.child.wait())
            .await
            .expect("it ends")
            .expect("a status");
        let mut printed = String::new();
        let mut stdout = self.child.stdout.take().expect("standard output");
        stdout.read_to_string(&mut printed).await.expect("text");
        drain.await.expect("the log ends");
        (status.code(), printed)
    }
}

fn directory() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

#[tokio::test]
async fn check_prints_what_would_be_used_and_where_it_comes_from() {
    let mut command = convoke(&["check", "--upstream", "a:1,b:2", "--set", "group.max.size=7"]);
    let output = output(
        command
            .env("CONVOKE_STORE_DATA", "/data")
            .env("CONVOKE_UPSTREAM_SASL_MECHANISM", ""),
    )
    .await;
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let lines = text(&output.stdout);
    let value = |key: &str| {
        lines
            .lines()
            .find(|line| line.starts_with(&format!("{key} ")))
            .unwrap_or_default()
    };
    assert!(
        value("upstream.bootstrap").ends_with("= a:1,b:2  # flag --upstream"),
        "{lines}"
    );
    assert!(
        value("store.data").ends_with("= /data  # environment variable CONVOKE_STORE_DATA"),
        "{lines}"
    );
    assert!(
        value("settings.group.max.size").ends_with("= 7  # flag --set"),
        "{lines}"
    );
    assert!(value("listen.nodes").ends_with("= 19093-19192  # default"), "{lines}");
    assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
}

#[tokio::test]
async fn check_prints_every_problem_and_exits_2() {
    let directory = directory();
    let file = directory.path().join("c.yaml");
    std::fs::write(&file, "listen:\n  bootstrap: nowhere\nlimts: 1\n").expect("a file");
    let output = output(convoke(&["check", "--config"]).arg(&file)).await;
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    let said = text(&output.stderr);
    let expected = [
        format!("{}:2:14: listen.bootstrap: `nowhere` is not HOST:PORT: the port is missing", file.display()),
        format!("{}:3:1: limts: unknown key; did you mean limits?", file.display()),
        "configuration: store.data: missing; give --data DIR, CONVOKE_STORE_DATA or the key in the file".to_owned(),
        "configuration: upstream.bootstrap: missing; give --upstream HOST:PORT, CONVOKE_UPSTREAM_BOOTSTRAP or the key in the file"
            .to_owned(),
    ];
    let mut lines: Vec<&str> = said.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn run_with_a_wrong_configuration_or_wrong_flags_exits_2() {
    let missing = output(&mut convoke(&["run"])).await;
    assert_eq!(missing.status.code(), Some(2));
    assert!(
        text(&missing.stderr).contains("--upstream"),
        "{}",
        text(&missing.stderr)
    );
    let unknown = output(&mut convoke(&["run", "--upsteam", "a:1"])).await;
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("--upsteam"), "{}", text(&unknown.stderr));
    let half = output(&mut convoke(&["run", "--set", "group.max.size"])).await;
    assert_eq!(half.status.code(), Some(2));
    assert!(text(&half.stderr).contains("KEY=VALUE"), "{}", text(&half.stderr));
}

#[tokio::test]
async fn help_documents_exit_codes_and_the_lines_for_scripts() {
    let help = text(&output(&mut convoke(&["--help"])).await.stdout);
    for words in ["Exit codes:", "run", "check", "health", "SIGTERM"] {
        assert!(help.contains(words), "{words} in {help}");
    }
    let run = text(&output(&mut convoke(&["run", "--help"])).await.stdout);
    assert!(run.contains("ready bootstrap=HOST:PORT admin=HOST:PORT"), "{run}");
}

#[tokio::test]
async fn assignor_documents_what_the_command_reads_and_writes() {
    let help = text(&output(&mut convoke(&["assignor", "--help"])).await.stdout);
    for words in [
        "--stream",
        "question",
        "answer",
        "\"assignment\":{\"m-1\"",
        "config/assignors/",
    ] {
        assert!(help.contains(words), "{words} in {help}");
    }
}

#[tokio::test]
async fn assignor_names_what_is_wrong_with_its_flags_and_exits_2() {
    let fitting = [
        "assignor",
        "--bootstrap",
        "localhost:9092",
        "--group",
        "g",
        "--name",
        "n",
    ];
    let long = "x".repeat(250);
    for (wrong, said) in [
        (&[][..], "required arguments were not provided"),
        (
            &["--time-limit", "0s", "--", "true"],
            "--time-limit has to be longer than 0",
        ),
        (&["--time-limit", "10m", "--", "true"], "at most 290s"),
        (&["--every", "10ms", "--", "true"], "--every at least 1s"),
        (&["--name", "n", "--", "true"], "--name n is there twice"),
        (&["--group", "g", "--", "true"], "--group g is there twice"),
        (
            &["--name", "uniform", "--", "true"],
            "--name uniform: `uniform` is an assignor that Convoke has itself",
        ),
        (&["--name", &long, "--", "true"], "it has 250 bytes, at most 249"),
        (
            &["--", "/nonexistent/script"],
            "the command /nonexistent/script is not there",
        ),
        (&["--", "no-such-command"], "in no folder of PATH"),
        (&["--name", " ", "--", "true"], "names no group and no assignor"),
        (&["--log-level", "loud", "--", "true"], "cannot read the log filter"),
        (
            &["--sasl-mechanism", "GSSAPI", "--", "true"],
            "use PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512",
        ),
        (&["--sasl-mechanism", "PLAIN", "--", "true"], "--username"),
    ] {
        let output = output(convoke(&fitting).args(wrong)).await;
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {error}");
        assert!(error.contains(said), "{wrong:?}: {error}");
    }
}

#[tokio::test]
async fn assignor_without_a_convoke_says_so_once_and_ends_cleanly() {
    let bootstrap = nobody().to_string();
    let mut child = convoke(&[
        "assignor",
        "--bootstrap",
        &bootstrap,
        "--group",
        "g",
        "--name",
        "n",
        "--",
        "true",
    ])
    .stderr(Stdio::piped())
    .spawn()
    .expect("it starts");
    let mut log = BufReader::new(child.stderr.take().expect("standard error")).lines();
    let line = timeout(LIMIT, log.next_line())
        .await
        .expect("in time")
        .expect("text")
        .expect("a line");
    assert!(
        line.contains("not registered, and tried again") && line.contains(&bootstrap),
        "{line}"
    );
    let id = child.id().expect("it runs").to_string();
    std::process::Command::new("kill")
        .args(["-TERM", &id])
        .status()
        .expect("kill runs");
    let status = timeout(LIMIT, child.wait())
        .await
        .expect("in time")
        .expect("its status");
    assert_eq!(status.code(), Some(0));
}

#[tokio::test]
async fn a_taken_port_is_named_with_what_to_do_and_exits_1() {
    let directory = directory();
    let taken = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let address = taken.local_addr().expect("its address").to_string();
    let data = directory.path().display().to_string();
    for (listen, admin) in [(address.as_str(), "127.0.0.1:0"), ("127.0.0.1:0", address.as_str())] {
        let arguments = [
            "run",
            "--upstream",
            "127.0.0.1:1",
            "--data",
            &data,
            "--listen",
            listen,
            "--admin",
            admin,
        ];
        let output = output(&mut convoke(&arguments)).await;
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(&address) && said.contains("in use"), "{said}");
        assert!(output.stdout.is_empty());
    }
}

#[tokio::test]
async fn a_data_directory_that_cannot_be_used_is_named_and_exits_1() {
    let directory = directory();
    let file = directory.path().join("a-file");
    std::fs::write(&file, "x").expect("a file");
    let data = file.join("data").display().to_string();
    let arguments = [
        "run",
        "--upstream",
        "127.0.0.1:1",
        "--listen",
        "127.0.0.1:0",
        "--admin",
        "127.0.0.1:0",
    ];
    let output = output(convoke(&arguments).args(["--data", &data])).await;
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(&data), "{said}");
}

#[tokio::test]
async fn without_an_upstream_it_waits_bound_says_so_and_ends_cleanly() {
    let directory = directory();
    let waiting = Waiting::start(directory.path()).await;
    TcpStream::connect(waiting.bootstrap)
        .await
        .expect("bound before it serves");
    let alive = waiting.health(&[]).await;
    assert_eq!((alive.status.code(), text(&alive.stdout).as_str()), (Some(0), "ok\n"));
    let ready = waiting.health(&["--ready"]).await;
    assert_eq!(ready.status.code(), Some(1));
    let said = text(&ready.stderr);
    for reason in ["503", "upstream: ", "listeners: bound, but not serving yet"] {
        assert!(said.contains(reason), "{reason} in {said}");
    }
    assert_eq!(waiting.end("-TERM").await, (Some(0), String::new()));
}

#[tokio::test]
async fn an_interrupt_ends_it_cleanly_too() {
    let directory = directory();
    let waiting = Waiting::start(directory.path()).await;
    assert_eq!(waiting.end("-INT").await, (Some(0), String::new()));
}

#[tokio::test]
async fn a_second_process_on_the_same_data_is_refused_and_the_first_goes_on() {
    let directory = directory();
    let first = Waiting::start(directory.path()).await;
    let data = directory.path().display().to_string();
    let arguments = [
        "run",
        "--upstream",
        "127.0.0.1:1",
        "--listen",
        "127.0.0.1:0",
        "--admin",
        "127.0.0.1:0",
    ];
    let second = output(convoke(&arguments).args(["--data", &data])).await;
    let said = text(&second.stderr);
    assert_eq!(second.status.code(), Some(1), "{said}");
    assert!(
        said.contains(&data) && said.contains("in use by another process"),
        "{said}"
    );
    assert_eq!(first.health(&[]).await.status.code(), Some(0));
    assert_eq!(first.end("-TERM").await.0, Some(0));
}

#[tokio::test]
async fn health_says_that_nothing_answers() {
    let nobody = nobody().to_string();
    let output = output(&mut convoke(&["health", "--admin", &nobody, "--timeout", "2s"])).await;
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains(&format!("nothing answers at http://{nobody}")), "{said}");
    let any = self::output(&mut convoke(&["health", "--admin", "127.0.0.1:0"])).await;
    assert_eq!(any.status.code(), Some(2), "{}", text(&any.stderr));
    let absent = self::output(&mut convoke(&["health", "--config", "/nonexistent/c.yaml"])).await;
    assert_eq!(absent.status.code(), Some(2));
    assert!(
        text(&absent.stderr).contains("cannot read /nonexistent/c.yaml"),
        "{}",
        text(&absent.stderr)
    );
}

/// Convoke under limits of open files, soft and hard.
async fn with_limits(soft: u32, hard: u32) -> (String, Vec<String>) {
    let directory = directory();
    let mut command = Command::new("sh");
    let script = format!("ulimit -Sn {soft} && ulimit -Hn {hard} && exec \"$0\" \"$@\"");
    command
        .args(["-c", &script, env!("CARGO_BIN_EXE_convoke")])
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let waiting = Waiting::start_by(command, directory.path()).await;
    let id = waiting.child.id().expect("it runs");
    let limits = std::fs::read_to_string(format!("/proc/{id}/limits")).expect("its limits");
    let limit = limits.lines().find(|line| line.starts_with("Max open files"));
    let soft = limit.and_then(|line| line.split_whitespace().nth(3)).expect("a number");
    let said = waiting.said.clone();
    waiting.end("-TERM").await;
    (soft.to_owned(), said)
}

#[tokio::test]
async fn as_many_files_are_opened_as_the_hard_limit_allows() {
    let (taken, said) = with_limits(256, 3_000).await;
    assert_eq!(taken, "3000");
    let warning = said.iter().find(|line| line.contains("limits.connections_max"));
    let warning = warning.expect("10000 connections do not fit, which is said");
    assert!(
        warning.contains("WARN") && warning.contains("3000 files") && warning.contains("LimitNOFILE"),
        "{warning}"
    );
}
