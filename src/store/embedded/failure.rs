//! The ways in which the files fail, as errors; a panic of redb is one of them.

use std::io::{self, ErrorKind};
use std::ops::Deref;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;

use redb::{Database, DatabaseError, StorageError};

use crate::store::StoreError;

/// A database whose end cannot panic. redb writes when a database is dropped, and may panic on what it finds then. Whoever drops
/// it may be unwinding already, and a second panic would abort the process.
#[derive(Debug)]
pub(super) struct ContainedDatabase(Option<Database>);

impl ContainedDatabase {
    pub(super) const fn new(database: Database) -> Self {
        Self(Some(database))
    }

    /// Closes it, so that the next start need not repair it.
    pub(super) fn close(mut self, path: &Path) -> Result<(), StoreError> {
        let Some(database) = self.0.take() else {
            return Ok(());
        };
        contained(path, || database.close().map_err(|error| database_error(path, error)))
    }
}

impl Deref for ContainedDatabase {
    type Target = Database;

    fn deref(&self) -> &Database {
        self.0.as_ref().expect("it is there until it is closed or dropped")
    }
}

impl Drop for ContainedDatabase {
    fn drop(&mut self) {
        let database = self.0.take();
        // Whatever led here was reported, or will be met by the next opening.
        let _ = panic::catch_unwind(AssertUnwindSafe(|| drop(database)));
    }
}

/// Runs `work`, and takes a panic of redb for what it is: damage that it did not foresee.
pub(super) fn contained<T>(path: &Path, work: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<String>().map(String::as_str);
        let said = said.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(damaged(path, said.unwrap_or("it cannot be read").to_owned()))
    })
}

pub(super) fn damaged(path: &Path, reason: String) -> StoreError {
    StoreError::Damaged {
        path: path.display().to_string(),
        reason,
    }
}

pub(super) fn removed(path: &Path) -> StoreError {
    StoreError::Io {
        path: path.display().to_string(),
        reason:
            "it was removed or replaced while it was in use; put it back, or stop Convoke and restore it from a backup"
                .to_owned(),
    }
}

pub(super) fn io_error(path: &Path, error: &io::Error) -> StoreError {
    StoreError::Io {
        path: path.display().to_string(),
        reason: error.to_string(),
    }
}

pub(super) fn database_error(path: &Path, error: DatabaseError) -> StoreError {
    match error {
        DatabaseError::DatabaseAlreadyOpen | DatabaseError::LockProtocolMismatch => StoreError::InUse {
            path: path.display().to_string(),
        },
        DatabaseError::Storage(error) => storage_error(path, error),
        error => damaged(path, error.to_string()),
    }
}

pub(super) fn storage_error(path: &Path, error: StorageError) -> StoreError {
    match error {
        // A file that is no database, or ends before its own header says.
        StorageError::Io(error) if matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof) => {
            damaged(path, error.to_string())
        }
        StorageError::Io(error) => io_error(path, &error),
        StorageError::PreviousIo | StorageError::DatabaseClosed | StorageError::Backend(_) => StoreError::Io {
            path: path.display().to_string(),
            reason: error.to_string(),
        },
        error => damaged(path, error.to_string()),
    }
}
