//! `trimtab policy`: what a policy says of manifests, in the sandbox that production uses, with no
//! cluster and no host.

use crate::cli::OutputArgs;
use crate::output;
use crate::schemas::Schemas;
use crate::timestamp::now_ms;
use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use serde::Serialize;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trimtab_core::identity::ObjectKey;
use trimtab_core::object::Manifest;
use trimtab_core::placing::Scope;
use trimtab_core::policy::{Point, Reason, Request, Verdict, Vouched};
use trimtab_wasm::{Plugin, Sandbox, SandboxOptions};

/// Exit status where something is denied.
const DENIED: u8 = 1;

/// What policies say of manifests.
#[derive(Debug, Subcommand)]
pub(crate) enum Policy {
    /// Run a policy on files. Exit status 1: it denies something.
    Test(Test),
}

#[derive(Debug, Args)]
pub(crate) struct Test {
    /// The policy's file.
    #[arg(long, value_name = "FILE")]
    policy: PathBuf,
    /// Its configuration: a YAML or JSON file that holds what a grant has under `config`.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Namespace of objects that state none.
    #[arg(short, long, value_name = "NAME", default_value = "default")]
    namespace: String,
    /// The source that the objects count as.
    #[arg(long, value_name = "NAME", default_value = "test")]
    source: String,
    /// Who the commit says its author is.
    #[arg(long, value_name = "NAME")]
    author: Option<String>,
    /// Names of signers that vouch for the objects, the head commit's first.
    #[arg(long = "signer", value_name = "NAME", value_delimiter = ',')]
    signers: Vec<String>,
    /// Manifests: files, folders of *.yaml, *.yml and *.json, or - for standard input.
    #[arg(required = true, value_name = "MANIFESTS")]
    manifests: Vec<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

/// The answer.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    policy: String,
    digest: String,
    objects: Vec<Reviewed>,
    denied: usize,
    warned: usize,
    allowed: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Reviewed {
    object: String,
    origin: String,
    /// `allow`, `warn`, `deny`, or `not-covered`: the policy does not claim the kind.
    verdict: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasons: Vec<Why>,
}

#[derive(Serialize)]
struct Why {
    control: String,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
}

impl Policy {
    pub(crate) fn run(self) -> anyhow::Result<u8> {
        match self {
            Self::Test(test) => test.run(),
        }
    }
}

impl Test {
    fn run(self) -> anyhow::Result<u8> {
        let bytes = super::plugin::read(&self.policy)?;
        let sandbox = Sandbox::new(SandboxOptions {
            compiler: crate::cli::compiler()?,
            ..SandboxOptions::default()
        })?;
        let plugin = Plugin::load_with_wasi(&bytes, &sandbox)
            .with_context(|| format!("{} is refused", self.policy.display()))?;
        if !plugin.inspection().reviews() {
            bail!("{} exports no policy: it is a reconciler", self.policy.display());
        }
        let configuration = self.configuration()?;
        let mut manifests = Vec::new();
        for path in &self.manifests {
            manifests.extend(read(path, &self.namespace)?);
        }
        if manifests.is_empty() {
            bail!("there is no object in {}", shown(&self.manifests));
        }
        let vouched = Arc::new(Vouched {
            author: self.author.as_deref().map(Into::into),
            signers: self.signers.iter().map(|name| name.as_str().into()).collect(),
        });
        let schemas = Schemas::of(manifests.iter());
        let mut objects = Vec::new();
        for manifest in &manifests {
            let request = self.request(manifest, &schemas, &vouched);
            objects.push(review(&plugin, &request, manifest, &configuration)?);
        }
        let count = |word: &str| objects.iter().filter(|it| it.verdict == word).count();
        let answer = Answer {
            policy: format!("{} {}", plugin.identity().name, plugin.identity().version),
            digest: plugin.identity().digest.to_string(),
            denied: count("deny"),
            warned: count("warn"),
            allowed: count("allow"),
            objects,
        };
        output::print(self.output.output, &answer, || answer.table())?;
        Ok(if answer.denied > 0 { DENIED } else { 0 })
    }

    fn configuration(&self) -> anyhow::Result<Vec<u8>> {
        let Some(file) = &self.config else { return Ok(b"null".to_vec()) };
        let text = std::fs::read_to_string(file)
            .with_context(|| format!("cannot read {}", file.display()))?;
        let value: serde_json::Value = serde_saphyr::from_str(&text)
            .with_context(|| format!("{} is neither YAML nor JSON", file.display()))?;
        Ok(value.to_string().into_bytes())
    }

    /// The object as it enters. Its scope is as Kubernetes has its own kinds, as definitions among the
    /// manifests say of theirs, and else as the manifest looks.
    fn request(&self, manifest: &Manifest, schemas: &Schemas, vouched: &Arc<Vouched>) -> Request {
        let gvk = manifest.gvk.clone();
        let namespace = match schemas.scope(&gvk, manifest.namespace.is_some()) {
            Scope::Cluster => "",
            Scope::Namespaced => manifest.namespace.as_deref().unwrap_or(&self.namespace),
        };
        Request {
            point: Point::Enters,
            key: ObjectKey::new(gvk.group_kind(), namespace, &manifest.name),
            gvk,
            desired: Some(manifest.json.clone()),
            live: None,
            change: None,
            source: self.source.as_str().into(),
            revision: "".into(),
            origin: Some(manifest.origin.clone()),
            vouched: vouched.clone(),
            now_ms: now_ms(),
        }
    }
}

fn review(
    plugin: &Plugin,
    request: &Request,
    manifest: &Manifest,
    configuration: &[u8],
) -> anyhow::Result<Reviewed> {
    let (verdict, reasons) = match plugin.manifest().claim_for(&request.key.group_kind) {
        None => ("not-covered", Vec::new()),
        Some(_) => match plugin.review(request, configuration) {
            Ok(Verdict::Allow) => ("allow", Vec::new()),
            Ok(Verdict::Warn(reasons)) => ("warn", reasons),
            Ok(Verdict::Deny(reasons)) => ("deny", reasons),
            Err(fault) => bail!("{} ({}): the policy {fault}", request.key, manifest.origin),
        },
    };
    let why = |Reason { control, message, path }: Reason| Why { control, message, path };
    Ok(Reviewed {
        object: request.key.to_string(),
        origin: manifest.origin.to_string(),
        verdict,
        reasons: reasons.into_iter().map(why).collect(),
    })
}

/// The manifests in a file, in the files of a folder, or on standard input.
fn read(path: &Path, namespace: &str) -> anyhow::Result<Vec<Manifest>> {
    if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).context("cannot read standard input")?;
        return Ok(trimtab_source::read_documents("-", &bytes, namespace)?);
    }
    let metadata =
        std::fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
    if metadata.is_dir() {
        use trimtab_source::Source as _;
        let directory = trimtab_source::Directory::new("test", path, namespace);
        return Ok(directory.read()?.manifests);
    }
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(trimtab_source::read_documents(&path.display().to_string(), &bytes, namespace)?)
}

fn shown(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    paths.join(", ")
}

impl Answer {
    fn table(&self) -> String {
        let mut rows = vec![
            ["VERDICT", "OBJECT", "ORIGIN", "CONTROL", "PATH", "MESSAGE"]
                .map(String::from)
                .to_vec(),
        ];
        for object in &self.objects {
            let head = [object.verdict.to_owned(), object.object.clone(), object.origin.clone()];
            if object.reasons.is_empty() {
                rows.push(head.to_vec());
            }
            for why in &object.reasons {
                let path = why.path.clone().filter(|path| !path.is_empty());
                let why =
                    [why.control.clone(), path.unwrap_or_else(|| "-".into()), why.message.clone()];
                rows.push(head.iter().cloned().chain(why).collect());
            }
        }
        format!(
            "{}{}: {} denied, {} warned, {} allowed\n",
            output::table(&rows),
            self.policy,
            self.denied,
            self.warned,
            self.allowed
        )
    }
}
