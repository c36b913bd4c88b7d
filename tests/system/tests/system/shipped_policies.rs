//! The page of our policies says what they do: its configurations are ones that they read, and its table
//! of controls is theirs.

use crate::world::{Test, run};
use anyhow::{Context as _, Result, ensure};
use std::fs;
use trimtab_plugin_policy_images::Images;
use trimtab_plugin_policy_pod_security::{CONTROLS, PodSecurity};
use trimtab_plugin_policy_protected::Protected;
use trimtab_plugin_policy_required::Required;
use trimtab_plugin_policy_secrets::Secrets;
use trimtab_sdk::testing::ReviewCase;
use trimtab_sdk::{Policy, ReviewVerdict};
use trimtab_system_tests::workspace;

const CONFIG_MAP: &str =
    r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"shop"}}"#;

#[test]
fn the_configurations_on_the_page_of_our_policies_are_read_and_one_misspelt_key_is_not() -> Test {
    run(async {
        check::<PodSecurity>("policy-pod-security")?;
        check::<Images>("policy-images")?;
        check::<Required>("policy-required")?;
        check::<Protected>("policy-protected")?;
        check::<Secrets>("policy-secrets")
    })
}

#[test]
fn the_page_of_our_policies_has_every_control_of_the_pod_security_standards_with_its_level() -> Test
{
    run(async {
        let page = section("policy-pod-security")?;
        for control in CONTROLS {
            let begins = format!("| `{}` | {}", control.name, control.level);
            ensure!(page.lines().any(|line| line.starts_with(&begins)), "no row {begins:?}");
        }
        Ok(())
    })
}

fn check<T: Policy>(name: &str) -> Result<()> {
    let section = section(name)?;
    let (_, block) = section.split_once("```yaml\n").context("no configuration")?;
    let (yaml, _) = block.split_once("```").context("no end of the configuration")?;
    let configuration: serde_json::Value = serde_saphyr::from_str(yaml).context(name.to_owned())?;
    let case = ReviewCase::new().desired(CONFIG_MAP);
    let verdict = case.clone().configuration(configuration.to_string()).run::<T>();
    ensure!(verdict == ReviewVerdict::Allow, "{name}: {verdict:?}");
    // Each key counts: with one letter more it is none.
    for key in configuration.as_object().context("no object")?.keys() {
        let misspelt = serde_json::json!({format!("{key}s"): null}).to_string();
        let ReviewVerdict::Deny(reasons) = case.clone().configuration(misspelt).run::<T>() else {
            anyhow::bail!("{name} takes {key}s")
        };
        ensure!(reasons.iter().all(|reason| reason.control == "configuration"), "{reasons:?}");
    }
    Ok(())
}

/// What the page says of one policy.
fn section(name: &str) -> Result<String> {
    let page = fs::read_to_string(workspace().join("docs/shipped-policies.md"))?;
    let (_, rest) = page.split_once(&format!("\n## {name}\n")).context(name.to_owned())?;
    Ok(rest.split("\n## ").next().unwrap_or_default().to_owned())
}
