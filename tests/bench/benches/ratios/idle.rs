//! What a further plugin costs in memory while nobody calls it.

use crate::process::resident;
use crate::table::Table;
use anyhow::Result;
use std::path::Path;
use std::time::Instant;
use trimtab_system_tests::{Built, with_version};
use trimtab_wasm::{Compiler, Plugin, Sandbox, SandboxOptions};

const PLUGINS: u32 = 64;
/// Loaded before the first measurement, so that what is there once is there.
const FIRST: u32 = 4;
/// Resident bytes for each further plugin stay below this.
const BYTES: u64 = 1 << 20;

/// Loads the same component under many versions: as many files with digests of their own. First
/// when none is in the cache of compiled code, then when all are.
pub(crate) fn measure(wasm: &[u8], table: &mut Table) -> Result<()> {
    let cache = tempfile::tempdir()?;
    let files: Vec<Vec<u8>> = (0..PLUGINS + FIRST)
        .map(|n| with_version(wasm, &format!("0.1.{n}")))
        .collect::<Result<_>>()?;
    for what in ["compiled by the worker", "from the host's cache"] {
        let start = Instant::now();
        let bytes = load(&files, cache.path())?;
        let each = start.elapsed() / (PLUGINS + FIRST);
        table.figure(
            &format!("memory of each further idle plugin, {what}"),
            format!("{} KiB, loaded in {}", bytes / 1024, crate::table::time(each)),
            "< 1 MiB",
            bytes < BYTES,
        );
    }
    Ok(())
}

fn load(files: &[Vec<u8>], cache: &Path) -> Result<u64> {
    let cache_dir = Some(cache.to_owned());
    // As the host does it.
    let compiler = Compiler::Worker {
        program: Built::find()?.trimtab,
        arguments: vec!["compile-worker".into()],
    };
    let sandbox =
        Sandbox::new(SandboxOptions { cache_dir, compiler, ..SandboxOptions::default() })?;
    let (first, further) = files.split_at(FIRST as usize);
    let mut loaded: Vec<Plugin> = Vec::new();
    for bytes in first {
        loaded.push(Plugin::load(bytes, &sandbox)?);
    }
    let before = resident()?;
    for bytes in further {
        loaded.push(Plugin::load(bytes, &sandbox)?);
    }
    let after = resident()?;
    drop(loaded);
    Ok(after.saturating_sub(before) / u64::from(PLUGINS))
}
