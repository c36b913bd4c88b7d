//! Folders that a generator reads: their YAML is material, not manifests. Such a folder is refused
//! with all that is beneath it, so that nothing of it is applied as it stands.
//!
//! Rendering, once there is some, has its place here: between a source and desired.

use crate::error::{Fault, ProblemCode};

/// The generator whose material a folder holds, if it does: the name that gives it away, and the
/// refusal. `names` are the folder's own.
pub(crate) fn of_folder<'n>(names: impl Iterator<Item = &'n str>) -> Option<(&'n str, Fault)> {
    // A chart's folder may hold a kustomization that wraps it, and so on: the first counts.
    names.filter_map(|name| Some((name, of_name(name)?))).min_by_key(|(_, kind)| *kind).map(
        |(name, kind)| {
            let (message, remedy) = words(kind);
            (name, Fault::new(ProblemCode::NotRendered, 1, message, remedy).whole_file())
        },
    )
}

/// The refusal of a kustomization in whatever file it stands.
pub(crate) fn kustomization(line: u32) -> Fault {
    let (message, remedy) = words(Kind::Kustomize);
    Fault::new(ProblemCode::NotRendered, line, message, remedy)
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Chart,
    Kustomize,
    Helmfile,
    Kpt,
    Tanka,
    Jsonnet,
    Cue,
}

fn of_name(name: &str) -> Option<Kind> {
    Some(match name {
        "Chart.yaml" => Kind::Chart,
        "kustomization.yaml" | "kustomization.yml" | "Kustomization" => Kind::Kustomize,
        "helmfile.yaml" | "helmfile.yml" | "helmfile.yaml.gotmpl" | "helmfile.d" => Kind::Helmfile,
        "Kptfile" => Kind::Kpt,
        "tkrc.yaml" => Kind::Tanka,
        "jsonnetfile.json" => Kind::Jsonnet,
        "cue.mod" => Kind::Cue,
        _ if name.starts_with('.') => return None,
        _ if name.ends_with(".jsonnet") || name.ends_with(".libsonnet") => Kind::Jsonnet,
        _ if name.ends_with(".cue") => Kind::Cue,
        _ => return None,
    })
}

fn words(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Chart => (
            "a Helm chart is not rendered by this version",
            "render it (helm template NAME FOLDER > objects.yaml) and point the source at the \
             result",
        ),
        Kind::Kustomize => (
            "a kustomization is not rendered by this version",
            "render it (kubectl kustomize FOLDER > objects.yaml) and point the source at the \
             result",
        ),
        Kind::Helmfile => (
            "a helmfile is not rendered by this version",
            "render it (helmfile template > objects.yaml) and point the source at the result",
        ),
        Kind::Kpt => (
            "a kpt package's functions are not run by this version",
            "render it (kpt fn render FOLDER -o unwrap > objects.yaml) and point the source at \
             the result",
        ),
        Kind::Tanka => (
            "a Tanka project is not rendered by this version",
            "render it (tk export FOLDER ENVIRONMENT) and point the source at the result",
        ),
        Kind::Jsonnet => (
            "Jsonnet is not rendered by this version",
            "render it (jsonnet -y FILE > objects.yaml) and point the source at the result",
        ),
        Kind::Cue => (
            "CUE is not rendered by this version",
            "render it (cue export --out yaml > objects.yaml) and point the source at the result",
        ),
    }
}
