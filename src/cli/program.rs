//! Whether a command can be started, before anybody waits for what it would say.

use std::env;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// Looks for the program as a shell does: a name without a `/` in the folders of `PATH`.
///
/// # Errors
/// Why it cannot be started, for people.
pub(super) fn check(program: &OsStr) -> Result<(), String> {
    check_in(program, env::var_os("PATH").as_deref())
}

fn check_in(program: &OsStr, path: Option<&OsStr>) -> Result<(), String> {
    let shown = program.display();
    if program.as_bytes().contains(&b'/') {
        return match Path::new(program) {
            path if is_executable(path) => Ok(()),
            path if path.is_dir() => Err(format!("the command {shown} is a folder")),
            path if path.exists() => Err(format!(
                "the command {shown} is not executable: chmod +x, or name its interpreter before it"
            )),
            _ => Err(format!("the command {shown} is not there")),
        };
    }
    // Where there is no PATH, the system has one of its own.
    let Some(path) = path else { return Ok(()) };
    let mut found = env::split_paths(path).map(|folder: PathBuf| folder.join(program));
    match found.any(|path| is_executable(&path)) {
        true => Ok(()),
        false => Err(format!(
            "the command {shown} is in no folder of PATH, or not executable; a script beside you is ./{shown}"
        )),
    }
}

fn is_executable(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_cannot_be_started_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let script = folder.path().join("script");
        fs::write(&script, "#!/bin/sh\n").expect("it is written");
        let check = |program: &OsStr| check_in(program, Some(folder.path().as_os_str()));
        let error = |program: &OsStr| check(program).expect_err("it cannot be started");
        for program in [script.as_os_str(), OsStr::new("script")] {
            assert!(error(program).contains("not executable"), "{}", error(program));
        }
        assert!(error(OsStr::new("/nonexistent/x")).ends_with("/nonexistent/x is not there"));
        assert!(error(OsStr::new("nothing")).contains("in no folder of PATH"));
        assert!(error(folder.path().as_os_str()).ends_with("is a folder"));
        fs::set_permissions(&script, Permissions::from_mode(0o755)).expect("it may be run");
        for program in [script.as_os_str(), OsStr::new("script")] {
            assert_eq!(check(program), Ok(()));
        }
    }
}
