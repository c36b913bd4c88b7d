//! `ignore` of a source: entries of the configuration to rules with their objects.

use serde::Deserialize;
use serde_saphyr::Spanned;
use std::sync::Arc;
use trimtab_core::ignore::{Rule, Scoped};
use trimtab_core::plugin::KindPattern;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Ignore {
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

/// The rules of one entry: each path, as far as one of the managers wrote it if some are named.
///
/// # Errors
/// What is wrong, with its line.
pub(super) fn scoped(entry: Ignore, origin: &str, place: &str) -> Result<Vec<Scoped>, String> {
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
