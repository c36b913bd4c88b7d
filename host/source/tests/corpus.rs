//! Real manifests, as their projects publish them: all of them load, none of their objects is lost.
//!
//! The corpus lies beside the checkout and is no part of it; without it these tests say so.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;
use trimtab_source::{Directory, ProblemCode, Source, SourceError};

/// The corpus, if it is beside the checkout.
fn corpus() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    if path.is_dir() {
        return Some(path);
    }
    // Not through `eprintln!`, which the test runner keeps to itself.
    let _ = writeln!(std::io::stderr(), "skipped: there is no corpus at {}", path.display());
    None
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

/// How many objects a text declares, counted without a YAML parser: documents that have a `kind`
/// at their left edge, and for Lists their items instead.
fn count(text: &str) -> usize {
    let mut total = 0;
    for document in text.split("\n---") {
        let kind = document.lines().find_map(|line| line.strip_prefix("kind: "));
        let Some(kind) = kind else { continue };
        total += if kind.ends_with("List") {
            document
                .lines()
                .skip_while(|line| *line != "items:")
                .filter(|line| line.starts_with("- apiVersion:"))
                .count()
        } else {
            1
        };
    }
    total
}

#[test]
fn every_plain_folder_loads_with_every_object() {
    let Some(corpus) = corpus() else { return };
    let mut loaded = 0;
    for entry in fs::read_dir(corpus).unwrap() {
        let folder = entry.unwrap().path();
        if !folder.is_dir() || folder.ends_with("flux-kustomize-example") {
            continue;
        }
        let expected: usize =
            files(&folder).iter().map(|file| count(&fs::read_to_string(file).unwrap())).sum();
        let started = Instant::now();
        let revision = Directory::new("corpus", &folder, "default")
            .read()
            .unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let took = started.elapsed();
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        eprintln!("{name}: {} objects in {took:.1?}", revision.manifests.len());
        assert_eq!(revision.manifests.len(), expected, "{}", folder.display());
        assert!(expected > 0);
        for manifest in &revision.manifests {
            let value = trimtab_json::parse(&manifest.json).unwrap();
            assert_eq!(value.str_at(&["metadata", "name"]), Some(&*manifest.name));
            assert_eq!(value.str_at(&["kind"]), Some(&*manifest.gvk.kind));
            assert_eq!(value.str_at(&["apiVersion"]), Some(manifest.gvk.api_version().as_str()));
        }
        loaded += 1;
    }
    assert!(loaded > 0, "the corpus has no folder");
}

#[test]
fn a_repository_of_kustomizations_is_refused_by_each_of_them() {
    let Some(corpus) = corpus() else { return };
    let folder = corpus.join("flux-kustomize-example");
    let expected =
        files(&folder).iter().filter(|file| file.ends_with("kustomization.yaml")).count();
    match Directory::new("corpus", &folder, "default").read() {
        Err(SourceError::Refused(problems)) => {
            let kustomizations =
                problems.iter().filter(|problem| problem.code == ProblemCode::NotRendered).count();
            assert_eq!(kustomizations, expected);
        }
        other => panic!("{other:?}"),
    }
}
