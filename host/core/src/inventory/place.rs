//! Where a shard lies in the cluster.

use crate::identity::{Digest, GroupKind, ObjectKey};
use std::sync::Arc;

/// The label of each shard; its value is the source's name as far as a label can hold it.
pub const LABEL: &str = "trimtab.dev/inventory";
/// The key of the ConfigMap's data that holds the text.
pub const DATA: &str = "inventory";
/// Longest name of a source that stands in a name as it is.
const SLUG_AT_MOST: usize = 40;

/// A shard's ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: String,
    /// The source's name as far as a label can hold it.
    pub slug: String,
}

impl Place {
    /// Where this shard of this source lies.
    pub fn of(namespace: &Arc<str>, source: &str, index: usize) -> Self {
        let slug = slug(source);
        let name = format!("trimtab-inventory-{slug}-{index}");
        Self { namespace: namespace.clone(), name, slug }
    }

    /// The ConfigMap's identity.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::new(GroupKind::new("", "ConfigMap"), &self.namespace, &self.name)
    }
}

/// A name in which no two sources are the same: as it is where it is a label of RFC 1123 and short,
/// else what can stand of it and a digest.
fn slug(source: &str) -> String {
    let is_plain = source.len() <= SLUG_AT_MOST && crate::terms::is_label(source);
    if is_plain && !source.contains("--") {
        return source.to_owned();
    }
    let kept: String = source
        .chars()
        .map(|it| if it.is_ascii_alphanumeric() { it.to_ascii_lowercase() } else { '-' })
        .take(SLUG_AT_MOST)
        .collect();
    let digest = Digest::of(source.as_bytes()).short();
    // No plain name has two of these in a row.
    format!("{}--{digest}", kept.trim_matches('-')).trim_start_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_has_a_name_of_its_own_that_an_api_server_takes() {
        let name = |source: &str| Place::of(&"trimtab-system".into(), source, 3).name;
        assert_eq!(name("shop"), "trimtab-inventory-shop-3");
        let odd = ["Shop", "shop_", "shop--", "", "…", &"a".repeat(300), "a/b", "a-b--c", "a.b"];
        let mut all: Vec<String> = odd.iter().map(|source| name(source)).collect();
        for name in &all {
            assert!(crate::terms::is_label(name) || name.len() > 63, "{name}");
            assert!(name.len() <= 80 && !name.contains("---"), "{name}");
        }
        all.push(name("shop"));
        all.push(name("a-b"));
        all.sort();
        all.dedup();
        assert_eq!(all.len(), odd.len() + 2);
    }
}
