//! Which source, and what to ignore in it: from flags, or from a configuration file.
//!
//! The file is YAML of the same family as grants. Its words are part of the product's contract:
//! docs/configuration.md.

use anyhow::Context as _;
use clap::Args;
use serde::Deserialize;
use serde_saphyr::Spanned;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trimtab_core::ignore::{Rule, Scoped};
use trimtab_core::plugin::KindPattern;

/// `apiVersion` of configuration files.
const API_VERSION: &str = "trimtab.dev/v1alpha1";
/// Namespace of namespaced objects that name none, where nothing else is said.
const DEFAULT_NAMESPACE: &str = "default";
/// Largest configuration file that is read: it is some pages of text.
const FILE_BYTES_AT_MOST: u64 = 1024 * 1024;

/// Which source.
#[derive(Clone, Debug, Args)]
pub(crate) struct SourceArgs {
    /// Where desired state comes from: a directory, or one file.
    #[arg(long, value_name = "PATH")]
    source: Option<PathBuf>,
    /// Configuration file that names the source instead, and what to ignore in it.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["source", "namespace"])]
    config: Option<PathBuf>,
    /// Namespace of namespaced objects that name none; `default` if nothing is said.
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// Ignore rule for every object: PATH, PATH by MANAGER, or by MANAGER. May be given several
    /// times.
    #[arg(long, value_name = "RULE")]
    ignore: Vec<String>,
}

/// A source to read.
#[derive(Clone, Debug)]
pub(crate) struct SourceConfig {
    /// Its name.
    pub(crate) name: String,
    /// A directory, or one file; `None` where the command needs no source.
    pub(crate) path: Option<PathBuf>,
    /// Namespace of namespaced objects that name none.
    pub(crate) namespace: String,
    /// What to ignore, in which objects.
    pub(crate) ignore: Vec<Scoped>,
}

impl SourceArgs {
    /// What was asked for.
    ///
    /// # Errors
    /// A rule or a file that cannot be read, with its place.
    pub(crate) fn read(&self) -> anyhow::Result<SourceConfig> {
        let mut config = match &self.config {
            Some(file) => read(file)?,
            None => SourceConfig {
                name: "source".into(),
                path: self.source.clone(),
                namespace: self.namespace.clone().unwrap_or_else(|| DEFAULT_NAMESPACE.into()),
                ignore: Vec::new(),
            },
        };
        for text in &self.ignore {
            let rule = Rule::parse(text, "--ignore").map_err(anyhow::Error::msg)?;
            config.ignore.push(Scoped::everywhere(rule));
        }
        Ok(config)
    }
}

impl SourceConfig {
    /// The source, to be read.
    ///
    /// # Errors
    /// None was named.
    pub(crate) fn directory(&self) -> anyhow::Result<trimtab_source::Directory> {
        let path = self.path.as_ref().context(
            "there is no source: give --source PATH, or --config FILE with a file that names one",
        )?;
        Ok(trimtab_source::Directory::new(&self.name, path, &self.namespace))
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Document {
    api_version: String,
    kind: String,
    sources: Vec<Source>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Source {
    name: String,
    path: PathBuf,
    namespace: Option<String>,
    #[serde(default)]
    ignore: Vec<Spanned<Ignore>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Ignore {
    #[serde(default)]
    paths: Vec<Spanned<String>>,
    #[serde(default)]
    managers: Vec<Spanned<String>>,
    #[serde(default)]
    kinds: Vec<String>,
    #[serde(default)]
    namespaces: Vec<String>,
    #[serde(default)]
    names: Vec<String>,
}

fn read(file: &Path) -> anyhow::Result<SourceConfig> {
    let failed = || format!("--config {}", file.display());
    let bytes = std::fs::metadata(file).with_context(failed)?.len();
    anyhow::ensure!(
        bytes <= FILE_BYTES_AT_MOST,
        "{}: larger than {FILE_BYTES_AT_MOST} bytes: this is no configuration",
        file.display()
    );
    let text = std::fs::read_to_string(file).with_context(failed)?;
    let mut config = parse(&text, &file.display().to_string()).map_err(anyhow::Error::msg)?;
    // As people write them: beside the file.
    config.path = config.path.map(|path| file.parent().unwrap_or(Path::new("")).join(path));
    Ok(config)
}

/// The configuration in this text; `origin` is for messages.
fn parse(text: &str, origin: &str) -> Result<SourceConfig, String> {
    let document: Document = serde_saphyr::from_str(text)
        .map_err(|error| format!("{origin}: not a configuration: {error}"))?;
    if document.api_version != API_VERSION || document.kind != "Config" {
        return Err(format!(
            "{origin}: apiVersion {:?} and kind {:?} are not {API_VERSION} Config, which this host reads",
            document.api_version, document.kind
        ));
    }
    let [source] = <[Source; 1]>::try_from(document.sources).map_err(|sources| {
        let names: Vec<&str> = sources.iter().map(|source| source.name.as_str()).collect();
        format!(
            "{origin}: {} sources ({}) and one host follows exactly one, so far: keep one here, and run a host for each other, with a state directory of its own",
            names.len(),
            names.join(", ")
        )
    })?;
    if source.name.is_empty() {
        return Err(format!("{origin}: the source's name is empty"));
    }
    let mut ignore = Vec::new();
    for entry in source.ignore {
        let place = format!("{origin}:{}", entry.referenced.line());
        ignore.extend(scoped(entry.value, origin, &place)?);
    }
    Ok(SourceConfig {
        name: source.name,
        path: Some(source.path),
        namespace: source.namespace.unwrap_or_else(|| DEFAULT_NAMESPACE.into()),
        ignore,
    })
}

/// The rules of one entry: each path, as far as one of the managers wrote it if some are named.
fn scoped(entry: Ignore, origin: &str, place: &str) -> Result<Vec<Scoped>, String> {
    if entry.paths.is_empty() && entry.managers.is_empty() {
        return Err(format!("{place}: an ignore entry names paths, managers, or both"));
    }
    let kinds: Vec<KindPattern> = entry
        .kinds
        .iter()
        .map(|kind| KindPattern::parse(kind).map_err(|why| format!("{place}: kinds: {why}")))
        .collect::<Result<_, _>>()?;
    let line = |text: &Spanned<String>| format!("{origin}:{}", text.referenced.line());
    let mut texts = Vec::new();
    for path in &entry.paths {
        if path.value.contains(char::is_whitespace) || path.value.is_empty() {
            return Err(format!(
                "{}: {:?} is no path: managers have a key of their own",
                line(path),
                path.value
            ));
        }
        match entry.managers.as_slice() {
            [] => texts.push((path.value.clone(), line(path))),
            managers => texts.extend(
                managers
                    .iter()
                    .map(|manager| (format!("{} by {}", path.value, manager.value), line(path))),
            ),
        }
    }
    if entry.paths.is_empty() {
        let by = |manager: &Spanned<String>| (format!("by {}", manager.value), line(manager));
        texts.extend(entry.managers.iter().map(by));
    }
    texts
        .into_iter()
        .map(|(text, place)| {
            Ok(Scoped {
                rule: Arc::new(Rule::parse(&text, &place)?),
                kinds: kinds.clone(),
                namespaces: entry.namespaces.clone(),
                names: entry.names.clone(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_core::identity::{GroupKind, ObjectKey};

    const FILE: &str = "apiVersion: trimtab.dev/v1alpha1
kind: Config
sources:
  - name: shop
    path: manifests
    namespace: shop
    ignore:
      - paths: [/spec/replicas]
        kinds: [Deployment.apps]
      - managers: [vpa-updater]
      - paths:
          - /data/a
          - /data/b
        managers: [sync]
        names: [settings]
";

    #[test]
    fn a_file_gives_its_source_and_its_rules_with_their_lines() {
        let config = parse(FILE, "c.yaml").unwrap();
        assert_eq!((config.name.as_str(), config.namespace.as_str()), ("shop", "shop"));
        assert_eq!(config.path.as_deref(), Some(Path::new("manifests")));
        let rules: Vec<String> =
            config.ignore.iter().map(|scoped| scoped.rule.to_string()).collect();
        assert_eq!(
            rules,
            [
                "/spec/replicas (c.yaml:8)",
                "by vpa-updater (c.yaml:10)",
                "/data/a by sync (c.yaml:12)",
                "/data/b by sync (c.yaml:13)",
            ]
        );
        let covered = |kind: &str| {
            let key = ObjectKey::new(GroupKind::new("apps", kind), "shop", "web");
            config.ignore.iter().filter(|scoped| scoped.covers(&key)).count()
        };
        assert_eq!((covered("Deployment"), covered("StatefulSet")), (2, 1));
    }

    #[test]
    fn every_mistake_names_the_file_and_what_is_wrong() {
        let second = "sources:\n  - {name: other, path: x}\n";
        let cases = [
            ("kind: Config", "kind: Grant", "which this host reads"),
            ("    path: manifests\n", "", "path"),
            ("sources:\n", second, "one host follows exactly one"),
            ("/spec/replicas", "spec/replicas", "c.yaml:8"),
            ("[/spec/replicas]", "['/a by b']", "a key of their own"),
            ("managers: [vpa-updater]", "names: [x]", "c.yaml:10"),
            ("Deployment.apps", "deployment", "is not a kind"),
        ];
        for (good, bad, expected) in cases {
            let error = parse(&FILE.replacen(good, bad, 1), "c.yaml").unwrap_err();
            assert!(error.contains("c.yaml") && error.contains(expected), "{error}");
        }
    }

    #[test]
    fn an_unknown_key_is_refused_with_its_line() {
        let error = parse(&FILE.replace("names:", "name:"), "c.yaml").unwrap_err();
        assert!(error.contains("line 15") && error.contains("name"), "{error}");
    }
}
