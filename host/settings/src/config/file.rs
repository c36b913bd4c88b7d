//! The configuration file: YAML of the same family as grants.

use super::git::Git;
use super::ignore::{Ignore, scoped};
use super::{Config, Place, SourceConfig, checked_name, duration};
use crate::unreadable;
use anyhow::Context as _;
use serde::Deserialize;
use serde_saphyr::Spanned;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trimtab_core::approval;
use trimtab_core::denial::Denial;
use trimtab_core::fields::FieldPath;
use trimtab_core::grant::Mode;
use trimtab_core::plugin::KindPattern;
use trimtab_core::prune::{Limits, Rules};
use trimtab_core::redact::Sensitive;
use trimtab_core::terms::{Account, SourceTerms, is_label};

/// `apiVersion` of configuration files.
const API_VERSION: &str = "trimtab.dev/v1alpha1";
/// Largest configuration file that is read: it is some pages of text.
const FILE_BYTES_AT_MOST: u64 = 1024 * 1024;
/// What `targetNamespace` says where it confines to none.
const ANY_NAMESPACE: &str = "any";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Document {
    api_version: String,
    kind: String,
    sources: Vec<Spanned<Source>>,
    #[serde(default)]
    redact: Vec<Spanned<Redact>>,
}

/// Values that are hidden as a Secret's are.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Redact {
    #[serde(default)]
    kinds: Vec<Spanned<String>>,
    paths: Vec<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Source {
    name: Spanned<String>,
    path: Option<Spanned<PathBuf>>,
    git: Option<Spanned<Git>>,
    interval: Option<Spanned<String>>,
    #[serde(default)]
    mode: ModeWord,
    namespace: Option<Spanned<String>>,
    target_namespace: Option<Spanned<String>>,
    service_account: Option<Spanned<String>>,
    #[serde(default)]
    prune: bool,
    deletion: Option<Spanned<DeletionWords>>,
    #[serde(default)]
    approval: Vec<Spanned<ApprovalWord>>,
    #[serde(default)]
    depends_on: Vec<Spanned<String>>,
    #[serde(default)]
    ignore: Vec<Spanned<Ignore>>,
}

/// `mode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(super) enum ModeWord {
    /// Report what would be done.
    Observe,
    /// Write, as far as plugins are granted.
    #[default]
    Enforce,
    /// Do not look at the source's objects.
    Suspend,
}

impl ModeWord {
    pub(super) fn mode(self) -> Mode {
        match self {
            // Whoever ends a suspension says which it is to be.
            ModeWord::Observe => Mode::Observe,
            ModeWord::Enforce | ModeWord::Suspend => Mode::Enforce,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct DeletionWords {
    percent_at_most: Option<u32>,
    objects_at_most: Option<usize>,
    #[serde(default)]
    allow: Vec<Spanned<String>>,
}

/// What waits for a person: a word, or `moreThan: NUMBER`.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum ApprovalWord {
    Word(String),
    MoreThan(MoreThan),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct MoreThan {
    more_than: u32,
}

/// Where a text stands: for messages, and for the files that it names.
pub(super) struct At<'a> {
    origin: &'a str,
    folder: &'a Path,
}

impl At<'_> {
    /// What is wrong, with file and line.
    pub(super) fn wrong<T>(&self, with: &Spanned<T>, why: &str) -> String {
        format!("{}:{}: {why}", self.origin, with.referenced.line())
    }

    /// A file as people name it: beside the configuration.
    pub(super) fn beside(&self, file: PathBuf) -> PathBuf {
        self.folder.join(file)
    }
}

/// Reads a file.
///
/// # Errors
/// It cannot be read, or what is wrong in it, with the line.
pub fn read(file: &Path) -> anyhow::Result<Config> {
    let failed = || format!("--config {}", file.display());
    let bytes = std::fs::metadata(file).with_context(failed)?.len();
    anyhow::ensure!(
        bytes <= FILE_BYTES_AT_MOST,
        "{}: larger than {FILE_BYTES_AT_MOST} bytes: this is no configuration",
        file.display()
    );
    let text = std::fs::read_to_string(file).with_context(failed)?;
    parse(&text, file).map_err(anyhow::Error::msg)
}

/// The configuration in this text, as if it stood in `file`.
///
/// # Errors
/// What is wrong in it, with the line.
pub fn parse(text: &str, file: &Path) -> Result<Config, String> {
    let origin = &*file.to_string_lossy();
    let at = At { origin, folder: file.parent().unwrap_or(Path::new("")) };
    let document: Document = serde_saphyr::from_str(text)
        .map_err(|error| unreadable(&error, origin, "a configuration"))?;
    if document.api_version != API_VERSION || document.kind != "Config" {
        return Err(format!(
            "{origin}: apiVersion {:?} and kind {:?} are not {API_VERSION} Config, which this host reads",
            document.api_version, document.kind
        ));
    }
    if document.sources.is_empty() {
        return Err(format!("{origin}: there is no source in it: name one at least"));
    }
    let sources: Result<Vec<SourceConfig>, String> =
        document.sources.into_iter().map(|source| of(source, &at)).collect();
    let config = Config::of(sources?).map_err(|why| format!("{origin}: {why}"))?;
    let redact: Result<Vec<Sensitive>, String> =
        document.redact.iter().map(|entry| sensitive(entry, &at)).collect();
    Ok(Config { redact: redact?, ..config })
}

fn sensitive(entry: &Spanned<Redact>, at: &At<'_>) -> Result<Sensitive, String> {
    let Redact { kinds, paths } = &entry.value;
    if paths.is_empty() {
        return Err(at.wrong(entry, "an entry of redact names one path at least"));
    }
    let kind = |text: &Spanned<String>| {
        KindPattern::parse(&text.value).map_err(|why| at.wrong(text, &format!("kinds: {why}")))
    };
    let path =
        |text: &Spanned<String>| FieldPath::parse(&text.value).map_err(|why| at.wrong(text, &why));
    Ok(Sensitive {
        kinds: kinds.iter().map(kind).collect::<Result<_, _>>()?,
        paths: paths.iter().map(path).collect::<Result<_, _>>()?,
    })
}

fn of(source: Spanned<Source>, at: &At<'_>) -> Result<SourceConfig, String> {
    let whole = Spanned::new((), source.referenced, source.defined);
    let source = source.value;
    let name = checked_name(&source.name.value).map_err(|why| at.wrong(&source.name, &why))?;
    let place = match (source.path, source.git) {
        (Some(path), None) => Place::Directory(at.beside(path.value)),
        (None, Some(git)) => Place::Git(Box::new(git.value.options(at)?)),
        _ => {
            return Err(at.wrong(&whole, &format!("source {name:?} has either a path or git")));
        }
    };
    let mut config = SourceConfig::new(name, place);
    if let Some(text) = &source.interval {
        config.interval = duration::parse(&text.value)
            .map_err(|why| at.wrong(text, &format!("interval: {why}")))?;
    }
    let label = |text: &Spanned<String>| match is_label(&text.value) {
        true => Ok(text.value.clone()),
        false => Err(at.wrong(text, &format!("{:?} is not the name of a namespace", text.value))),
    };
    let target = source.target_namespace.filter(|it| it.value != ANY_NAMESPACE);
    let target = target.map(|text| Ok::<_, String>((label(&text)?, text))).transpose()?;
    if let Some(text) = &source.namespace {
        config.namespace = label(text)?;
    }
    if let Some((target, text)) = &target {
        if source.namespace.is_some() && config.namespace != *target {
            return Err(at.wrong(
                text,
                &format!(
                    "targetNamespace {target} and namespace {} cannot both be: leave namespace out",
                    config.namespace
                ),
            ));
        }
        config.namespace.clone_from(target);
    }
    let account = |text: Spanned<String>| match Account::parse(&text.value) {
        Ok(account) => Ok(Arc::new(account)),
        Err(why) => Err(at.wrong(&text, &format!("serviceAccount: {why}"))),
    };
    config.suspend = source.mode == ModeWord::Suspend;
    config.terms = Arc::new(SourceTerms {
        mode: source.mode.mode(),
        confined_to: target.map(|(target, _)| target.into()),
        acts_as: source.service_account.map(account).transpose()?,
        prune: source.prune,
        deletion: source
            .deletion
            .map(|words| deletion(&words, at))
            .transpose()?
            .unwrap_or_default(),
        approval: approval(&source.approval, at)?,
    });
    config.depends_on = source.depends_on.into_iter().map(|name| name.value).collect();
    for entry in source.ignore {
        let place = format!("{}:{}", at.origin, entry.referenced.line());
        config.ignore.extend(scoped(entry.value, at.origin, &place)?);
    }
    Ok(config)
}

fn approval(words: &[Spanned<ApprovalWord>], at: &At<'_>) -> Result<approval::Rules, String> {
    let mut rules = approval::Rules::default();
    for word in words {
        match &word.value {
            ApprovalWord::Word(text) if text == "deletes" => rules.deletes = true,
            ApprovalWord::Word(text) if text == "recreations" => rules.recreations = true,
            ApprovalWord::Word(text) if text == "rbac" => rules.rbac = true,
            ApprovalWord::MoreThan(limit) => rules.more_than = Some(limit.more_than),
            ApprovalWord::Word(text) => {
                let why = format!(
                    "approval: {text:?} is none of deletes, recreations, rbac and moreThan: NUMBER"
                );
                return Err(at.wrong(word, &why));
            }
        }
    }
    Ok(rules)
}

fn deletion(words: &Spanned<DeletionWords>, at: &At<'_>) -> Result<Rules, String> {
    let usual = Limits::default();
    let limits = Limits {
        percent: words.value.percent_at_most.unwrap_or(usual.percent),
        number: words.value.objects_at_most.unwrap_or(usual.number),
        ..usual
    };
    if limits.percent > 100 {
        return Err(at.wrong(words, "deletion: percentAtMost is not between 0 and 100"));
    }
    let denial = |word: &Spanned<String>| {
        Denial::parse(&word.value).ok_or_else(|| {
            let known: Vec<&str> = Denial::ALL.iter().map(|denial| denial.as_str()).collect();
            let why = format!("deletion: allow: {:?} is none of {}", word.value, known.join(", "));
            at.wrong(word, &why)
        })
    };
    let allow = words.value.allow.iter().map(denial).collect::<Result<_, _>>()?;
    Ok(Rules { allow, limits })
}
