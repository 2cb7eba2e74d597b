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
    let command = shell("while read line; do echo \"$$ $line\"; done", true, LIMIT);
    let mut pids = Vec::new();
    for question in ["one", "two"] {
        let answer = command.ask("g", question.into()).await.expect("an answer");
        let answer = String::from_utf8(answer).expect("text");
        let (pid, said) = answer.trim_end().split_once(' ').expect("two words");
        assert_eq!(said, question);
        pids.push(pid.to_owned());
    }
    assert_eq!(pids[0], pids[1]);
}

#[tokio::test]
async fn a_stream_that_fails_rests_and_starts_again() {
    let command = shell("read line; [ \"$line\" = good ] && echo fine; exit 4", true, LIMIT);
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
    assert_eq!(answer, b"fine\n");
}

#[tokio::test]
async fn a_stream_that_hangs_is_killed_and_one_that_says_too_much_is_not_believed() {
    let hangs = shell("read line; sleep 1000", true, Duration::from_millis(300));
    let error = hangs.ask("g", b"one".to_vec()).await.expect_err("silence");
    assert!(matches!(error, CommandError::TimedOut(_)), "{error}");
    let talks = shell("while read line; do printf 'one\\ntwo\\n'; done", true, LIMIT);
    assert_eq!(talks.ask("g", b"one".to_vec()).await.expect("the first line"), b"one\n");
    let error = talks.ask("g", b"two".to_vec()).await.expect_err("which line is it");
    assert!(matches!(error, CommandError::Unasked), "{error}");
}
