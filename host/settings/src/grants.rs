//! Grants as files: YAML that a person reads and edits.
//!
//! Takes a file or a folder and gives every grant in it, or one error that names file, line and
//! what to do. Half a set of grants is never used: the caller keeps the last good one. `terms.rs`
//! reads the optional keys, `proposal.rs` prints a grant for a plugin.

mod policy;
mod proposal;
mod terms;

pub use self::policy::{proposal as policy_proposal, section as policy_section};
pub use self::proposal::{Narrowed, proposal};
pub use self::terms::limits;

use crate::unreadable;
use serde::Deserialize;
use serde_saphyr::Spanned;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use trimtab_core::decision::ActionKind;
use trimtab_core::grant::{Grant, Mode, Namespaces};
use trimtab_core::identity::Digest;
use trimtab_core::ownership::FIELD_MANAGER;
use trimtab_core::plugin::KindPattern;

/// `apiVersion` of grant files.
pub const API_VERSION: &str = "trimtab.dev/v1alpha1";
/// Largest grant file that is read: a grant is a page of text.
const FILE_BYTES_AT_MOST: u64 = 1024 * 1024;

/// A grant document. The words are part of the product's contract: docs/grants.md.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Document {
    api_version: Spanned<String>,
    kind: String,
    plugin: Spanned<String>,
    digest: Spanned<String>,
    #[serde(default)]
    mode: Option<ModeWord>,
    #[serde(default)]
    kinds: Option<Words>,
    #[serde(default)]
    namespaces: Option<Words>,
    #[serde(default)]
    cluster_scoped: Option<bool>,
    #[serde(default)]
    actions: Option<Words>,
    #[serde(default)]
    predecessors: Words,
    #[serde(default)]
    allow: Words,
    #[serde(default)]
    fields: terms::Fields,
    #[serde(default)]
    reads: Option<Words>,
    #[serde(default)]
    budgets: Option<Spanned<terms::Budgets>>,
    #[serde(default)]
    limits: Option<Spanned<terms::Limits>>,
    #[serde(default)]
    wasi: Option<terms::WasiWord>,
    #[serde(default)]
    policy: Option<policy::Policy>,
}

/// What a grant gives a reconciler: all of it is said, or for a policy alone nothing.
struct Reconciles {
    mode: Mode,
    kinds: Words,
    namespaces: Words,
    cluster_scoped: bool,
    actions: Words,
}

/// Words, each with its line.
type Words = Vec<Spanned<String>>;

/// What is wrong with a grant, and in which line.
struct Wrong {
    line: u64,
    what: String,
}

impl Wrong {
    fn at<T>(place: &Spanned<T>, what: impl Into<String>) -> Self {
        Self { line: place.referenced.line(), what: what.into() }
    }
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ModeWord {
    Observe,
    Enforce,
}

impl From<ModeWord> for Mode {
    fn from(word: ModeWord) -> Self {
        match word {
            ModeWord::Observe => Self::Observe,
            ModeWord::Enforce => Self::Enforce,
        }
    }
}

/// Why grants could not be read. Each line names a file and says what to do.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct GrantsError(pub Vec<String>);

/// Every grant in a file, or in the `*.yaml` and `*.yml` files of a folder.
///
/// # Errors
/// All problems together; one bad file spoils the set.
pub fn read(path: &Path) -> Result<Vec<Grant>, GrantsError> {
    let mut grants: Vec<Grant> = Vec::new();
    let mut problems = Vec::new();
    for file in files(path).map_err(|problem| GrantsError(vec![problem]))? {
        match read_file(&file) {
            Ok(found) => grants.extend(found),
            Err(problem) => problems.push(problem),
        }
    }
    for (index, grant) in grants.iter().enumerate() {
        let same = |other: &&Grant| other.plugin == grant.plugin && other.digest == grant.digest;
        if let Some(first) = grants[..index].iter().find(same) {
            problems.push(format!(
                "{} and {} both grant plugin {} at {}: merge them into one",
                first.origin, grant.origin, grant.plugin, grant.digest
            ));
        }
    }
    if problems.is_empty() { Ok(grants) } else { Err(GrantsError(problems)) }
}

fn files(path: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error: std::io::Error| {
        format!("--grants {}: {error}: give a grant file or a folder of them", path.display())
    };
    if !std::fs::metadata(path).map_err(failed)?.is_dir() {
        return Ok(vec![path.to_path_buf()]);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let file = entry.map_err(failed)?.path();
        let yaml = file.extension().is_some_and(|ext| ext == "yaml" || ext == "yml");
        let hidden = file.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if yaml && !hidden && file.is_file() {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

fn read_file(file: &Path) -> Result<Vec<Grant>, String> {
    let name = file.display();
    let failed = |error: std::io::Error| format!("{name}: {error}");
    if std::fs::metadata(file).map_err(failed)?.len() > FILE_BYTES_AT_MOST {
        return Err(format!("{name}: larger than {FILE_BYTES_AT_MOST} bytes: this is no grant"));
    }
    let text = std::fs::read_to_string(file).map_err(failed)?;
    parse(&text, &name.to_string())
}

/// The grants in this text; `origin` is for messages.
///
/// # Errors
/// One problem, with the line.
pub fn parse(text: &str, origin: &str) -> Result<Vec<Grant>, String> {
    let documents: Vec<Document> =
        serde_saphyr::from_multiple(text).map_err(|error| unreadable(&error, origin, "a grant"))?;
    let grant = |document: Document| {
        let plugin = document.plugin.value.clone();
        check(document, origin).map_err(|Wrong { line, what }| {
            format!("{origin}:{line}: grant for {plugin:?}: {what}")
        })
    };
    documents.into_iter().map(grant).collect()
}

fn check(document: Document, origin: &str) -> Result<Grant, Wrong> {
    let plugin = &document.plugin;
    if document.api_version.value != API_VERSION || document.kind != "Grant" {
        return Err(Wrong::at(
            &document.api_version,
            format!(
                "apiVersion {:?} and kind {:?} are not {API_VERSION} Grant, which this host reads",
                document.api_version.value, document.kind
            ),
        ));
    }
    let digest = Digest::parse(&document.digest.value).ok_or_else(|| {
        Wrong::at(
            &document.digest,
            format!(
                "digest {:?} is not sha256: and 64 hexadecimal digits: `trimtab plugin inspect` shows the file's",
                document.digest.value
            ),
        )
    })?;
    let policy = document.policy.map(|it| policy::check(it, plugin)).transpose()?;
    let given = reconciles(
        plugin,
        policy.is_some(),
        (document.mode, document.kinds, document.namespaces),
        (document.cluster_scoped, document.actions),
    )?;
    let kinds = patterns(&given.kinds)?;
    let actions = given
        .actions
        .iter()
        .map(|word| {
            ActionKind::parse(&word.value).ok_or_else(|| {
                let known: Vec<&str> = ActionKind::ALL.iter().map(|kind| kind.as_str()).collect();
                let what = format!("action {:?} is none of {}", word.value, known.join(", "));
                Wrong::at(word, what)
            })
        })
        .collect::<Result<BTreeSet<_>, _>>()?;
    let predecessors = &document.predecessors;
    if let Some(bad) = predecessors.iter().find(|name| !may_be_succeeded(&name.value)) {
        return Err(Wrong::at(
            bad,
            format!(
                "predecessors names {:?}: name the field manager of a client-side apply tool, as managedFields have it, and neither Trimtab itself nor a controller of the control plane",
                bad.value
            ),
        ));
    }
    if let (Some(first), false) = (predecessors.first(), actions.contains(&ActionKind::Adopt)) {
        let what = "predecessors are succeeded where actions has adopt: add it";
        return Err(Wrong::at(first, what));
    }
    let namespaces = namespaces(&given.namespaces)?;
    let reach =
        terms::Reach { kinds: &kinds, actions: &actions, cluster_scoped: given.cluster_scoped };
    let mut terms = terms::check(
        &document.allow,
        &document.fields,
        document.reads.as_deref(),
        document.budgets.as_ref(),
        document.limits.as_ref(),
        &reach,
    )?;
    terms.policy = policy;
    terms.wasi = matches!(document.wasi, Some(terms::WasiWord::Closed));
    Ok(Grant {
        plugin: document.plugin.value.clone(),
        digest,
        mode: given.mode,
        kinds,
        namespaces,
        cluster_scoped: given.cluster_scoped,
        actions,
        predecessors: document.predecessors.into_iter().map(|name| name.value).collect(),
        terms,
        origin: origin.to_owned(),
    })
}

/// What the grant says for a reconciler.
fn reconciles(
    plugin: &Spanned<String>,
    is_policy: bool,
    (mode, kinds, namespaces): (Option<ModeWord>, Option<Words>, Option<Words>),
    (cluster_scoped, actions): (Option<bool>, Option<Words>),
) -> Result<Reconciles, Wrong> {
    let all = (mode, kinds, namespaces, cluster_scoped, actions);
    let (mode, kinds, namespaces, cluster_scoped, actions) = match all {
        (Some(mode), Some(kinds), Some(namespaces), Some(cluster_scoped), Some(actions)) => {
            (mode, kinds, namespaces, cluster_scoped, actions)
        }
        (None, None, None, None, None) if is_policy => {
            return Ok(Reconciles {
                mode: Mode::Observe,
                kinds: vec![],
                namespaces: vec![],
                cluster_scoped: false,
                actions: vec![],
            });
        }
        (mode, kinds, namespaces, cluster_scoped, actions) => {
            let named = [
                ("mode", mode.is_some()),
                ("kinds", kinds.is_some()),
                ("namespaces", namespaces.is_some()),
                ("clusterScoped", cluster_scoped.is_some()),
                ("actions", actions.is_some()),
            ];
            let missing: Vec<&str> =
                named.iter().filter(|(_, there)| !there).map(|(name, _)| *name).collect();
            return Err(Wrong::at(
                plugin,
                format!(
                    "missing {}: a grant has mode, kinds, namespaces, clusterScoped and actions; one that is for a policy alone has none of them, and policy",
                    missing.join(", ")
                ),
            ));
        }
    };
    if kinds.is_empty() || actions.is_empty() || namespaces.is_empty() {
        return Err(Wrong::at(plugin, "kinds, namespaces and actions must each name something"));
    }
    Ok(Reconciles { mode: mode.into(), kinds, namespaces, cluster_scoped, actions })
}

fn patterns(words: &[Spanned<String>]) -> Result<Vec<KindPattern>, Wrong> {
    let one = |word: &Spanned<String>| {
        KindPattern::parse(&word.value).map_err(|what| Wrong::at(word, what))
    };
    words.iter().map(one).collect()
}

/// Names that a namespace can have, or all.
fn namespaces(words: &[Spanned<String>]) -> Result<Namespaces, Wrong> {
    if let Some(all) = words.iter().find(|word| word.value == "*") {
        return match words {
            [_] => Ok(Namespaces::All),
            _ => {
                let what = "namespaces has \"*\" beside names: write one or the other";
                Err(Wrong::at(all, what))
            }
        };
    }
    if let Some(bad) = words.iter().find(|word| !is_label(&word.value)) {
        return Err(Wrong::at(
            bad,
            format!(
                "namespaces has {:?}, which no namespace can be called: write names, or \"*\" alone",
                bad.value
            ),
        ));
    }
    Ok(Namespaces::Only(words.iter().map(|word| word.value.clone()).collect()))
}

/// A label of RFC 1123.
fn is_label(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    let ends = [bytes.first(), bytes.last()].iter().all(|end| end.is_some_and(|end| plain(*end)));
    ends && bytes.len() <= 63 && bytes.iter().all(|byte| plain(*byte) || *byte == b'-')
}

/// Whose fields may become ours: nobody's whose fields are the cluster's own.
fn may_be_succeeded(manager: &str) -> bool {
    !manager.is_empty()
        && manager != FIELD_MANAGER
        && !trimtab_compare::managed_fields::is_system(manager)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_core::denial::Denial;
    use trimtab_core::plugin::PluginManifest;

    fn manifest() -> PluginManifest {
        PluginManifest {
            name: "generic".into(),
            version: "0.1.0".into(),
            description: String::new(),
            wit: "0.1.0".into(),
            claims: vec![KindPattern::Any],
            reads: vec![],
            actions: [ActionKind::ApplyDesired].into(),
        }
    }

    fn text() -> String {
        proposal(&manifest(), Digest::of(b"x"), Mode::Enforce, &Narrowed::default()).unwrap()
    }

    #[test]
    fn the_printed_grant_reads_back_as_what_was_meant() {
        let grants = parse(&text(), "g.yaml").unwrap();
        assert_eq!(grants.len(), 1);
        assert_eq!(grants[0].mode, Mode::Enforce);
        assert_eq!(grants[0].digest, Digest::of(b"x"));
        assert_eq!(grants[0].namespaces, Namespaces::All);
        assert_eq!(grants[0].kinds, [KindPattern::Any]);
    }

    #[test]
    fn every_mistake_names_the_file_and_what_is_wrong() {
        let cases = [
            ("mode: enforce", "mode: enfore", "enfore"),
            ("clusterScoped", "clusterScopes", "clusterScopes"),
            ("sha256:", "sha1:", "sha256: and 64"),
            ("\"apply-desired\"", "\"apply\"", "none of apply-desired"),
            ("namespaces: [\"*\"]", "namespaces: [\"*\", \"a\"]", "one or the other"),
            ("kinds: [\"*\"]", "kinds: [\"deployment\"]", "is not a kind"),
            ("v1alpha1", "v2", "which this host reads"),
            ("namespaces: [\"*\"]", "namespaces: [Shop_X]", "no namespace can be called"),
            ("namespaces: [\"*\"]", "namespaces: [\"\"]", "no namespace can be called"),
        ];
        for (good, bad, expected) in cases {
            let wrong = text().replace(good, bad);
            let error = parse(&wrong, "g.yaml").unwrap_err();
            assert!(error.contains("g.yaml") && error.contains(expected), "{error}");
            let at = text().lines().position(|line| line.contains(good)).unwrap() + 1;
            assert!(error.starts_with(&format!("g.yaml:{at}: ")), "{at}: {error}");
        }
    }

    #[test]
    fn predecessors_are_apply_tools_and_need_adopt() {
        let with = |more: &str, actions: &str| {
            parse(&format!("{}{more}\n", text().replace("[\"apply-desired\"]", actions)), "g.yaml")
        };
        let adopt = "[\"apply-desired\", \"adopt\"]";
        let grants = with("predecessors: [helm]", adopt).unwrap();
        assert!(grants[0].predecessors.contains("helm"));
        assert!(with("predecessors: [helm]", "[\"apply-desired\"]").unwrap_err().contains("adopt"));
        for system in ["kube-controller-manager", "trimtab"] {
            let error = with(&format!("predecessors: [{system}]"), adopt).unwrap_err();
            assert!(error.contains(system), "{error}");
        }
    }

    #[test]
    fn an_unknown_key_is_refused_with_its_line() {
        let line = text().lines().count() + 1;
        for (more, at) in [("extra: 1\n", line), ("budgets:\n  extra: 1\n", line + 1)] {
            let error = parse(&format!("{}{more}", text()), "g.yaml").unwrap_err();
            assert!(error.starts_with(&format!("g.yaml:{at}: ")), "{error}");
        }
    }

    #[test]
    fn the_optional_keys_are_read_and_have_defaults() {
        let plain = parse(&text(), "g.yaml").unwrap().remove(0).terms;
        assert_eq!(plain, trimtab_core::grant::Terms::default());
        let full = text().replace("allow: []", "allow: [rbac, privileged-pods]")
            + "fields: {allow: [/spec/replicas, \"/data/*\"], deny: [/data/pw]}\n\
               reads: [Service]\n\
               budgets: {writesPerMinute: 60, deletesPerPass: 0, actionsPerPass: 2}\n\
               wasi: closed\n\
               limits: {wallTimeMs: 50, memoryBytes: 1048576, outputBytes: 1000, logLines: 0, logBytes: 0, lookups: 1, lookupBytes: 9}\n";
        let terms = parse(&full, "g.yaml").unwrap().remove(0).terms;
        assert_eq!(terms.allow, [Denial::Rbac, Denial::PrivilegedPods].into());
        assert_eq!((terms.fields.allow.len(), terms.fields.deny[0].text()), (2, "/data/pw"));
        assert_eq!(terms.reads.unwrap().len(), 1);
        assert_eq!((terms.budgets.writes_per_minute, terms.budgets.deletes_per_pass), (60, 0));
        assert!(terms.wasi);
        let limits = limits(&terms.limits);
        assert_eq!((limits.wall_time.as_millis(), limits.memory_bytes), (50, 1 << 20));
        assert_eq!((limits.log_lines, limits.lookups), (0, 1));
    }

    #[test]
    fn terms_that_are_wrong_or_lift_nothing_are_errors_that_say_what_to_do() {
        let only_maps = |text: String| text.replace("kinds: [\"*\"]", "kinds: [ConfigMap]");
        for (more, expected) in [
            ("allow: [roles]", "none of rbac, admission"),
            ("allow: [rbac]", "concerns none of the granted kinds"),
            ("fields: {allow: [spec]}", "write a path"),
            ("fields: {permit: [/spec]}", "permit"),
            ("reads: [service]", "is not a kind"),
            ("budgets: {writesPerMinute: 0}", "mode: observe"),
            ("budgets: {actionsPerPass: 0}", "mode: observe"),
            ("limits: {memoryBytes: 99999999999}", "at most 67108864"),
            ("limits: {wallTimeMs: 0}", "at least"),
            ("wasi: open", "closed"),
        ] {
            let text = only_maps(text()).replace("allow: []\n", "");
            let error = parse(&format!("{text}{more}\n"), "g.yaml").unwrap_err();
            assert!(error.contains("g.yaml") && error.contains(expected), "{more}: {error}");
        }
        let deletes = text().replace("[\"apply-desired\"]", "[delete]");
        let error = parse(&format!("{deletes}fields: {{allow: [/spec]}}\n"), "g.yaml").unwrap_err();
        assert!(error.contains("deletion changes every field"), "{error}");
    }

    #[test]
    fn a_grant_is_printed_as_narrow_as_it_is_asked_for() {
        let words = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        let narrowed = Narrowed {
            kinds: words(&["Deployment.apps"]),
            namespaces: words(&["shop"]),
            cluster_scoped: Some(false),
            actions: words(&["apply-desired"]),
            fields: words(&["/spec/**"]),
            deny_fields: words(&["/spec/replicas"]),
            allow: words(&["all"]),
            writes_per_minute: Some(5),
            memory_bytes: Some(1 << 20),
            wasi: true,
            ..Narrowed::default()
        };
        let of =
            |narrowed: &Narrowed| proposal(&manifest(), Digest::of(b"x"), Mode::Enforce, narrowed);
        let printed = of(&narrowed).unwrap();
        let grant = parse(&printed, "g.yaml").unwrap().remove(0);
        assert_eq!(grant.namespaces, Namespaces::Only(["shop".to_owned()].into()));
        assert!(!grant.cluster_scoped);
        assert_eq!(grant.terms.allow, [Denial::PrivilegedPods, Denial::ServiceAccounts].into());
        assert_eq!(grant.terms.fields.deny[0].text(), "/spec/replicas");
        assert_eq!(grant.terms.budgets.writes_per_minute, 5);
        assert_eq!(grant.terms.limits.memory_bytes, Some(1 << 20));
        assert!(grant.terms.wasi);
        let places = Narrowed { namespaces: words(&["shop"]), ..Narrowed::default() };
        let grant = parse(&of(&places).unwrap(), "g.yaml").unwrap().remove(0);
        assert!(!grant.cluster_scoped, "whoever names namespaces means no others");
        for (wrong, expected) in [
            (Narrowed { reads: words(&["Secret"]), ..Narrowed::default() }, "does not ask to read"),
            (Narrowed { wall_time_ms: Some(1), ..Narrowed::default() }, "at least 5"),
            (Narrowed { namespaces: words(&["A_b"]), ..Narrowed::default() }, "be called"),
            (Narrowed { actions: words(&["delete"]), ..Narrowed::default() }, "does not declare"),
            (Narrowed { allow: words(&["x"]), ..Narrowed::default() }, "none of rbac"),
            (Narrowed { kinds: words(&["x"]), ..Narrowed::default() }, "is not a kind"),
        ] {
            assert!(of(&wrong).unwrap_err().contains(expected), "{expected}");
        }
    }

    #[test]
    fn two_grants_for_one_build_are_refused_and_both_files_are_named() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.yaml"), text()).unwrap();
        std::fs::write(dir.path().join("b.yaml"), text()).unwrap();
        let error = read(dir.path()).unwrap_err().to_string();
        assert!(error.contains("a.yaml") && error.contains("b.yaml"), "{error}");
    }
}
