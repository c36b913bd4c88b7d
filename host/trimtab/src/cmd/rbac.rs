//! `trimtab rbac`: the least ClusterRole and Roles that plugins and their grants need.

use crate::cli::{ClusterArgs, runtime};
use crate::config::Config;
use crate::rbac::{Needs, Resource, Rule};
use crate::schemas::Schemas;
use crate::{grants, output};
use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trimtab_core::grant::{Grant, Power};
use trimtab_core::identity::GroupKind;
use trimtab_core::placing::Scope;
use trimtab_kube::{Kinds, Lookup};

const API_GROUP: &str = "rbac.authorization.k8s.io";

/// Print the least ClusterRole and Roles that plugins and their grants need, with their bindings.
///
/// Reads files alone, unless a cluster is named. The plural of a kind that is not Kubernetes' own
/// comes from its definition in the source, or from the cluster.
#[derive(Debug, Args)]
pub(crate) struct Rbac {
    /// Directory of plugin files (*.wasm).
    #[arg(long, value_name = "DIR")]
    plugins: PathBuf,
    /// Grant file, or folder of grant files.
    #[arg(long, value_name = "PATH")]
    grants: PathBuf,
    /// What wildcards are narrowed to: the kinds that this directory or file declares.
    #[arg(long, value_name = "PATH")]
    source: Option<PathBuf>,
    /// With what pruning takes, for every kind that --source declares; a --config says it itself.
    #[arg(long)]
    prune: bool,
    /// Namespace of the inventory; the host keeps what it made there.
    #[arg(long, value_name = "NAME", default_value = crate::made::NAMESPACE)]
    inventory_namespace: String,
    /// Configuration file whose sources are meant instead; those that act as ServiceAccounts need
    /// to be allowed that.
    #[arg(long, value_name = "FILE", conflicts_with = "source")]
    config: Option<PathBuf>,
    /// Whom the roles are bound to; also the name of the roles.
    #[arg(long, value_name = "NAME", default_value = "trimtab")]
    service_account: String,
    /// Namespace of the ServiceAccount.
    #[arg(short, long, value_name = "NAME", default_value = "trimtab-system")]
    namespace: String,
    /// Ask this cluster for plurals that are not known otherwise.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// YAML documents, or one JSON List.
    #[arg(short, long, value_enum, default_value = "yaml")]
    output: Form,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Form {
    Yaml,
    Json,
}

impl Rbac {
    pub(crate) fn run(self) -> anyhow::Result<u8> {
        let grants = grants::read(&self.grants).context("the grants cannot be used")?;
        let powers = powers(&self.plugins, &grants)?;
        let config = match (&self.source, &self.config) {
            (_, Some(file)) => crate::config::read(file)?,
            (Some(path), None) => Config::of_directory(path),
            (None, None) => Config::default(),
        };
        let mut manifests = Vec::new();
        for (source, revision) in crate::sources::read_once(&config.sources)? {
            let wrong = || format!("source {}", source.name);
            manifests.extend(revision.with_context(wrong)?.manifests);
        }
        let schemas = Schemas::of(manifests.iter());
        let declared: Option<BTreeSet<GroupKind>> = (!config.sources.is_empty())
            .then(|| manifests.iter().map(|it| it.gvk.group_kind()).collect());
        let served = self.served()?;
        let resources = |kind: &GroupKind| {
            schemas.resource(kind).or_else(|| served.as_deref().and_then(|kinds| of(kinds, kind)))
        };
        let mut needs = Needs::of(&powers, declared.as_ref(), &resources);
        if powers.iter().any(|power| power.grant.is_some()) {
            needs.keep_inventory(&self.inventory_namespace);
        }
        let prunes = self.prune || config.sources.iter().any(|source| source.terms.prune);
        if let Some(declared) = declared.as_ref().filter(|_| prunes) {
            needs.prune(declared, &resources);
        }
        let accounts = || config.sources.iter().map(|source| source.terms.acts_as.as_deref());
        let all = !config.sources.is_empty() && accounts().all(|account| account.is_some());
        needs.act_as(accounts().flatten(), all);
        if !needs.unknown.is_empty() {
            let kinds: Vec<String> = needs.unknown.iter().map(ToString::to_string).collect();
            bail!(
                "the plural of {} is not known: give --source with the definition, or a cluster that serves it (--kubeconfig)",
                kinds.join(", ")
            );
        }
        for warning in &needs.warnings {
            eprintln!("trimtab: {warning}");
        }
        self.print(&self.documents(&needs))?;
        Ok(0)
    }

    /// What the cluster serves, if one was named.
    fn served(&self) -> anyhow::Result<Option<Arc<Kinds>>> {
        if self.kubeconfig.is_none() && self.context.is_none() {
            return Ok(None);
        }
        let cluster = ClusterArgs {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
            service_account: None,
        };
        runtime()?.block_on(async {
            let server = super::connect(&cluster).await?;
            let (store, _events) =
                trimtab_kube::Store::start(server, trimtab_kube::Options::default());
            store.refresh_discovery().await.context("the cluster does not say what it serves")?;
            store.kinds().context("the cluster does not say what it serves").map(Some)
        })
    }

    fn documents(&self, needs: &Needs) -> Vec<Value> {
        let mut documents = Vec::new();
        documents.extend(self.role("ClusterRole", None, &needs.cluster()));
        for (namespace, rules) in needs.namespaces() {
            documents.extend(self.role("Role", Some(namespace), &rules));
        }
        documents
    }

    /// A role and its binding.
    fn role(&self, kind: &str, namespace: Option<&str>, rules: &[Rule]) -> [Value; 2] {
        let mut metadata = json!({"name": self.service_account});
        if let Some(namespace) = namespace {
            metadata["namespace"] = namespace.into();
        }
        let version = format!("{API_GROUP}/v1");
        [
            json!({"apiVersion": version, "kind": kind, "metadata": metadata, "rules": rules}),
            json!({
                "apiVersion": version,
                "kind": format!("{kind}Binding"),
                "metadata": metadata,
                "roleRef": {"apiGroup": API_GROUP, "kind": kind, "name": self.service_account},
                "subjects": [{
                    "kind": "ServiceAccount",
                    "name": self.service_account,
                    "namespace": self.namespace,
                }],
            }),
        ]
    }

    fn print(&self, documents: &[Value]) -> anyhow::Result<()> {
        let text = match self.output {
            Form::Json => {
                let list = json!({"apiVersion": "v1", "kind": "List", "items": documents});
                serde_json::to_string_pretty(&list)? + "\n"
            }
            Form::Yaml => {
                let texts: Result<Vec<String>, _> =
                    documents.iter().map(serde_saphyr::to_string).collect();
                texts?.join("---\n")
            }
        };
        output::write(&text)
    }
}

/// Each plugin of the directory with its grant; files that are no plugin are named and left out.
fn powers(directory: &Path, grants: &[Grant]) -> anyhow::Result<Vec<Power>> {
    let wrong = || format!("--plugins {}", directory.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).with_context(wrong)? {
        let file = entry.with_context(wrong)?.path();
        let hidden = file.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if !hidden && file.extension().is_some_and(|extension| extension == "wasm") {
            files.push(file);
        }
    }
    files.sort();
    let mut powers = Vec::new();
    for file in &files {
        let inspection = match trimtab_wasm::inspect(&super::plugin::read(file)?) {
            Ok(inspection) => inspection,
            Err(error) => {
                eprintln!("trimtab: {} is left out, it is refused: {error}", file.display());
                continue;
            }
        };
        let plugin = inspection.identity();
        let own = |grant: &&Grant| grant.plugin == plugin.name && grant.digest == plugin.digest;
        let grant = grants.iter().find(own).cloned();
        if grant.is_none() {
            eprintln!("trimtab: plugin {plugin} has no grant: the rules let it observe");
        }
        // A policy is shown what others read, and writes nothing.
        if inspection.reconciles() {
            powers.push(Power { plugin, manifest: inspection.manifest, grant });
        }
    }
    if powers.is_empty() {
        bail!("{}: there is no plugin file (*.wasm) in it", wrong());
    }
    Ok(powers)
}

fn of(kinds: &Kinds, kind: &GroupKind) -> Option<Resource> {
    match kinds.preferred(kind) {
        Lookup::Found(served) => {
            let scope = if served.namespaced { Scope::Namespaced } else { Scope::Cluster };
            Some((served.plural.to_string(), scope))
        }
        _ => None,
    }
}
