//! What is known of types without a cluster, for the sandbox: the table that comes with the host,
//! and definitions.

use anyhow::Result;
use std::sync::{Arc, LazyLock};
use trimtab_core::identity::Gvk;
use trimtab_core::object::Manifest;
use trimtab_core::placing::Scope;
use trimtab_json::Value;
use trimtab_system_tests::workspace;

struct BuiltIn {
    document: Value<'static>,
    cluster_scoped: Vec<String>,
}

static BUILT_IN: LazyLock<BuiltIn> = LazyLock::new(|| {
    let file = workspace().join("host/trimtab/schemas/kubernetes.json");
    let text = std::fs::read_to_string(file).expect("the table is in the checkout");
    let document = trimtab_json::parse(Box::leak(text.into_boxed_str()).as_bytes());
    let document = document.expect("the table is JSON");
    let listed = document.get("clusterScoped").and_then(Value::as_array);
    let listed = listed.unwrap_or_default().iter().filter_map(Value::as_str);
    let cluster_scoped = listed.map(str::to_owned).collect();
    BuiltIn { document, cluster_scoped }
});

pub(super) fn scope(gvk: &Gvk, definitions: &[Manifest]) -> Scope {
    let kind = gvk.group_kind().to_string();
    let mut definitions = definitions.iter().filter_map(|it| trimtab_json::parse(&it.json).ok());
    let defined = definitions.any(|definition| {
        defines(&definition, gvk) && definition.str_at(&["spec", "scope"]) == Some("Cluster")
    });
    if defined || BUILT_IN.cluster_scoped.contains(&kind) {
        Scope::Cluster
    } else {
        Scope::Namespaced
    }
}

pub(super) fn facts(gvk: &Gvk, definitions: &[Manifest]) -> Result<Arc<[u8]>> {
    for manifest in definitions {
        let definition = trimtab_json::parse(&manifest.json).map_err(anyhow::Error::msg)?;
        if defines(&definition, gvk)
            && let Ok(facts) = trimtab_compare::facts::build_crd(&definition, &gvk.version)
        {
            return Ok(facts.into());
        }
    }
    let built_in =
        trimtab_compare::facts::build(&BUILT_IN.document, &gvk.group, &gvk.version, &gvk.kind);
    Ok(built_in.map(Into::into).unwrap_or_default())
}

fn defines(definition: &Value<'_>, gvk: &Gvk) -> bool {
    definition.str_at(&["kind"]) == Some("CustomResourceDefinition")
        && definition.str_at(&["spec", "group"]) == Some(&*gvk.group)
        && definition.str_at(&["spec", "names", "kind"]) == Some(&*gvk.kind)
}
