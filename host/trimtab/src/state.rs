//! The state directory's secrets: each a file of random bytes, made at the first start.

use anyhow::Context as _;
use std::path::Path;

/// The 32 random bytes in this file, made at the first start and readable by us alone.
pub(crate) fn own_key(path: &Path) -> anyhow::Result<[u8; 32]> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    if let Ok(bytes) = std::fs::read(path) {
        if let Ok(key) = bytes.try_into() {
            return Ok(key);
        }
        anyhow::bail!("{} is damaged: remove it, and a new key is made", path.display());
    }
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(|error| anyhow::anyhow!("no random numbers: {error}"))?;
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .with_context(|| format!("cannot make {}", path.display()))?;
    file.write_all(&key)?;
    file.sync_all()?;
    Ok(key)
}
