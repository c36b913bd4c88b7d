//! `trimtab plugin inspect`: what a file says of itself, what it would need, and what a person
//! should look at before granting it. Nothing is run.

use super::plugin::read;
use crate::cli::OutputArgs;
use crate::output;
use crate::rbac;
use crate::signing::{self, Keys};
use anyhow::Context as _;
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;
use trimtab_core::decision::ActionKind;
use trimtab_core::plugin::{KindPattern, PluginManifest};
use trimtab_wasm::Inspection;

#[derive(Debug, Args)]
pub(crate) struct Inspect {
    /// The plugin file.
    file: PathBuf,
    /// Say which of these keys vouches for it: a file of minisign or OpenSSH public keys, or a
    /// folder of them.
    #[arg(long, value_name = "PATH")]
    keys: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

/// What `inspect` answers.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Inspected {
    file: String,
    name: String,
    version: String,
    description: String,
    digest: String,
    /// With `--keys`: whose key vouches for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    signer: Option<String>,
    /// With `--keys`: why none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    signature_problem: Option<String>,
    size_bytes: usize,
    wit: String,
    claims: Vec<String>,
    reads: Vec<String>,
    actions: Vec<String>,
    imports: Vec<String>,
    exports: Vec<String>,
    /// What the host's account needs once all of this is granted.
    rbac: Vec<rbac::Rule>,
    look_at: Vec<String>,
}

impl Inspect {
    pub(crate) fn run(self) -> anyhow::Result<u8> {
        let bytes = read(&self.file)?;
        let inspection = trimtab_wasm::inspect(&bytes)
            .with_context(|| format!("{} is refused", self.file.display()))?;
        let signed = match &self.keys {
            None => None,
            Some(path) => {
                let keys = Keys::read(path).context("--keys")?;
                Some(signing::verify(&self.file, &bytes, &keys).map(|signer| signer.name.clone()))
            }
        };
        let (signer, signature_problem) = match signed {
            None => (None, None),
            Some(Ok(name)) => (Some(name), None),
            Some(Err(problem)) => (None, Some(problem)),
        };
        let manifest = &inspection.manifest;
        let answer = Inspected {
            file: self.file.display().to_string(),
            name: manifest.name.clone(),
            version: manifest.version.clone(),
            description: manifest.description.clone(),
            digest: inspection.digest.to_string(),
            signer,
            signature_problem,
            size_bytes: inspection.size,
            wit: manifest.wit.clone(),
            claims: manifest.claims.iter().map(ToString::to_string).collect(),
            reads: manifest.reads.iter().map(ToString::to_string).collect(),
            actions: manifest.actions.iter().map(ToString::to_string).collect(),
            imports: inspection.imports.clone(),
            exports: inspection.exports.clone(),
            // A policy is given what it sees; the host needs nothing more for it.
            rbac: if inspection.reconciles() { rbac::of_manifest(manifest) } else { Vec::new() },
            look_at: look_at(manifest)
                .into_iter()
                .chain(policy_mark(&inspection))
                .chain(wasi_mark(&inspection))
                .collect(),
        };
        output::print(self.output.output, &answer, || answer.table())?;
        Ok(0)
    }
}

impl Inspected {
    fn table(&self) -> String {
        let list = |items: &[String]| {
            if items.is_empty() { "none".to_owned() } else { items.join(", ") }
        };
        let row = |name: &str, value: String| vec![name.to_owned(), value];
        let mut rows = vec![
            row("plugin", format!("{} {}", self.name, self.version)),
            row("description", self.description.clone()),
            row("digest", self.digest.clone()),
        ];
        match (&self.signer, &self.signature_problem) {
            (Some(name), _) => rows.push(row("signer", name.clone())),
            (_, Some(problem)) => rows.push(row("signer", format!("NONE: {problem}"))),
            _ => {
                rows.push(row("signer", "not looked at: --keys PATH says whose key vouches".into()))
            }
        }
        rows.extend([
            row("size", format!("{} bytes", self.size_bytes)),
            row("WIT", format!("trimtab:plugin@{}", self.wit)),
            row("claims", list(&self.claims)),
            row("reads", list(&self.reads)),
            row("actions", list(&self.actions)),
            row("imports", list(&self.imports)),
            row("exports", list(&self.exports)),
        ]);
        let more = |name: &'static str, lines: Vec<String>| {
            lines.into_iter().enumerate().map(move |(index, line)| {
                vec![if index == 0 { name.to_owned() } else { String::new() }, line]
            })
        };
        rows.extend(more("RBAC, all granted", self.rbac.iter().map(ToString::to_string).collect()));
        rows.extend(more("LOOK AT", self.look_at.clone()));
        output::table(&rows)
    }
}

/// Kinds that decide about more than themselves: group, kinds (none: the whole group), and why.
const WEIGHTY: [(&str, &[&str], &str); 8] = [
    ("", &["Secret"], "it sees and sets passwords, tokens and keys"),
    ("", &["PersistentVolume"], "a volume opens a path or device outside any namespace"),
    ("", &["Namespace"], "its labels say what its pods may do, and its end takes everything in it"),
    ("certificates.k8s.io", &[], "requests and bundles are about who somebody is"),
    ("rbac.authorization.k8s.io", &[], "who sets roles and bindings decides who may do what"),
    ("admissionregistration.k8s.io", &[], "webhooks and policies decide what anybody can write"),
    ("apiextensions.k8s.io", &[], "a definition's change or end touches every object of its kind"),
    ("apiregistration.k8s.io", &[], "an API service receives requests with everybody's words"),
];

/// WASI is for other languages' toolchains; a plugin that needs none is better without.
fn wasi_mark(inspection: &Inspection) -> Option<String> {
    let names: Vec<&str> = inspection.wasi().collect();
    (!names.is_empty()).then(|| {
        format!(
            "imports WASI ({}): closed, and served only under a grant with `wasi: closed`",
            names.join(", ")
        )
    })
}

/// A policy stops what it denies, and under a grant sees Secrets that it claims.
fn policy_mark(inspection: &Inspection) -> Option<String> {
    inspection.reviews().then(|| {
        "reviews as a policy: without a grant it observes; with one it may stop what it claims from being applied".to_owned()
    })
}

/// What a person should look at before granting all of this.
fn look_at(manifest: &PluginManifest) -> Vec<String> {
    let mut marks = Vec::new();
    for (verb, patterns) in [("claims", &manifest.claims), ("reads", &manifest.reads)] {
        for pattern in patterns {
            if *pattern == KindPattern::Any {
                marks.push(format!("{verb} *: every kind, Secrets, RBAC and webhooks among them"));
                continue;
            }
            let weighty = WEIGHTY.iter().filter(|(group, kinds, _)| match pattern {
                KindPattern::Any => true,
                KindPattern::Group(name) => name == group,
                KindPattern::Exact(kind) => {
                    *kind.group == **group && (kinds.is_empty() || kinds.contains(&&*kind.kind))
                }
            });
            marks.extend(weighty.map(|(_, _, why)| format!("{verb} {pattern}: {why}")));
        }
    }
    for action in &manifest.actions {
        let why = match action {
            ActionKind::Delete => "removes objects",
            ActionKind::Recreate => "removes objects and makes them anew",
            ActionKind::Adopt => "takes fields away from who owns them",
            ActionKind::ApplyContent => "writes content that the plugin makes up",
            ActionKind::PatchStatus => "writes status that the plugin makes up",
            ActionKind::RemoveFields => "removes fields that the source does not state",
            _ => continue,
        };
        marks.push(format!("action {action}: {why}"));
    }
    marks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(claims: &[&str], actions: &[ActionKind]) -> Vec<String> {
        look_at(&PluginManifest {
            name: "x".into(),
            version: "0.1.0".into(),
            description: String::new(),
            wit: "0.1.0".into(),
            claims: claims.iter().map(|text| KindPattern::parse(text).unwrap()).collect(),
            reads: vec![],
            actions: actions.iter().copied().collect(),
        })
    }

    #[test]
    fn what_decides_about_more_than_itself_is_marked_and_the_rest_is_not() {
        assert!(marks(&["Deployment.apps", "ConfigMap"], &[ActionKind::ApplyDesired]).is_empty());
        for claim in [
            "*",
            "Secret",
            "ClusterRole.rbac.authorization.k8s.io",
            "*.rbac.authorization.k8s.io",
            "ValidatingWebhookConfiguration.admissionregistration.k8s.io",
            "CustomResourceDefinition.apiextensions.k8s.io",
            "CertificateSigningRequest.certificates.k8s.io",
            "PersistentVolume",
            "Namespace",
        ] {
            let marks = marks(&[claim], &[]);
            assert!(marks.len() == 1 && marks[0].contains(claim), "{claim}: {marks:?}");
        }
        assert_eq!(marks(&["ConfigMap"], &[ActionKind::Delete, ActionKind::Adopt]).len(), 2);
    }
}
