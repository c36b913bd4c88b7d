//! A new plugin, in a folder of its own: made, built, tested, broken, tested again.

use crate::project;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trimtab_author::{BuildOptions, Error, Sdk, Sort, TestReport, build, create, test};

/// A new plugin in a folder that shares its results with the other tests of this file.
fn new_plugin() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let crate_dir = dir.path().join("keeper");
    create(&crate_dir, "keeper", &Sdk::Path(project().join("sdk")), Sort::Reconciler).unwrap();
    // What is downloaded already, so that the test needs no network.
    fs::copy(project().join("Cargo.lock"), crate_dir.join("Cargo.lock")).unwrap();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("new-plugin");
    fs::create_dir(crate_dir.join(".cargo")).unwrap();
    let config = format!("[build]\ntarget-dir = {:?}\n", target.display().to_string());
    fs::write(crate_dir.join(".cargo/config.toml"), config).unwrap();
    (dir, crate_dir)
}

fn run(crate_dir: &Path) -> (TestReport, String) {
    let mut out = Vec::new();
    let report = test(crate_dir, &|_| Arc::default(), &mut out).unwrap();
    (report, String::from_utf8(out).unwrap())
}

fn edit(file: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(file).unwrap();
    assert!(text.contains(from), "{from}");
    fs::write(file, text.replace(from, to)).unwrap();
}

#[test]
fn a_new_plugin_builds_and_its_cases_fail_once_its_logic_is_broken() {
    let (_dir, crate_dir) = new_plugin();
    let built = build(&crate_dir, &BuildOptions::default()).unwrap();
    assert_eq!(built.file, crate_dir.join("keeper.wasm"));
    let size = fs::metadata(&built.file).unwrap().len();
    assert!(size < 128 << 10, "its file has {size} bytes");

    let (report, out) = run(&crate_dir);
    assert!(report.passed(), "{out}");
    assert!(out.ends_with("4 cases, 4 passed, 0 failed\n"), "{out}");

    edit(&crate_dir.join("src/lib.rs"), "if immutable", "if !immutable");
    let (report, out) = run(&crate_dir);
    assert_eq!(report.failed(), 2, "{out}");
    assert!(out.contains("actions: expected [recreate], found [apply-desired]"), "{out}");

    // A panic costs its case, and its text says where.
    let broken = "if { panic!(\"here I end\") }";
    edit(&crate_dir.join("src/lib.rs"), "if !immutable", broken);
    let (_, out) = run(&crate_dir);
    assert!(out.contains("decide trapped: panicked at"), "{out}");
    assert!(out.contains("here I end"), "{out}");

    // The messages that an author sees first.
    let cargo_toml = crate_dir.join("Cargo.toml");
    edit(&cargo_toml, "reads = []", "raeds = []");
    let message = build(&crate_dir, &BuildOptions::default()).unwrap_err().to_string();
    assert!(message.contains("raeds") && message.contains("line 1"), "{message}");
    edit(&cargo_toml, "raeds = []", "");
    edit(&cargo_toml, "[\"ConfigMap\"]", "[\"configmap\"]");
    let message = build(&crate_dir, &BuildOptions::default()).unwrap_err().to_string();
    assert!(message.contains("claims") && message.contains("not a kind"), "{message}");
}

#[test]
fn a_new_plugins_own_test_holds_natively() {
    let (_dir, crate_dir) = new_plugin();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let native = |crate_dir: &Path| {
        let output = std::process::Command::new(&cargo)
            .args(["test", "--release", "--quiet", "--lib"])
            .current_dir(crate_dir)
            .output()
            .unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (passed, stderr) = native(&crate_dir);
    assert!(passed, "{stderr}");
    edit(&crate_dir.join("src/lib.rs"), "if immutable", "if !immutable");
    assert!(!native(&crate_dir).0, "the logic is broken and its test passes");
}

#[test]
fn a_crate_without_cases_is_told_to_write_one() {
    let dir = tempfile::tempdir().unwrap();
    let error = test(dir.path(), &|_| Arc::default(), &mut Vec::new()).unwrap_err();
    assert!(matches!(error, Error::NoCases(_)), "{error}");
}
