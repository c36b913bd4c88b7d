//! The answer for people: field by field, both values, who wrote the live one and when.

use super::answer::{Answer, Verdict};
use super::paint::{Ink, Paint};
use crate::journal::ManagerLine;
use std::fmt::Write as _;
use trimtab_core::decision::Difference;

pub(super) fn table(answer: &Answer, paint: Paint) -> String {
    let mut text = String::new();
    for judged in answer.objects.iter().filter(|judged| judged.verdict != Verdict::InSync) {
        let colon = if judged.reason.is_empty() { "" } else { ": " };
        let heading = format!("{} {}", judged.verdict.as_str(), judged.object);
        let _ = writeln!(text, "{}{colon}{}", paint.ink(Ink::Heading, &heading), judged.reason);
        for difference in &judged.differences {
            field(&mut text, difference, paint);
        }
    }
    for error in &answer.errors {
        let _ = writeln!(text, "{} {}", paint.ink(Ink::Removed, "error"), error.message);
    }
    let count = |verdict| answer.count(verdict);
    let (sync, drift, missing) =
        (count(Verdict::InSync), count(Verdict::Drift), count(Verdict::Missing));
    let all = answer.objects.len();
    let other = all - sync - drift - missing;
    let _ = writeln!(
        text,
        "{all} objects: {sync} in sync, {drift} drifted, {missing} missing, {other} other"
    );
    text
}

fn field(text: &mut String, difference: &Difference, paint: Paint) {
    let side = |value: &Option<Vec<u8>>| match value {
        Some(json) => String::from_utf8_lossy(json).into_owned(),
        None => "absent".to_owned(),
    };
    let path = if difference.path.is_empty() { "(the object)" } else { &difference.path };
    let _ = writeln!(text, "  {} {}", paint.ink(Ink::Place, path), difference.kind.as_str());
    let live = format!("- live     {}", side(&difference.live));
    let desired = format!("+ desired  {}", side(&difference.desired));
    let _ = writeln!(text, "    {}", paint.ink(Ink::Removed, &live));
    let _ = writeln!(text, "    {}", paint.ink(Ink::Added, &desired));
    for manager in &difference.managers {
        let _ = writeln!(text, "    {}", paint.ink(Ink::Faint, &ManagerLine::from(manager).told()));
    }
}

#[cfg(test)]
mod tests {
    use super::super::answer::{Judged, Named};
    use super::*;
    use trimtab_core::decision::{DifferenceKind, Manager};
    use trimtab_core::identity::Gvk;

    fn answer() -> Answer {
        let object =
            |name| Named::new(&Gvk::from_api_version("apps/v1", "Deployment"), "shop", name);
        let mut drifted = Judged::new(object("web"), Verdict::Drift, String::new());
        drifted.differences.push(Difference {
            path: "/spec/template/spec/containers/[name=web]/image".into(),
            kind: DifferenceKind::Changed,
            desired: Some(br#""web:1""#.to_vec()),
            live: Some(br#""evil:1""#.to_vec()),
            immutable: None,
            managers: vec![Manager {
                name: "kubectl-edit".into(),
                operation: "Update".into(),
                subresource: String::new(),
                time: "2026-01-02T03:04:05Z".into(),
            }],
        });
        let mut answer = Answer::default();
        answer.objects.push(drifted);
        answer.objects.push(Judged::new(object("api"), Verdict::InSync, String::new()));
        answer.objects.push(Judged::new(object("db"), Verdict::Unknown, "forbidden".into()));
        answer
    }

    #[test]
    fn the_table_names_each_field_its_values_and_its_writer() {
        let expected = "\
drift Deployment shop/web
  /spec/template/spec/containers/[name=web]/image changed
    - live     \"evil:1\"
    + desired  \"web:1\"
    written by kubectl-edit (Update) at 2026-01-02T03:04:05Z, according to managedFields
unknown Deployment shop/db: forbidden
3 objects: 1 in sync, 1 drifted, 0 missing, 1 other
";
        assert_eq!(table(&answer(), Paint::new(clap::ColorChoice::Never)), expected);
    }

    #[test]
    fn colours_are_there_when_they_are_asked_for() {
        let text = table(&answer(), Paint::new(clap::ColorChoice::Always));
        assert!(text.contains("\x1b[31m- live     \"evil:1\"\x1b[0m"), "{text}");
        assert!(text.contains("\x1b[32m+ desired  \"web:1\"\x1b[0m"), "{text}");
    }
}
