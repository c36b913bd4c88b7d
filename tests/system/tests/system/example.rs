//! `examples/shop` and `deploy/install.yaml`: valid for a real API server, with no host at all.

use crate::world::{Test, run, say, shared};
use anyhow::{Result, ensure};
use serde_json::Value;
use trimtab_system_tests::{Cluster, documents, objects_in, workspace};

async fn all_valid(cluster: &Cluster, user: &str, objects: Vec<Value>) -> Result<()> {
    let api = cluster.user(user)?;
    for object in objects {
        api.apply(&object).await?;
    }
    Ok(())
}

fn needs_first(object: &Value) -> u8 {
    match object["kind"].as_str() {
        Some("Namespace") => 0,
        Some("CustomResourceDefinition") => 1,
        Some("Campaign") => 3,
        _ => 2,
    }
}

#[test]
fn every_object_of_the_example_is_valid_for_the_api_server() -> Test {
    run(async {
        // Of its own: the namespace and the kind of the example are there once in a cluster.
        let cluster = Cluster::start(&say).await?;
        let mut objects = objects_in(&workspace().join("examples/shop"))?;
        ensure!(objects.len() >= 20, "the example has {} objects", objects.len());
        objects.sort_by_key(needs_first);
        all_valid(&cluster, "example", objects).await
    })
}

#[test]
fn every_object_of_the_install_file_is_valid_for_the_api_server() -> Test {
    run(async {
        let cluster = shared().await?;
        let text = std::fs::read_to_string(workspace().join("deploy/install.yaml"))?;
        all_valid(cluster, "install", documents(&text)?).await
    })
}
