//! Ports that somebody else has. Those of the bootstrap listener and of the admin side are tested with the command line.

use std::net::TcpListener;

use convoke_support::{Result, ports};

use crate::{PATIENCE, kafka, run, wait_for_log};

#[test]
fn a_node_whose_port_is_taken_is_named_with_the_port_and_what_to_do() -> Result<()> {
    let kafka = kafka()?;
    let upstream = kafka.bootstrap();
    let port = ports::free(1)?;
    let _taken = TcpListener::bind(("127.0.0.1", port))?;
    for (nodes, said) in [
        (
            format!("{}+{{node}}", port - 1),
            ["node 1", "another program, or another Convoke, has the port"],
        ),
        (
            format!("{port}-{port}"),
            ["node 1 gets no port", "widen the range of listen.nodes"],
        ),
    ] {
        let data = tempfile::tempdir()?;
        let nodes = format!("listen.nodes={nodes}");
        let mut convoke = run(data.path(), &upstream, &["--set", &nodes])?;
        assert_eq!(convoke.wait(PATIENCE)?.code(), Some(1), "{}", convoke.report());
        let (line, _) = wait_for_log(&convoke, 0, &said)?;
        assert!(line.contains("ERROR") && line.contains(&port.to_string()), "{line}");
        assert!(convoke.stdout.is_empty(), "{}", convoke.report());
    }
    Ok(())
}
