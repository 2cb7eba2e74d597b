//! The `convoke` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    convoke::cli::main()
}
