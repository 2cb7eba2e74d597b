use super::*;

const LIMIT: Duration = Duration::from_secs(20);

fn shell(script: &str, is_stream: bool, time_limit: Duration) -> UserCommand {
    UserCommand::new(CommandConfig {
        program: "sh".into(),
        arguments: ["-c", script].map(OsString::from).to_vec(),
        is_stream,
        time_limit,
        parallel: 2,
    })
}

async fn once(script: &str) -> Result<Vec<u8>, CommandError> {
    shell(script, false, LIMIT).ask("g", b"question".to_vec()).await
}

#[tokio::test]
async fn a_process_for_each_question_reads_it_and_answers_with_all_it_prints() {
    let answer = once("read line; echo \"<$line>\"; echo more").await.expect("an answer");
    assert_eq!(answer, b"<question>\nmore\n");
}

#[tokio::test]
async fn one_that_does_not_read_its_question_may_answer_all_the_same() {
    let question = vec![b'x'; 1024 * 1024];
    let command = shell("exec <&-; echo here", false, LIMIT);
    assert_eq!(command.ask("g", question).await.expect("an answer"), b"here\n");
}

#[tokio::test]
async fn an_exit_code_other_than_0_is_a_failure() {
    let error = once("echo answer; exit 3").await.expect_err("it failed");
    assert_eq!(error.to_string(), "ended with exit status: 3");
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named_as_such() {
    let command = UserCommand::new(CommandConfig {
        program: "/nonexistent/assignor".into(),
        ..shell("", false, LIMIT).config
    });
    let error = command.ask("g", Vec::new()).await.expect_err("there is none");
    assert!(error.to_string().contains("cannot be started: No such file"), "{error}");
}

#[tokio::test]
async fn one_that_hangs_is_killed_with_all_that_it_started() {
    let directory = tempfile::tempdir().expect("a directory");
    let pids = directory.path().join("pids");
    let script = format!("sleep 1000 & echo $! $$ > {}; wait", pids.display());
    let error = shell(&script, false, Duration::from_millis(500))
        .ask("g", Vec::new())
        .await;
    assert!(matches!(error, Err(CommandError::TimedOut(_))), "{error:?}");
    let pids = std::fs::read_to_string(&pids).expect("it ran");
    for pid in pids.split_whitespace() {
        assert!(is_gone(pid).await, "{pid} still runs");
    }
}

/// Waits until a process is gone, or is one that only its parent has to take notice of.
async fn is_gone(pid: &str) -> bool {
    for _ in 0..200 {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if stat.is_empty() || stat.contains(") Z ") {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    false
}

#[tokio::test]
async fn a_stream_answers_a_line_for_a_line_with_one_process() {
    let command = shell("while read line; do echo \"[$$, $line]\"; done", true, LIMIT);
    let mut pids = Vec::new();
    for question in ["1", "2"] {
        let answer = command.ask("g", question.into()).await.expect("an answer");
        let answer = String::from_utf8(answer).expect("text");
        let (pid, said) = answer.trim_end().split_once(' ').expect("two numbers");
        assert_eq!(said, format!("{question}]"));
        pids.push(pid.to_owned());
    }
    assert_eq!(pids[0], pids[1]);
}

#[tokio::test]
async fn a_stream_that_fails_rests_and_starts_again() {
    let command = shell("read line; [ \"$line\" = good ] && echo true; exit 4", true, LIMIT);
    let error = command.ask("g", b"bad".to_vec()).await.expect_err("it ends");
    assert_eq!(error.to_string(), "ended with exit status: 4");
    let error = command.ask("g", b"good".to_vec()).await.expect_err("it rests");
    assert!(matches!(error, CommandError::Resting(_)), "{error}");
    let answer = loop {
        match command.ask("g", b"good".to_vec()).await {
            Ok(answer) => break answer,
            Err(CommandError::Resting(rest)) => tokio::time::sleep(rest).await,
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(answer, b"true\n");
}

#[tokio::test]
async fn a_stream_that_hangs_is_killed_and_one_that_says_too_much_is_not_believed() {
    let hangs = shell("read line; sleep 1000", true, Duration::from_millis(300));
    let error = hangs.ask("g", b"one".to_vec()).await.expect_err("silence");
    assert!(matches!(error, CommandError::TimedOut(_)), "{error}");
    let talks = shell("while read line; do printf '1\\n2\\n'; done", true, LIMIT);
    assert_eq!(talks.ask("g", b"one".to_vec()).await.expect("the first line"), b"1\n");
    let error = talks.ask("g", b"two".to_vec()).await.expect_err("which line is it");
    assert!(matches!(error, CommandError::Unasked), "{error}");
}

#[tokio::test]
async fn a_stream_that_says_more_later_is_not_believed_either() {
    let directory = tempfile::tempdir().expect("a directory");
    let said = directory.path().join("said");
    let script = format!(
        "read line; echo 1; sleep 0.2; echo 2; touch {}; read line",
        said.display()
    );
    let talks = shell(&script, true, LIMIT);
    assert_eq!(talks.ask("g", b"one".to_vec()).await.expect("the first line"), b"1\n");
    while !said.exists() {
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    let error = talks
        .ask("g", b"two".to_vec())
        .await
        .expect_err("it would be the answer to the first");
    assert!(matches!(error, CommandError::Unasked), "{error}");
}

#[tokio::test]
async fn a_stream_whose_line_is_no_json_is_killed_before_its_next_line_is_taken_for_an_answer() {
    for greeting in ["hello", ""] {
        let talks = shell(
            &format!("while read line; do echo '{greeting}'; echo 1; done"),
            true,
            LIMIT,
        );
        let error = talks.ask("g", b"one".to_vec()).await.expect_err("it is no answer");
        let said = format!("out of step: expected value at line 1 column 1; it begins \"{greeting}");
        let said = if greeting.is_empty() { "out of step: EOF" } else { &said };
        assert!(error.to_string().contains(said), "{error}");
        let error = talks.ask("g", b"two".to_vec()).await.expect_err("it is gone");
        assert!(matches!(error, CommandError::Resting(_)), "{error}");
    }
}

#[tokio::test]
async fn what_a_command_leaves_behind_does_not_keep_its_answer_back() {
    // One stays in its process group and is killed, the other does not.
    for leaves_behind in ["sleep 1000 &", "setsid sleep 20 &"] {
        let answer = once(&format!("{leaves_behind} echo answer"))
            .await
            .expect(leaves_behind);
        assert_eq!(answer, b"answer\n");
        let error = once(&format!("{leaves_behind} exit 3")).await.expect_err(leaves_behind);
        assert_eq!(error.to_string(), "ended with exit status: 3");
    }
}

#[tokio::test]
async fn one_that_prints_without_end_is_killed() {
    let error = once("cat /dev/zero").await.expect_err("it is too long");
    assert!(matches!(error, CommandError::TooLong), "{error}");
}

#[test]
fn of_what_a_command_says_a_line_s_worth_is_shown() {
    assert_eq!(short("no capacity"), "no capacity");
    let shown = short(&"ü".repeat(5_000)).into_owned();
    assert!(
        shown.ends_with("ü… (10000 bytes)") && shown.chars().count() < 1_100,
        "{shown}"
    );
    assert_eq!(beginning(b"\xff"), "\u{fffd}");
    assert_eq!(beginning("ü".repeat(100).as_bytes()).chars().count(), 60);
}
