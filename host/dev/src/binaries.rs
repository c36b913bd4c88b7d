//! Where the programs are: found on this machine, or built.
//!
//! Takes: the [`Places`] to look in. Gives: the [`Binaries`] to run.
//!
//! The order is `KUBEBUILDER_ASSETS`, `PATH`, our cache, and last a build from source into that
//! cache (`toolchain.rs`). kube-apiserver and kube-controller-manager are taken from one place and
//! of one minor version, because Kubernetes supports no controller manager that is newer than its
//! API server.
//!
//! A program that is older than what Trimtab is tested against is passed over with a line that
//! says so, and the search goes on: it ends at a program that fits or at a sentence that says
//! what to install, never at a test that fails for a reason nobody sees.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use std::{array, env, fmt, fs};

use tokio::process::Command;
use tokio::time::timeout;

use crate::pinned::{ETCD, KUBE_APISERVER, KUBE_CONTROLLER_MANAGER, Program};
use crate::toolchain;
use crate::{Error, Progress};

/// Where to look for programs, and where to keep those that are built.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// The folder that `setup-envtest` fills, from `KUBEBUILDER_ASSETS`.
    pub assets: Option<PathBuf>,
    /// The value of `PATH`; `go` is looked up here too.
    pub path: OsString,
    /// `$TRIMTAB_CACHE`, else `$XDG_CACHE_HOME/trimtab`, else `$HOME/.cache/trimtab`.
    pub cache: Option<PathBuf>,
}

impl Places {
    /// The places that this process' environment names. An empty variable counts as unset.
    pub fn from_env() -> Self {
        Self::from_lookup(|name| env::var_os(name))
    }

    fn from_lookup(lookup: impl Fn(&str) -> Option<OsString>) -> Self {
        let folder = |name: &str| lookup(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        Self {
            assets: folder("KUBEBUILDER_ASSETS"),
            path: lookup("PATH").unwrap_or_default(),
            cache: folder("TRIMTAB_CACHE")
                .or_else(|| Some(folder("XDG_CACHE_HOME")?.join("trimtab")))
                .or_else(|| Some(folder("HOME")?.join(".cache/trimtab"))),
        }
    }

    /// The first executable of that name on `PATH`. What is empty or relative there would mean
    /// whatever folder somebody happens to be in, and is left out.
    pub(crate) fn on_path(&self, program: &str) -> Option<PathBuf> {
        env::split_paths(&self.path)
            .filter(|folder| folder.is_absolute())
            .map(|folder| folder.join(program))
            .find(|candidate| is_executable(candidate))
    }

    fn in_assets(&self, program: &str) -> Option<PathBuf> {
        let candidate = self.assets.as_ref()?.join(program);
        is_executable(&candidate).then_some(candidate)
    }
}

/// The programs of one control plane.
#[derive(Clone, Debug)]
pub struct Binaries {
    /// etcd, 3.5 or later.
    pub etcd: PathBuf,
    /// kube-apiserver, 1.33 or later.
    pub kube_apiserver: PathBuf,
    /// kube-controller-manager of the same minor version; only when it was asked for.
    pub kube_controller_manager: Option<PathBuf>,
}

impl Binaries {
    /// Finds the programs, building what is missing, which takes minutes the first time.
    ///
    /// # Errors
    /// [`Error::NoGo`], [`Error::GoTooOld`] and [`Error::NoCache`] say what to install or set;
    /// [`Error::Build`] carries what `go` said.
    pub async fn find(
        places: &Places,
        controller_manager: bool,
        progress: Progress<'_>,
    ) -> Result<Self, Error> {
        let [etcd] = locate(places, [&ETCD], progress).await?;
        let (kube_apiserver, kube_controller_manager) = if controller_manager {
            let both = [&KUBE_APISERVER, &KUBE_CONTROLLER_MANAGER];
            let [apiserver, manager] = locate(places, both, progress).await?;
            (apiserver, Some(manager))
        } else {
            let [apiserver] = locate(places, [&KUBE_APISERVER], progress).await?;
            (apiserver, None)
        };
        Ok(Self { etcd, kube_apiserver, kube_controller_manager })
    }
}

/// Programs of one module, all from one place.
async fn locate<const N: usize>(
    places: &Places,
    programs: [&'static Program; N],
    progress: Progress<'_>,
) -> Result<[PathBuf; N], Error> {
    let in_assets = all(programs, |name| places.in_assets(name));
    let on_path = all(programs, |name| places.on_path(name));
    for found in [in_assets, on_path].into_iter().flatten() {
        match unsuitable(&programs, &found).await {
            None => return Ok(found),
            Some(why) => progress(&format!("passing over {why}")),
        }
    }
    let mut built = array::from_fn(|_| PathBuf::new());
    for (path, program) in built.iter_mut().zip(programs) {
        *path = toolchain::ensure(program, places, progress).await?;
    }
    Ok(built)
}

fn all<const N: usize>(
    programs: [&'static Program; N],
    find: impl Fn(&str) -> Option<PathBuf>,
) -> Option<[PathBuf; N]> {
    let mut found = array::from_fn(|_| PathBuf::new());
    for (path, program) in found.iter_mut().zip(programs) {
        *path = find(program.name)?;
    }
    Some(found)
}

/// Why these programs cannot be used together, or `None` when they can.
async fn unsuitable(programs: &[&'static Program], found: &[PathBuf]) -> Option<String> {
    let mut first = None;
    for (program, path) in programs.iter().zip(found) {
        let path_shown = path.display();
        let Some(version) = version_of(path).await else {
            return Some(format!("{path_shown}: it does not tell its version"));
        };
        let minimum = program.module.minimum;
        if version < minimum {
            return Some(format!(
                "{path_shown}: it is {version}, and Trimtab needs {minimum} or later"
            ));
        }
        let expected = *first.get_or_insert(version);
        if (version.major, version.minor) != (expected.major, expected.minor) {
            return Some(format!(
                "{path_shown}: it is {version}, and the {} beside it is {expected}",
                programs[0].name
            ));
        }
    }
    None
}

async fn version_of(program: &Path) -> Option<Version> {
    let output = Command::new(program)
        .arg("--version")
        .env_clear()
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = timeout(VERSION_TIMEOUT, output).await.ok()?.ok()?;
    Version::find(&String::from_utf8_lossy(&output.stdout))
}

/// For a program that only prints its version; a heavy Go binary on a busy machine takes a second.
const VERSION_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// Major, minor and patch of a release; what follows (`-rc.1`, `+build`) is not compared.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Version {
    pub(crate) major: u32,
    pub(crate) minor: u32,
    pub(crate) patch: u32,
}

impl Version {
    /// The first word that is a version, as in `Kubernetes v1.37.2`, `etcd Version: 3.7.3` or
    /// `go version go1.26.8 linux/amd64`.
    pub(crate) fn find(text: &str) -> Option<Self> {
        text.split_whitespace().find_map(|word| {
            let word = word.trim_start_matches("go").trim_start_matches('v');
            let core = word.split(['-', '+']).next()?;
            let mut parts = core.split('.');
            let major = parts.next()?.parse().ok()?;
            let minor = leading_number(parts.next()?)?;
            let patch = parts.next().and_then(leading_number).unwrap_or(0);
            Some(Self { major, minor, patch })
        })
    }
}

/// `27` of `27rc1`.
fn leading_number(text: &str) -> Option<u32> {
    let digits = text.find(|c: char| !c.is_ascii_digit());
    text[..digits.unwrap_or(text.len())].parse().ok()
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toolchain::tests::{Lines, script};

    fn fake(folder: &Path, program: &str, says: &str) -> PathBuf {
        script(&folder.join(program), &format!("echo '{says}'"))
    }

    #[test]
    fn versions_are_read_from_what_each_program_prints() {
        for (text, shown) in [
            ("Kubernetes v1.37.2", "1.37.2"),
            ("etcd Version: 3.7.3\nGit SHA: Not provided", "3.7.3"),
            ("go version go1.26.8 linux/amd64", "1.26.8"),
            ("go version go1.27rc1 linux/amd64", "1.27.0"),
            ("Kubernetes v1.33.0-alpha.1+abc", "1.33.0"),
        ] {
            assert_eq!(Version::find(text).unwrap().to_string(), shown);
        }
        assert_eq!(Version::find("command not found"), None);
    }

    #[test]
    fn the_cache_is_ours_then_xdgs_then_homes() {
        let cache = |set: &[(&str, &str)]| {
            Places::from_lookup(|name| {
                let found = set.iter().find(|(key, _)| *key == name)?;
                Some(OsString::from(found.1))
            })
            .cache
        };
        let all = [("TRIMTAB_CACHE", "/t"), ("XDG_CACHE_HOME", "/x"), ("HOME", "/h")];
        assert_eq!(cache(&all), Some("/t".into()));
        assert_eq!(cache(&all[1..]), Some("/x/trimtab".into()));
        assert_eq!(cache(&all[2..]), Some("/h/.cache/trimtab".into()));
        assert_eq!(cache(&[("TRIMTAB_CACHE", ""), ("HOME", "/h")]), cache(&all[2..]));
        assert_eq!(cache(&[]), None);
    }

    #[tokio::test]
    async fn the_assets_folder_comes_before_path() {
        let (assets, path) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for folder in [assets.path(), path.path()] {
            fake(folder, "etcd", "etcd Version: 3.6.0");
            fake(folder, "kube-apiserver", "Kubernetes v1.35.0");
        }
        fake(path.path(), "kube-controller-manager", "Kubernetes v1.35.4");
        let places =
            Places { assets: Some(assets.path().into()), path: path.path().into(), cache: None };
        let lines = Lines::default();
        let found = Binaries::find(&places, false, &lines.progress()).await.unwrap();
        assert_eq!(found.kube_apiserver, assets.path().join("kube-apiserver"));
        assert_eq!(found.kube_controller_manager, None);

        // A controller manager is taken with the API server that it came with.
        let found = Binaries::find(&places, true, &lines.progress()).await.unwrap();
        assert_eq!(found.kube_apiserver, path.path().join("kube-apiserver"));
        assert_eq!(lines.all(), Vec::<String>::new());
    }

    #[tokio::test]
    async fn a_program_that_is_too_old_is_passed_over_and_named() {
        let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fake(old.path(), "kube-apiserver", "Kubernetes v1.32.9");
        fake(new.path(), "kube-apiserver", "Kubernetes v1.33.0");
        fake(new.path(), "etcd", "etcd Version: 3.5.0");
        let places =
            Places { assets: Some(old.path().into()), path: new.path().into(), cache: None };
        let lines = Lines::default();
        let found = Binaries::find(&places, false, &lines.progress()).await.unwrap();
        assert_eq!(found.kube_apiserver, new.path().join("kube-apiserver"));
        let old = old.path().join("kube-apiserver");
        assert_eq!(
            lines.all(),
            [format!(
                "passing over {}: it is 1.32.9, and Trimtab needs 1.33.0 or later",
                old.display()
            )]
        );
    }

    #[tokio::test]
    async fn a_controller_manager_of_another_minor_version_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        fake(folder.path(), "etcd", "etcd Version: 3.6.0");
        fake(folder.path(), "kube-apiserver", "Kubernetes v1.35.0");
        fake(folder.path(), "kube-controller-manager", "Kubernetes v1.36.0");
        let places = Places { assets: None, path: folder.path().into(), cache: None };
        let lines = Lines::default();
        let error = Binaries::find(&places, true, &lines.progress()).await.unwrap_err();
        assert!(matches!(error, Error::NoCache), "{error}");
        assert!(
            lines.all()[0].ends_with("it is 1.36.0, and the kube-apiserver beside it is 1.35.0")
        );
    }
}
