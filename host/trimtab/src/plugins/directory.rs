//! Watches the plugin directory and the grants.
//!
//! By looking, not by notification: a stat of some files twice a second costs nothing, and holds
//! on every file system. A file counts once two looks in a row saw it the same; it is read once,
//! and the bytes that were checked are the bytes that are compiled.

use super::{Registry, stale_grant};
use crate::grants;
use crate::signing::{self, Keys, Signer};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::watch;
use trimtab_core::grant::Grant;
use trimtab_core::plugin::PluginIdentity;
use trimtab_wasm::{Plugin, Sandbox};

/// Time between two looks: a dropped file is in service within a second.
const LOOK_EVERY: Duration = Duration::from_millis(300);

/// Where to look.
pub(crate) struct Options {
    /// The plugin directory.
    pub(crate) plugins: PathBuf,
    /// A grant file or a folder of them.
    pub(crate) grants: Option<PathBuf>,
    /// Keys of which one has to vouch for each plugin; `None`: nobody has to.
    pub(crate) keys: Option<PathBuf>,
}

/// What of a file tells that it changed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Look {
    length: u64,
    modified: Option<SystemTime>,
    inode: u64,
}

/// Looks once, until everything there is stable, and then goes on looking on a thread of its
/// own. The thread ends when every receiver is gone.
///
/// # Errors
/// The directory cannot be read, or the first grants are broken: the host must not start on less
/// than it was told to.
pub(crate) fn watch(
    options: Options,
    sandbox: Sandbox,
) -> anyhow::Result<watch::Receiver<Arc<Registry>>> {
    use anyhow::Context as _;
    let mut directory = Directory::new(options, sandbox);
    looks(&directory.options.plugins).with_context(|| {
        format!("--plugins {}: give a directory", directory.options.plugins.display())
    })?;
    if let Some(path) = &directory.options.keys {
        directory.keys = Some(Keys::read(path).context("--require-signature")?);
        directory.keys_seen = folder_looks(path);
    }
    directory.look();
    if directory.unsettled() {
        std::thread::sleep(LOOK_EVERY);
        directory.look();
    }
    if let Some(problem) = &directory.grants_problem {
        anyhow::bail!("the grants cannot be used:\n{problem}");
    }
    let (sender, receiver) = watch::channel(Arc::new(directory.registry()));
    std::thread::Builder::new()
        .name("plugin-directory".into())
        .spawn(move || {
            while !sender.is_closed() {
                std::thread::sleep(LOOK_EVERY);
                if directory.look() {
                    sender.send_replace(Arc::new(directory.registry()));
                }
            }
        })
        .context("cannot start a thread")?;
    Ok(receiver)
}

struct Directory {
    options: Options,
    sandbox: Sandbox,
    /// The last look at each file, and at the signatures beside it.
    seen: BTreeMap<PathBuf, Vec<Look>>,
    /// The look at which each file was read.
    taken: BTreeMap<PathBuf, Vec<Look>>,
    plugins: BTreeMap<String, Arc<Plugin>>,
    /// Who vouches for the plugin of each file.
    signers: BTreeMap<String, Signer>,
    keys_seen: BTreeMap<PathBuf, Look>,
    keys: Option<Keys>,
    /// Files that import WASI: whether they are served is their grant's to say.
    with_wasi: BTreeSet<String>,
    refused: BTreeMap<String, String>,
    grants_seen: Option<BTreeMap<PathBuf, Look>>,
    grants: Vec<Grant>,
    grants_problem: Option<String>,
}

impl Directory {
    fn new(options: Options, sandbox: Sandbox) -> Self {
        Self {
            options,
            sandbox,
            seen: BTreeMap::new(),
            taken: BTreeMap::new(),
            plugins: BTreeMap::new(),
            signers: BTreeMap::new(),
            keys_seen: BTreeMap::new(),
            keys: None,
            with_wasi: BTreeSet::new(),
            refused: BTreeMap::new(),
            grants_seen: None,
            grants: Vec::new(),
            grants_problem: None,
        }
    }

    fn registry(&self) -> Registry {
        let registry = Registry::new(
            &self.plugins,
            &self.signers,
            self.refused.clone(),
            &self.grants,
            self.grants_problem.clone(),
        );
        for served in registry.served() {
            if let Some(grant) = stale_grant(&served.power, &self.grants) {
                tracing::warn!(
                    plugin = %served.power.plugin,
                    "observes: the grant in {} is for another build ({}); grant this one to let it write",
                    grant.origin,
                    grant.digest.short(),
                );
            }
        }
        registry
    }

    fn unsettled(&self) -> bool {
        self.seen != self.taken
    }

    /// One look; whether anything came of it.
    fn look(&mut self) -> bool {
        let grants = self.look_at_grants() | self.look_at_keys();
        // A directory that cannot be read for a moment takes no plugin out of service.
        match looks(&self.options.plugins) {
            Ok(now) => self.take_plugins(now) || grants,
            Err(error) => {
                tracing::warn!(%error, "the plugin directory cannot be read; what is in service stays");
                grants
            }
        }
    }

    fn take_plugins(&mut self, now: BTreeMap<PathBuf, Vec<Look>>) -> bool {
        let mut changed = false;
        let gone: Vec<PathBuf> =
            self.taken.keys().filter(|f| !now.contains_key(*f)).cloned().collect();
        for path in gone {
            self.taken.remove(&path);
            let file = name(&path);
            self.plugins.remove(&file);
            self.signers.remove(&file);
            self.refused.remove(&file);
            self.with_wasi.remove(&file);
            tracing::info!(file, "plugin removed: its claims end");
            changed = true;
        }
        for (path, look) in &now {
            let stable = self.seen.get(path) == Some(look);
            if stable && self.taken.get(path) != Some(look) {
                self.take(path);
                self.taken.insert(path.clone(), look.clone());
                changed = true;
            }
        }
        self.seen = now;
        changed
    }

    fn take(&mut self, path: &Path) {
        let file = name(path);
        match self.load(path) {
            Ok((plugin, signer)) => {
                let identity = plugin.identity().clone();
                match self.plugins.get(&file) {
                    Some(old) => tracing::info!(
                        file,
                        "plugin replaced: {} gives way to {identity}",
                        old.identity()
                    ),
                    None => tracing::info!(file, "plugin loaded: {identity}"),
                }
                self.refused.remove(&file);
                match signer {
                    Some(signer) => self.signers.insert(file.clone(), signer),
                    None => self.signers.remove(&file),
                };
                self.plugins.insert(file, Arc::new(plugin));
            }
            Err(reason) => {
                let kept = if self.plugins.contains_key(&file) {
                    "; the older file stays in service"
                } else {
                    ""
                };
                tracing::error!(file, "plugin refused{kept}: {reason}");
                self.refused.insert(file, reason);
            }
        }
    }

    /// One read: the bytes that are verified are the bytes that are compiled.
    fn load(&mut self, path: &Path) -> Result<(Plugin, Option<Signer>), String> {
        let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
        let signer = match &self.keys {
            Some(keys) => Some(signing::verify(path, &bytes, keys)?.clone()),
            None => None,
        };
        let loaded = match trimtab_wasm::inspect(&bytes) {
            Ok(inspection) if inspection.wasi().next().is_some() => {
                self.with_wasi.insert(name(path));
                match self.may_have_wasi(&inspection.identity()) {
                    true => Plugin::load_with_wasi(&bytes, &self.sandbox),
                    false => Plugin::load(&bytes, &self.sandbox),
                }
            }
            _ => {
                self.with_wasi.remove(&name(path));
                Plugin::load(&bytes, &self.sandbox)
            }
        };
        Ok((loaded.map_err(|error| error.to_string())?, signer))
    }

    fn may_have_wasi(&self, plugin: &PluginIdentity) -> bool {
        let its = |grant: &&Grant| grant.plugin == plugin.name && grant.digest == plugin.digest;
        self.grants.iter().find(its).is_some_and(|grant| grant.terms.wasi)
    }

    /// Under other grants, files that import WASI are looked at anew; what no longer may ends.
    fn look_at_wasi(&mut self) {
        for file in self.with_wasi.clone() {
            let lost = |plugin: &Arc<Plugin>| {
                plugin.inspection().wasi().next().is_some()
                    && !self.may_have_wasi(plugin.identity())
            };
            if self.plugins.get(&file).is_some_and(lost) {
                tracing::error!(file, "out of service: no grant lets it import WASI any more");
                self.plugins.remove(&file);
                self.signers.remove(&file);
            } else if !self.refused.contains_key(&file) {
                continue;
            }
            let its = self.taken.iter_mut().filter(|(path, _)| name(path) == file);
            its.for_each(|(_, looks)| looks.clear());
        }
    }

    /// With other keys every file is looked at anew; what a key vouched for that is gone ends.
    fn look_at_keys(&mut self) -> bool {
        let Some(path) = &self.options.keys else { return false };
        let now = folder_looks(path);
        if self.keys_seen == now {
            return false;
        }
        self.keys_seen = now;
        let keys = match Keys::read(path) {
            Ok(keys) if Some(&keys) == self.keys.as_ref() => return false,
            Ok(keys) => keys,
            Err(error) => {
                tracing::error!("keys refused; the last good ones stay in use: {error}");
                return false;
            }
        };
        for (file, signer) in self.signers.extract_if(.., |_, signer| !keys.has(signer)) {
            tracing::error!(file, "out of service: the key of {} is gone", signer.name);
            self.plugins.remove(&file);
        }
        self.keys = Some(keys);
        self.taken.values_mut().for_each(Vec::clear);
        true
    }

    fn look_at_grants(&mut self) -> bool {
        let Some(path) = &self.options.grants else { return false };
        let now = folder_looks(path);
        if self.grants_seen.as_ref() == Some(&now) {
            return false;
        }
        self.grants_seen = Some(now);
        match grants::read(path) {
            Ok(grants) => {
                let changed = self.grants != grants || self.grants_problem.is_some();
                self.grants = grants;
                self.grants_problem = None;
                if changed {
                    self.look_at_wasi();
                    tracing::info!(grants = self.grants.len(), "grants read");
                }
                changed
            }
            Err(error) => {
                tracing::error!("grants refused; the last good ones stay in use: {error}");
                self.grants_problem = Some(error.to_string());
                true
            }
        }
    }
}

/// The `*.wasm` files of the directory. Hidden files are what tools write before they rename.
fn looks(directory: &Path) -> std::io::Result<BTreeMap<PathBuf, Vec<Look>>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let wasm = path.extension().is_some_and(|extension| extension == "wasm");
        if wasm
            && !name(&path).starts_with('.')
            && let Some(look) = look_at(&path)
        {
            let signatures = signing::files(&path);
            let beside = signatures.iter().filter_map(|file| look_at(file));
            found.insert(path.clone(), std::iter::once(look).chain(beside).collect());
        }
    }
    Ok(found)
}

/// A file, or the files of a folder.
fn folder_looks(path: &Path) -> BTreeMap<PathBuf, Look> {
    let mut found = BTreeMap::new();
    let mut add = |path: PathBuf| {
        if let Some(look) = look_at(&path) {
            found.insert(path, look);
        }
    };
    if let Ok(entries) = std::fs::read_dir(path) {
        entries.flatten().for_each(|entry| add(entry.path()));
    }
    add(path.to_path_buf());
    found
}

fn look_at(path: &Path) -> Option<Look> {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = std::fs::metadata(path).ok()?;
    Some(Look { length: metadata.len(), modified: metadata.modified().ok(), inode: metadata.ino() })
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
