//! What is asked of cargo: what the crate is, and its compiled code.
//!
//! The user's own settings stay in force: flags that a plugin cannot do without go to the last
//! crate alone (`cargo rustc`), where neither `RUSTFLAGS` nor a `config.toml` overrides them or is
//! overridden; the others are settings that give way to `RUSTFLAGS`.

use crate::{Error, TARGET};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Bytes of a guest's stack in its linear memory. It lies lowest, within what the host keeps
/// resident: a small one is what makes a fresh instance nearly free.
const STACK_BYTES: u32 = 65_536;

/// Bytes of memory that a guest begins with: two objects of usual size and what is made of them fit,
/// and growing is a call to the host that costs as much as a fifth of a comparison.
const INITIAL_MEMORY_BYTES: u32 = 512 << 10;

/// The profile that plugins have in this project's own workspace.
const PLUGIN_PROFILE: &str = "plugin";

/// When all crates are put together, inline only what is tiny: each has inlined what pays within
/// itself before. What is copied beyond that makes the file a quarter larger and no call faster
/// (both measured), and the host compiles it for longer.
const LEAN: [&str; 2] =
    ["-Cllvm-args=-inline-threshold=10", "-Cllvm-args=-inlinehint-threshold=30"];

/// A crate, as cargo sees it.
#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) description: Option<String>,
    pub(crate) manifest_path: PathBuf,
    workspace_root: PathBuf,
}

#[derive(serde::Deserialize)]
struct MetadataAnswer {
    packages: Vec<PackageAnswer>,
    workspace_root: PathBuf,
}

#[derive(serde::Deserialize)]
struct PackageAnswer {
    name: String,
    version: String,
    description: Option<String>,
    manifest_path: PathBuf,
}

/// A line of cargo's messages, as far as it is read.
#[derive(serde::Deserialize)]
struct Message {
    reason: String,
    manifest_path: Option<PathBuf>,
    #[serde(default)]
    filenames: Vec<PathBuf>,
}

/// The crate in this folder.
pub(crate) fn package(dir: &Path) -> Result<Package, Error> {
    let manifest_path = dir.join("Cargo.toml");
    let manifest_path = manifest_path.canonicalize().map_err(Error::file(&manifest_path))?;
    let program = cargo();
    let answer = Command::new(&program)
        .args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"])
        .arg(&manifest_path)
        .current_dir(dir)
        .stderr(Stdio::inherit())
        .output()
        .map_err(not_run(&program))?;
    if !answer.status.success() {
        return Err(Error::Cargo { package: dir.display().to_string() });
    }
    let answer: MetadataAnswer = serde_json::from_slice(&answer.stdout)
        .map_err(|error| Error::CargoAnswer(error.to_string()))?;
    let found = answer.packages.into_iter().find(|package| package.manifest_path == manifest_path);
    let Some(found) = found else {
        return Err(Error::Manifest {
            path: manifest_path,
            message: "this is a workspace without a crate of its own: give a plugin's folder"
                .into(),
        });
    };
    Ok(Package {
        name: found.name,
        version: found.version,
        description: found.description,
        manifest_path,
        workspace_root: answer.workspace_root,
    })
}

/// Makes sure that the toolchain which cargo uses in this folder can make WebAssembly.
pub(crate) fn check_target(dir: &Path) -> Result<(), Error> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let answer = Command::new(&rustc)
        .args(["--print", "sysroot"])
        .current_dir(dir)
        .output()
        .map_err(not_run(&rustc))?;
    let sysroot = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
    if Path::new(&sysroot).join("lib/rustlib").join(TARGET).join("lib").is_dir() {
        return Ok(());
    }
    Err(Error::NoTarget { sysroot })
}

/// Compiles the crate and gives the core module's file. cargo's messages go to standard error.
pub(crate) fn compile(package: &Package) -> Result<PathBuf, Error> {
    let failed = || Error::Cargo { package: package.name.clone() };
    let profile =
        if has_plugin_profile(&package.workspace_root)? { PLUGIN_PROFILE } else { "release" };
    let program = cargo();
    let answer = Command::new(&program)
        .args(["rustc", "--lib", "--crate-type", "cdylib"])
        .args(["--target", TARGET, "--profile", profile])
        .arg("--message-format=json-render-diagnostics")
        .arg("--manifest-path")
        .arg(&package.manifest_path)
        .arg("--config")
        .arg(settings(&package.workspace_root))
        .arg("--")
        .args(LEAN)
        .arg(format!("-Clink-arg=-zstack-size={STACK_BYTES}"))
        .arg(format!("-Clink-arg=--initial-memory={INITIAL_MEMORY_BYTES}"))
        // References between functions in as few bytes as they need: a fifth of the file.
        .args(["-Clink-arg=--strip-debug", "-Clink-arg=--compress-relocations"])
        .current_dir(&package.workspace_root)
        .stderr(Stdio::inherit())
        .output()
        .map_err(not_run(&program))?;
    if !answer.status.success() {
        return Err(failed());
    }
    let messages = String::from_utf8_lossy(&answer.stdout);
    let mut wasm = None;
    for line in messages.lines().filter(|line| line.starts_with('{')) {
        let message: Message =
            serde_json::from_str(line).map_err(|error| Error::CargoAnswer(error.to_string()))?;
        if message.reason == "compiler-artifact"
            && message.manifest_path.as_ref() == Some(&package.manifest_path)
        {
            let is_wasm = |file: &PathBuf| file.extension().is_some_and(|name| name == "wasm");
            wasm = message.filenames.into_iter().find(is_wasm).or(wasm);
        }
    }
    wasm.ok_or_else(|| Error::CargoAnswer(format!("it names no .wasm file for {}", package.name)))
}

/// Settings for every crate of a plugin, which give way to the user's own `RUSTFLAGS`.
///
/// Panic messages name files as `./src/lib.rs`, wherever the crate was built: the file tells
/// nobody's home. (Its digest still differs between two folders: cargo's crate hashes hold paths.)
fn settings(workspace_root: &Path) -> OsString {
    let cargo_home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo")));
    let mut flags = vec![format!("--remap-path-prefix={}=.", workspace_root.display())];
    if let Some(home) = cargo_home {
        flags.push(format!("--remap-path-prefix={}=cargo", home.display()));
    }
    // JSON's strings are TOML's basic strings.
    let flags: Vec<String> =
        flags.iter().map(|flag| serde_json::Value::from(flag.as_str()).to_string()).collect();
    format!("target.{TARGET}.rustflags=[{}]", flags.join(",")).into()
}

fn has_plugin_profile(workspace_root: &Path) -> Result<bool, Error> {
    let path = workspace_root.join("Cargo.toml");
    let text = std::fs::read_to_string(&path).map_err(Error::file(&path))?;
    let table: toml::Table = toml::from_str(&text)
        .map_err(|error| Error::Manifest { path, message: error.to_string() })?;
    Ok(table.get("profile").and_then(|profile| profile.get(PLUGIN_PROFILE)).is_some())
}

/// The cargo that runs us, where one does.
fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

fn not_run(program: &OsString) -> impl FnOnce(std::io::Error) -> Error {
    let program = program.to_string_lossy().into_owned();
    move |error| Error::NoCargo { program, error }
}
