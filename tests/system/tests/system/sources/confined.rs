//! A source that is held to one namespace, and every way out of it that manifests have.

use super::{configure, listed, map, map_id, namespace, told};
use crate::world::{Test, pass, run, shared};
use anyhow::ensure;
use trimtab_system_tests::Id;

/// Each declares something outside, and what is refused of it by name.
const OUTSIDE: [(&str, &str, &str); 6] = [
    (
        "stated.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: stated, namespace: NEIGHBOUR}\n",
        "is in namespace NEIGHBOUR",
    ),
    (
        "cluster.yaml",
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: NEIGHBOUR-role}\nrules: []\n",
        "is cluster-scoped",
    ),
    (
        "disguised.yaml",
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: NEIGHBOUR-disguised, namespace: OWN}\nrules: []\n",
        "is cluster-scoped",
    ),
    (
        "namespace.yaml",
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: OWN, labels: {pod-security.kubernetes.io/enforce: privileged}}\n",
        "is cluster-scoped",
    ),
    (
        "list.yaml",
        "apiVersion: v1\nkind: List\nitems:\n  - apiVersion: v1\n    kind: ConfigMap\n    metadata: {name: listed, namespace: NEIGHBOUR}\n",
        "is in namespace NEIGHBOUR",
    ),
    (
        "definition.yaml",
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.NEIGHBOUR.example.com}\nspec:\n  group: NEIGHBOUR.example.com\n  scope: Cluster\n  names: {kind: Widget, singular: widget, plural: widgets}\n  versions: []\n",
        "is cluster-scoped",
    ),
];

#[test]
fn a_confined_source_writes_in_its_namespace_alone_however_its_manifests_are_written() -> Test {
    run(async {
        let cluster = shared().await?;
        let (name, neighbour) = ("src-confined", "src-neighbour");
        let setup = cluster.user("setup")?;
        for text in [namespace(name), namespace(neighbour)] {
            for object in trimtab_system_tests::documents(&text)? {
                setup.apply(&object).await?;
            }
        }
        let mut room = cluster.room(name)?.with_generic()?;
        // Without a namespace it is the source's own, and not `default`.
        room.declare(
            "own.yaml",
            &map(name, "own", "one").replace(&format!(", namespace: {name}"), ""),
        )?;
        for (file, text, _) in OUTSIDE {
            room.declare(file, &text.replace("NEIGHBOUR", neighbour).replace("OWN", name))?;
        }
        configure(
            &mut room,
            &format!("  - {{name: tenant, path: source, targetNamespace: {name}}}\n"),
        )?;
        let mut host = room.start()?;
        pass(&mut host, 0, &map_id(name, "own"), "created").await?;
        for (file, _, words) in OUTSIDE {
            let words = words.replace("NEIGHBOUR", neighbour).replace("OWN", name);
            told(&mut host, 0, "tenant", &[file, &words, "targetNamespace holds"]).await?;
        }
        let entry = listed(&room, "tenant")?;
        let refused = entry["refused"].as_array().map_or(0, Vec::len);
        ensure!(refused == OUTSIDE.len(), "{refused} are refused: {entry}");
        let requests = cluster.audit().by(name).await?;
        let beyond: Vec<_> = requests
            .iter()
            .filter(|request| request.writes() || request.rehearses())
            .filter(|request| request.namespace != name || request.resource == "namespaces")
            .cloned()
            .collect();
        crate::world::none("outside its namespace it asked for", &beyond)?;
        ensure!(cluster.api().get(&Id::new("v1", "ConfigMap", "default", "own")).await?.is_none());
        Ok(())
    })
}

/// A key in another case is no namespace to us, and none to the API server: it refuses it.
#[test]
fn a_namespace_under_a_key_in_another_case_leads_nowhere() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "src-case";
        for object in trimtab_system_tests::documents(&namespace(name))? {
            cluster.user("setup")?.apply(&object).await?;
        }
        let mut room = cluster.room(name)?.with_generic()?;
        room.declare(
            "case.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: key, Namespace: kube-system}\n",
        )?;
        configure(
            &mut room,
            &format!("  - {{name: tenant, path: source, targetNamespace: {name}}}\n"),
        )?;
        let round = room.once_within(60).await?;
        ensure!(round.status != 0, "{}", round.summary);
        ensure!(cluster.api().get(&map_id("kube-system", "key")).await?.is_none());
        Ok(())
    })
}

/// A name that no namespace can have is no object: the revision is refused whole, with its line.
#[test]
fn a_namespace_in_another_case_is_refused_where_it_is_read() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "src-upper";
        let mut room = cluster.room(name)?.with_generic()?;
        room.declare("case.yaml", &map("Src-Upper", "one", "one"))?;
        configure(
            &mut room,
            &format!("  - {{name: tenant, path: source, targetNamespace: {name}}}\n"),
        )?;
        let round = room.once_within(60).await?;
        ensure!(round.status == 2, "{}", round.summary);
        let problem = round.summary["sourceProblem"].as_str().unwrap_or_default();
        ensure!(problem.contains("case.yaml:1: /metadata/namespace"), "{problem}");
        let mut asked = cluster.audit().by(name).await?;
        asked.retain(|request| request.writes() || request.rehearses());
        crate::world::none("it asked for", &asked)
    })
}
