//! The answer as a unified diff from live to desired, as users of `kubectl diff` know it.
//!
//! Each object is shown as YAML with sorted keys, without what a server keeps for itself. The
//! desired side is live with the differences made good: so what is shown to differ is exactly what
//! was found to differ, and everything around it is the context.

use super::answer::{Answer, Judged, Verdict};
use super::paint::{Ink, Paint};
use anyhow::Context as _;
use similar::TextDiff;
use trimtab_core::decision::Difference;
use trimtab_core::edit;
use trimtab_core::identity::Gvk;
use trimtab_core::redact::Redactor;
use trimtab_json::{Path, Value};

/// Lines around a difference, as `diff -u` has them.
const CONTEXT: usize = 3;
/// What a server keeps in `metadata` for itself.
const NOISE: [&str; 6] =
    ["managedFields", "uid", "resourceVersion", "generation", "creationTimestamp", "selfLink"];

/// One diff after the other, in the answer's order.
pub(super) fn unified(
    answer: &Answer,
    redactor: &Redactor,
    paint: Paint,
) -> anyhow::Result<String> {
    let mut text = String::new();
    for judged in &answer.objects {
        let path = judged.object.path();
        let (live, desired) = sides(judged, redactor)
            .with_context(|| format!("{} cannot be shown", judged.object))?;
        let diff = TextDiff::from_lines(&live, &desired)
            .unified_diff()
            .context_radius(CONTEXT)
            .header(&format!("live/{path}"), &format!("desired/{path}"))
            .to_string();
        for line in diff.lines() {
            let line = match line.as_bytes() {
                [b'-', b'-', b'-', ..] | [b'+', b'+', b'+', ..] => paint.ink(Ink::Heading, line),
                [b'-', ..] => paint.ink(Ink::Removed, line),
                [b'+', ..] => paint.ink(Ink::Added, line),
                [b'@', ..] => paint.ink(Ink::Place, line),
                _ => line.to_owned(),
            };
            text.push_str(&line);
            text.push('\n');
        }
    }
    Ok(text)
}

/// What a diff cannot say, a line each.
pub(super) fn remarks(answer: &Answer) -> impl Iterator<Item = String> {
    let objects = answer.objects.iter().filter(|judged| {
        judged.verdict != Verdict::InSync
            && (!judged.reason.is_empty() || judged.verdict == Verdict::Unknown)
    });
    let objects = objects.map(|judged| {
        let colon = if judged.reason.is_empty() { "" } else { ": " };
        format!("{} {}{colon}{}", judged.verdict.as_str(), judged.object, judged.reason)
    });
    objects.chain(answer.errors.iter().map(|error| error.message.clone()))
}

/// Live and desired as YAML; empty where there is none.
fn sides(judged: &Judged, redactor: &Redactor) -> anyhow::Result<(String, String)> {
    let kind = Gvk::from_api_version(&judged.object.api_version, &judged.object.kind).group_kind();
    let read = |json| trimtab_json::parse(json).context("it is no JSON");
    match (judged.verdict, &judged.live, &judged.desired) {
        (Verdict::Missing, _, Some(desired)) => {
            let mut desired = read(desired)?;
            redactor.object(&kind, &mut desired);
            Ok((String::new(), yaml(&desired)?))
        }
        (Verdict::Drift | Verdict::Refused, Some(live), _) => {
            let mut live = read(live)?;
            tidy(&mut live);
            redactor.object(&kind, &mut live);
            let mut desired = live.clone();
            correct(&mut desired, &judged.differences)?;
            Ok((yaml(&live)?, yaml(&desired)?))
        }
        _ => Ok(Default::default()),
    }
}

/// Makes the differences good.
fn correct<'a>(object: &mut Value<'a>, differences: &'a [Difference]) -> anyhow::Result<()> {
    let mut gone = Vec::new();
    for difference in differences {
        let path = Path::parse(&difference.path)
            .map_err(|error| anyhow::anyhow!("{} is no path: {error}", difference.path))?;
        match &difference.desired {
            Some(json) => {
                let value = trimtab_json::parse(json).context("a value is no JSON")?;
                edit::set(object, &path, value);
            }
            None => gone.extend(path.pointer(object)),
        }
    }
    // From the back, so that a removal does not move what the next one names.
    gone.sort_by_cached_key(|pointer| std::cmp::Reverse(edit::order(pointer)));
    for pointer in gone {
        edit::remove(object, &pointer);
    }
    Ok(())
}

fn tidy(object: &mut Value<'_>) {
    let Some(root) = object.as_object_mut() else { return };
    root.remove("status");
    if let Some(Value::Object(metadata)) = root.get_mut("metadata") {
        metadata.retain(|name, _| !NOISE.contains(&name));
    }
}

/// With the members of every object in the order of their names.
fn yaml(value: &Value<'_>) -> anyhow::Result<String> {
    let mut json = Vec::new();
    trimtab_json::canonical(value, &mut json);
    let value: serde_json::Value = serde_json::from_slice(&json)?;
    Ok(serde_saphyr::to_string(&value)?)
}

#[cfg(test)]
mod tests {
    use super::super::answer::Named;
    use super::*;
    use trimtab_core::decision::DifferenceKind;

    fn difference(path: &str, desired: Option<&str>, live: Option<&str>) -> Difference {
        Difference {
            path: path.into(),
            kind: DifferenceKind::Changed,
            desired: desired.map(|json| json.as_bytes().to_vec()),
            live: live.map(|json| json.as_bytes().to_vec()),
            immutable: None,
            managers: vec![],
        }
    }

    fn judged(verdict: Verdict, kind: &str, json: &str, differences: Vec<Difference>) -> Judged {
        let api = if kind == "Deployment" { "apps/v1" } else { "v1" };
        let object = Named::new(&Gvk::from_api_version(api, kind), "shop", "web");
        let json = || Some(json.as_bytes().into());
        Judged {
            differences,
            desired: json(),
            live: json(),
            ..Judged::new(object, verdict, String::new())
        }
    }

    fn shown(judged: Judged) -> String {
        let mut answer = Answer::default();
        answer.objects.push(judged);
        let redactor = Redactor::new([7; 32]);
        unified(&answer, &redactor, Paint::new(clap::ColorChoice::Never)).unwrap()
    }

    const LIVE: &str = r#"{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"uid":"u","name":"web","managedFields":[]},"status":{"replicas":5},"spec":{"replicas":5,"template":{"spec":{"volumes":[],"containers":[{"name":"web","image":"evil:1"},{"name":"extra","image":"x"}]}}}}"#;

    #[test]
    fn a_drifted_object_is_a_unified_diff_with_sorted_keys_and_context() {
        let differences = vec![
            difference("/spec/replicas", Some("2"), Some("5")),
            difference(
                "/spec/template/spec/containers/[name=web]/image",
                Some(r#""web:1""#),
                Some(r#""evil:1""#),
            ),
            difference("/spec/template/spec/containers/[name=extra]", None, Some("{}")),
        ];
        let expected = "\
--- live/apps/v1/Deployment/shop/web
+++ desired/apps/v1/Deployment/shop/web
@@ -3,12 +3,10 @@
 metadata:
   name: web
 spec:
-  replicas: 5
+  replicas: 2
   template:
     spec:
       containers:
-      - image: evil:1
+      - image: web:1
         name: web
-      - image: x
-        name: extra
       volumes: []
";
        assert_eq!(shown(judged(Verdict::Drift, "Deployment", LIVE, differences)), expected);
    }

    #[test]
    fn a_missing_object_is_added_whole_and_one_in_sync_is_not_shown() {
        let json = r#"{"kind":"ConfigMap","apiVersion":"v1","data":{"text":"a\nb\n"}}"#;
        let expected = "\
--- live/v1/ConfigMap/shop/web
+++ desired/v1/ConfigMap/shop/web
@@ -0,0 +1,6 @@
+apiVersion: v1
+data:
+  text: |
+    a
+    b
+kind: ConfigMap
";
        assert_eq!(shown(judged(Verdict::Missing, "ConfigMap", json, vec![])), expected);
        assert_eq!(shown(judged(Verdict::InSync, "ConfigMap", json, vec![])), "");
    }

    #[test]
    fn no_value_of_a_secret_is_in_a_diff_or_its_context() {
        let json =
            r#"{"kind":"Secret","apiVersion":"v1","data":{"a":"aHVudGVyMg==","b":"c3dvcmRmaXNo"}}"#;
        let redactor = Redactor::new([7; 32]);
        let kind = Gvk::from_api_version("v1", "Secret").group_kind();
        let found = [difference("/data/a", Some(r#""bmV3""#), Some(r#""aHVudGVyMg==""#))];
        let differences = redactor.differences(&kind, &found);
        let text = shown(judged(Verdict::Drift, "Secret", json, differences));
        for hidden in ["aHVudGVyMg==", "c3dvcmRmaXNo", "bmV3"] {
            assert!(!text.contains(hidden), "{text}");
        }
        assert!(
            text.contains("-  a: fingerprint:") && text.contains("+  a: fingerprint:"),
            "{text}"
        );
        assert!(text.contains("   b: fingerprint:"), "{text}");
    }
}
