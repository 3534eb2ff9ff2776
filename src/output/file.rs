//! Files that are either whole or not there: written beside their place under another name, then
//! renamed.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A file or folder that could not be written, and why.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be written", path.display())]
pub struct FileError {
    /// The file.
    pub path: PathBuf,
    /// What the system says.
    pub source: io::Error,
}

/// A file under way. Dropped before [`Draft::commit`], it leaves nothing behind.
#[derive(Debug)]
pub struct Draft {
    target: PathBuf,
    draft: PathBuf,
    committed: bool,
}

impl Draft {
    /// A draft of `target`, in the same folder.
    pub fn new(target: &Path) -> Self {
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let draft = target.with_file_name(format!(".{name}.{}.part", std::process::id()));
        Draft { target: target.to_owned(), draft, committed: false }
    }

    /// Where to write.
    pub fn path(&self) -> &Path {
        &self.draft
    }

    /// Opens the draft.
    ///
    /// # Errors
    /// The file and what the system says of it.
    pub fn create(&self) -> Result<BufWriter<File>, FileError> {
        File::create(&self.draft).map(BufWriter::new).map_err(|source| self.error(source))
    }

    /// Puts the draft in its place.
    ///
    /// # Errors
    /// The file and what the system says of it.
    pub fn commit(mut self) -> Result<PathBuf, FileError> {
        fs::rename(&self.draft, &self.target).map_err(|source| self.error(source))?;
        self.committed = true;
        Ok(self.target.clone())
    }

    /// An error of this file.
    pub fn error(&self, source: io::Error) -> FileError {
        FileError { path: self.target.clone(), source }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.committed {
            // Nothing was asked for and nothing can be said: a draft that was never created is not
            // there to remove.
            let _ = fs::remove_file(&self.draft);
        }
    }
}

/// Writes a whole file.
///
/// # Errors
/// The file and what the system says of it.
pub fn write(target: &Path, contents: &[u8]) -> Result<PathBuf, FileError> {
    let draft = Draft::new(target);
    let mut file = draft.create()?;
    file.write_all(contents).and_then(|()| file.flush()).map_err(|source| draft.error(source))?;
    draft.commit()
}

/// Makes a folder and those above it.
///
/// # Errors
/// The folder and what the system says of it.
pub fn make_folder(path: &Path) -> Result<(), FileError> {
    fs::create_dir_all(path).map_err(|source| FileError { path: path.to_owned(), source })
}

/// Removes a file, if it is there.
///
/// # Errors
/// The file and what the system says of it.
pub fn remove(path: &Path) -> Result<(), FileError> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(FileError { path: path.to_owned(), source })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_abandoned_draft_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let draft = Draft::new(&folder.path().join("a.txt"));
        draft.create().unwrap().write_all(b"half").unwrap();
        drop(draft);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn an_error_names_the_file() {
        let error = write(Path::new("/nowhere/a.txt"), b"").unwrap_err();
        assert!(error.to_string().starts_with("/nowhere/a.txt cannot be written"));
    }
}
