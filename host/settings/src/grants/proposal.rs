//! The grant to print for a plugin: what it declares, for a person to narrow.
//!
//! Actions that destroy or take over are named in a comment only, and so are the hard denials.

use super::{API_VERSION, parse, terms};
use trimtab_core::budget::Budgets;
use trimtab_core::decision::ActionKind;
use trimtab_core::denial::Denial;
use trimtab_core::grant::Mode;
use trimtab_core::identity::Digest;
use trimtab_core::plugin::{KindPattern, PluginManifest};

/// What a printed grant is narrowed to. Each flag may be given several times, or with commas; what is
/// not given is as the manifest has it.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Narrowed {
    /// Kinds: Deployment.apps, Service, *.apps.
    #[arg(long = "kind", value_name = "KIND", value_delimiter = ',')]
    pub kinds: Vec<String>,
    /// Namespaces by name.
    #[arg(long = "namespace", value_name = "NAME", value_delimiter = ',')]
    pub namespaces: Vec<String>,
    /// Whether objects outside namespaces are included; without it, unless namespaces are named.
    #[arg(long, value_name = "BOOL")]
    pub cluster_scoped: Option<bool>,
    /// Actions: those named, and no others.
    #[arg(long = "action", value_name = "WORD", value_delimiter = ',')]
    pub actions: Vec<String>,
    /// Fields that alone may change, by path: /spec/replicas, /data/*.
    #[arg(long = "field", value_name = "PATH")]
    pub fields: Vec<String>,
    /// Fields that may not change, by path.
    #[arg(long = "deny-field", value_name = "PATH")]
    pub deny_fields: Vec<String>,
    /// Hard denials to lift, by name; `all` for each that can concern the kinds.
    #[arg(long, value_name = "DENIAL", value_delimiter = ',')]
    pub allow: Vec<String>,
    /// Kinds that the plugin may look up, of those that it asks to read.
    #[arg(long = "read", value_name = "KIND", value_delimiter = ',')]
    pub reads: Vec<String>,
    /// Writes in any minute.
    #[arg(long, value_name = "NUMBER")]
    pub writes_per_minute: Option<u32>,
    /// Deletions in one pass.
    #[arg(long, value_name = "NUMBER")]
    pub deletes_per_pass: Option<u32>,
    /// Deletions in any hour.
    #[arg(long, value_name = "NUMBER")]
    pub deletes_per_hour: Option<u32>,
    /// Actions in one pass.
    #[arg(long, value_name = "NUMBER")]
    pub actions_per_pass: Option<u32>,
    /// Wall time of one call, in milliseconds.
    #[arg(long, value_name = "NUMBER")]
    pub wall_time_ms: Option<u64>,
    /// Linear memory of one call.
    #[arg(long, value_name = "BYTES")]
    pub memory_bytes: Option<u64>,
    /// Bytes of one answer.
    #[arg(long, value_name = "BYTES")]
    pub output_bytes: Option<u64>,
    /// Lines of log that one call keeps.
    #[arg(long, value_name = "NUMBER")]
    pub log_lines: Option<u64>,
    /// Bytes of log that one call keeps.
    #[arg(long, value_name = "BYTES")]
    pub log_bytes: Option<u64>,
    /// Reads of one call.
    #[arg(long, value_name = "NUMBER")]
    pub lookups: Option<u64>,
    /// Bytes that the reads of one call hand over.
    #[arg(long, value_name = "BYTES")]
    pub lookup_bytes: Option<u64>,
    /// Let the file import WASI, which is closed: no files, arguments, variables or network; time and
    /// random numbers fixed by the pass.
    #[arg(long)]
    pub wasi: bool,
}

/// The grant as text, with a comment on each key, which no serialiser writes.
///
/// # Errors
/// What is asked for is outside the manifest, or no grant that could be meant.
pub fn proposal(
    manifest: &PluginManifest,
    digest: Digest,
    mode: Mode,
    narrowed: &Narrowed,
) -> Result<String, String> {
    let or = |given: &[String], usual: Vec<String>| match given {
        [] => usual,
        given => given.to_vec(),
    };
    let claims = manifest.claims.iter().map(ToString::to_string).collect();
    let kinds = or(&narrowed.kinds, claims);
    let patterns: Vec<KindPattern> =
        kinds.iter().map(|text| KindPattern::parse(text)).collect::<Result<_, _>>()?;
    if let Some(other) = patterns.iter().find(|kind| !within(&manifest.claims, kind)) {
        return Err(format!("the plugin does not claim {other}"));
    }
    for text in &narrowed.reads {
        let kind = KindPattern::parse(text)?;
        if !within(&manifest.reads, &kind) {
            return Err(format!("the plugin does not ask to read {kind}"));
        }
    }
    let declared = |kind: &ActionKind| manifest.actions.contains(kind);
    let outside = |word: &&String| !ActionKind::parse(word).as_ref().is_some_and(declared);
    if let Some(word) = narrowed.actions.iter().find(outside) {
        return Err(format!("the plugin does not declare the action {word:?}"));
    }
    let actions = or(&narrowed.actions, words(manifest, |kind| !needs_thought(kind)));
    let left_out: Vec<String> =
        words(manifest, needs_thought).into_iter().filter(|word| !actions.contains(word)).collect();
    let everywhere = narrowed.namespaces.iter().all(|name| name == "*");
    let cluster_scoped = narrowed.cluster_scoped.unwrap_or(everywhere);
    let concerned = |denial: &Denial| denial.can_concern(&patterns, cluster_scoped);
    let possible: Vec<String> =
        Denial::ALL.iter().filter(|it| concerned(it)).map(ToString::to_string).collect();
    for word in narrowed.allow.iter().filter(|word| *word != "all") {
        terms::denial(word)?;
    }
    let all = narrowed.allow.iter().any(|word| word == "all");
    let allow = if all { possible.clone() } else { narrowed.allow.clone() };
    let held: Vec<String> = possible.into_iter().filter(|word| !allow.contains(word)).collect();
    let namespaces = or(&narrowed.namespaces, vec!["*".into()]);
    let reads = or(&narrowed.reads, manifest.reads.iter().map(ToString::to_string).collect());
    let note = |text: &str, items: &[String]| match items {
        [] => String::new(),
        items => format!("# {text}: {}.\n", items.join(", ")),
    };
    let mut text = format!(
        "apiVersion: {API_VERSION}\n\
         kind: Grant\n\
         plugin: {plugin}\n\
         # The file that this is granted to; another build of the plugin needs its own grant.\n\
         digest: {digest}\n\
         # observe: report what it would do. enforce: write it.\n\
         mode: {mode}\n\
         # Kind.group, Kind (core group), *.group or *; narrows what the plugin claims.\n\
         kinds: {kinds}\n\
         # Namespaces by name, or \"*\" for all.\n\
         namespaces: {namespaces}\n\
         # Whether objects outside namespaces (Namespace, ClusterRole, CRDs, ...) are included.\n\
         clusterScoped: {cluster_scoped}\n\
         # Narrows what the plugin asks for.\n\
         {left_out}\
         actions: {actions}\n\
         # Hard denials that are lifted: what hands out power takes a word of its own.\n\
         {held}\
         allow: {allow}\n",
        plugin = manifest.name,
        kinds = list(&kinds),
        namespaces = list(&namespaces),
        left_out = note("Declared too, and granted only if you add it", &left_out),
        actions = list(&actions),
        held = note("Held, and lifted only if you add it", &held),
        allow = list(&allow),
    );
    if !reads.is_empty() {
        text.push_str("# Kinds that it may look up, within the namespaces above.\n");
        text.push_str(&format!("reads: {}\n", list(&reads)));
    }
    text.push_str(&optional(narrowed));
    parse(&text, "this grant")?;
    Ok(text)
}

/// Keys that are printed as they are asked for, or as a comment that shows how to write them.
fn optional(narrowed: &Narrowed) -> String {
    let mut text = String::from("# Fields that alone may change, and those that may not.\n");
    let (allow, deny) = (&narrowed.fields, &narrowed.deny_fields);
    if allow.is_empty() && deny.is_empty() {
        text.push_str("# fields: {allow: [\"/spec/**\"], deny: [\"/spec/replicas\"]}\n");
    } else {
        text.push_str(&format!("fields: {{allow: {}, deny: {}}}\n", list(allow), list(deny)));
    }
    if narrowed.wasi {
        text.push_str("# The file may import WASI, which leads nowhere.\nwasi: closed\n");
    }
    text.push_str("# How much it may write, and what one call may use.\n");
    let usual = Budgets::default();
    let mut budgets = Vec::new();
    budgets.extend(narrowed.writes_per_minute.map(|it| format!("writesPerMinute: {it}")));
    budgets.extend(narrowed.deletes_per_hour.map(|it| format!("deletesPerHour: {it}")));
    budgets.extend(narrowed.deletes_per_pass.map(|it| format!("deletesPerPass: {it}")));
    budgets.extend(narrowed.actions_per_pass.map(|it| format!("actionsPerPass: {it}")));
    if budgets.is_empty() {
        text.push_str(&format!(
            "# budgets: {{writesPerMinute: {}, deletesPerHour: {}, deletesPerPass: {}, actionsPerPass: {}}}\n",
            usual.writes_per_minute,
            usual.deletes_per_hour,
            usual.deletes_per_pass,
            usual.actions_per_pass
        ));
    } else {
        text.push_str(&format!("budgets: {{{}}}\n", budgets.join(", ")));
    }
    let limits = limits(narrowed);
    let asked = limits.iter().filter_map(|(key, asked, _)| Some(format!("{key}: {}", (*asked)?)));
    let asked: Vec<String> = asked.collect();
    if asked.is_empty() {
        let usual: Vec<_> =
            limits.iter().map(|(key, _, usual)| format!("{key}: {usual}")).collect();
        text.push_str(&format!("# limits: {{{}}}\n", usual.join(", ")));
    } else {
        text.push_str(&format!("limits: {{{}}}\n", asked.join(", ")));
    }
    text
}

/// Each limit: its key, what is asked for, and what holds without a word.
fn limits(narrowed: &Narrowed) -> [(&'static str, Option<u64>, u128); 7] {
    let usual = trimtab_wasm::Limits::default();
    [
        ("wallTimeMs", narrowed.wall_time_ms, usual.wall_time.as_millis()),
        ("memoryBytes", narrowed.memory_bytes, usual.memory_bytes as u128),
        ("outputBytes", narrowed.output_bytes, usual.output_bytes as u128),
        ("logLines", narrowed.log_lines, usual.log_lines.into()),
        ("logBytes", narrowed.log_bytes, usual.log_bytes as u128),
        ("lookups", narrowed.lookups, usual.lookups.into()),
        ("lookupBytes", narrowed.lookup_bytes, usual.lookup_bytes as u128),
    ]
}

/// Whether one of the manifest's patterns has all of this one.
fn within(patterns: &[KindPattern], kind: &KindPattern) -> bool {
    patterns.iter().any(|pattern| match (pattern, kind) {
        (KindPattern::Any, _) => true,
        (claim, KindPattern::Exact(kind)) => claim.covers(kind),
        (claim, kind) => claim == kind,
    })
}

/// Actions that destroy or take over: declared or not, a person adds them by hand.
fn needs_thought(kind: ActionKind) -> bool {
    matches!(kind, ActionKind::Adopt | ActionKind::Recreate | ActionKind::Delete)
}

fn words(manifest: &PluginManifest, which: impl Fn(ActionKind) -> bool) -> Vec<String> {
    manifest.actions.iter().filter(|kind| which(**kind)).map(ToString::to_string).collect()
}

fn list(items: &[String]) -> String {
    let quoted: Vec<String> = items.iter().map(|item| format!("{item:?}")).collect();
    format!("[{}]", quoted.join(", "))
}
