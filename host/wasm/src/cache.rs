//! Compiled code kept between runs of the host, in a folder of the host's own.
//!
//! Loading compiled code is running it: whoever can put bytes here owns the host. So every entry
//! carries a MAC (HMAC-SHA-256) under a random key that lies beside the folder, readable by the
//! host's user alone; it covers the plugin's digest and the engine's configuration, so that an
//! entry cannot stand in for another. An entry that is not ours is compiled anew, never loaded.

use crate::Error;
use crate::compile::MAX_CODE_BYTES;
use crate::plugin::compile_error;
use sha2::{Digest as _, Sha256};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use trimtab_core::identity::Digest;
use wasmtime::Engine;
use wasmtime::component::Component;

/// Bytes of the key and of a MAC.
const MAC_BYTES: usize = 32;

/// SHA-256's block, in bytes.
const BLOCK_BYTES: usize = 64;

/// Entries that are kept: active plugins, some of their predecessors. The oldest go first.
const MAX_ENTRIES: usize = 256;

pub(crate) struct Cache {
    dir: PathBuf,
    key: [u8; MAC_BYTES],
    engine: String,
}

impl Cache {
    /// Opens the folder and its key, making both where they are missing.
    pub(crate) fn open(dir: PathBuf, engine: &Engine) -> Result<Self, Error> {
        let failed = |what: &Path, error: io::Error| {
            Error::Sandbox(format!("the compiled-code cache: {}: {error}", what.display()))
        };
        make_private_dir(&dir).map_err(|error| failed(&dir, error))?;
        let key_file = dir.with_extension("key");
        let key = read_or_make_key(&key_file).map_err(|error| failed(&key_file, error))?;
        let mut hasher = DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        Ok(Self { dir, key, engine: format!("{:016x}", hasher.finish()) })
    }

    /// The code of a component of this digest: from an entry of ours, else made and kept.
    pub(crate) fn code(
        &self,
        digest: Digest,
        make: impl FnOnce() -> Result<Vec<u8>, Error>,
    ) -> Result<Vec<u8>, Error> {
        let file = self.file(&digest);
        match self.read(&file, &digest) {
            Ok(Some(code)) => return Ok(code),
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(file = %file.display(), %error, "compiled code is not used")
            }
        }
        let code = make()?;
        // A cache that cannot be written costs time at the next start, nothing else.
        if let Err(error) = self.write(&file, &digest, &code) {
            tracing::warn!(file = %file.display(), %error, "compiled code is not kept");
        }
        Ok(code)
    }

    fn file(&self, digest: &Digest) -> PathBuf {
        let hex = digest.to_string();
        let hex = hex.strip_prefix("sha256:").unwrap_or(&hex);
        self.dir.join(format!("{hex}-{}.cwasm", self.engine))
    }

    /// The entry's code, if there is one and it is ours.
    fn read(&self, file: &Path, digest: &Digest) -> io::Result<Option<Vec<u8>>> {
        let size = match fs::metadata(file) {
            Ok(metadata) => metadata.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        if size > MAX_CODE_BYTES + MAC_BYTES as u64 {
            return Err(io::Error::other("the entry is too large to be ours"));
        }
        let mut code = fs::read(file)?;
        let at = code
            .len()
            .checked_sub(MAC_BYTES)
            .ok_or_else(|| io::Error::other("the entry is too short"))?;
        let mac = code.split_off(at);
        if !equal(&mac, &self.mac(digest, &code)) {
            return Err(io::Error::other("the entry was not made by this host"));
        }
        Ok(Some(code))
    }

    fn write(&self, file: &Path, digest: &Digest, code: &[u8]) -> io::Result<()> {
        self.make_room()?;
        // The process's own name: two hosts on one folder do not write into each other's file.
        let partial = file.with_extension(format!("{}.partial", std::process::id()));
        let mut out = private_file(&partial)?;
        out.write_all(code)?;
        out.write_all(&self.mac(digest, code))?;
        drop(out);
        fs::rename(&partial, file)
    }

    fn make_room(&self) -> io::Result<()> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let entry = entry?;
            entries.push((entry.metadata()?.modified()?, entry.path()));
        }
        if entries.len() >= MAX_ENTRIES {
            entries.sort();
            for (_, path) in &entries[..=entries.len() - MAX_ENTRIES] {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    /// HMAC-SHA-256 over which code this is and the code.
    fn mac(&self, digest: &Digest, code: &[u8]) -> [u8; MAC_BYTES] {
        let mut block = [0u8; BLOCK_BYTES];
        block[..MAC_BYTES].copy_from_slice(&self.key);
        let inner = Sha256::new()
            .chain_update(block.map(|byte| byte ^ 0x36))
            .chain_update(digest.bytes())
            .chain_update(self.engine.as_bytes())
            .chain_update(code)
            .finalize();
        Sha256::new()
            .chain_update(block.map(|byte| byte ^ 0x5c))
            .chain_update(inner)
            .finalize()
            .into()
    }
}

/// Loads code that this host made. As loaded it takes a third of the memory that it has as compiled.
#[allow(unsafe_code)]
pub(crate) fn load(engine: &Engine, code: &[u8]) -> Result<Component, Error> {
    // SAFETY: `deserialize` trusts its bytes to be what wasmtime's compiler gave. They are: either
    // `Compiler::compile` gave them just now, from this process or through a pipe from the worker
    // that it started, or `Cache::read` found them under a MAC that only this host's key makes, and
    // `Cache::write` makes one over nothing else. They are in our own memory, so that nobody changes
    // them after the check.
    unsafe { Component::deserialize(engine, code) }.map_err(compile_error)
}

/// Compares without saying, by its time, where two MACs differ.
fn equal(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

fn read_or_make_key(file: &Path) -> io::Result<[u8; MAC_BYTES]> {
    match fs::read(file) {
        Ok(key) => {
            refuse_if_shared(file)?;
            <[u8; MAC_BYTES]>::try_from(key)
                .map_err(|_| io::Error::other("not a key of ours: remove it and start again"))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut key = [0u8; MAC_BYTES];
            getrandom::fill(&mut key)
                .map_err(|error| io::Error::other(format!("no random numbers: {error}")))?;
            let partial = file.with_extension(format!("{}.partial", std::process::id()));
            private_file(&partial)?.write_all(&key)?;
            // Linking fails where another host was first: then its key is the key.
            let linked = fs::hard_link(&partial, file);
            fs::remove_file(&partial)?;
            match linked {
                Ok(()) => Ok(key),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    read_or_make_key(file)
                }
                Err(error) => Err(error),
            }
        }
        Err(error) => Err(error),
    }
}

#[cfg(unix)]
fn refuse_if_shared(file: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let mode = fs::metadata(file)?.mode();
    if mode & 0o077 != 0 {
        return Err(io::Error::other(format!(
            "others may read or write it (mode {:o}): remove it and start again",
            mode & 0o777
        )));
    }
    Ok(())
}

#[cfg(not(unix))]
fn refuse_if_shared(_: &Path) -> io::Result<()> {
    Ok(())
}

/// A new file that only this user reads and writes; one that is there is replaced.
fn private_file(path: &Path) -> io::Result<fs::File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn make_private_dir(dir: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}
