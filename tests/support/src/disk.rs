//! Small disks that can be full.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::Result;

/// A small file system of its own, unmounted at the end.
#[derive(Debug)]
pub struct Tmpfs(TempDir);

impl Tmpfs {
    /// `None` where mounting is not allowed.
    ///
    /// # Errors
    /// When there is no `mount`, or no place for it.
    pub fn mount(options: &str) -> Result<Option<Self>> {
        let directory = tempfile::tempdir()?;
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "tmpfs"])
            .arg(directory.path())
            .output()?;
        if !mounted.status.success() {
            eprintln!("not allowed to mount a tmpfs: skipped");
        }
        Ok(mounted.status.success().then_some(Self(directory)))
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).output();
    }
}

/// Takes all the room there is.
///
/// # Errors
/// When the file cannot be made.
pub fn fill(path: &Path) -> Result<()> {
    let mut file = fs::File::create(path)?;
    while file.write_all(&[0; 4096]).is_ok() {}
    Ok(())
}
