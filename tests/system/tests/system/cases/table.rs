//! The table in `tests/system/cases/README.md`: each public report, and the cases that stand for it.
//!
//! It is made of the cases and of [`ELSEWHERE`]; `TRIMTAB_UPDATE=1` writes it anew.

use super::form::{Case, OnServer};
use super::{all, folder};
use crate::world::say;
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use trimtab_system_tests::workspace;

const BEGIN: &str = "<!-- the table: made by table.rs -->\n";

/// Reports that no case of two objects can stand for, with where they are answered.
const ELSEWHERE: &[(&str, &str)] = &[
    ("f-job-ttl", "`a_job_that_its_ttl_removed_is_not_made_anew_until_its_manifest_is_another`"),
    (
        "f-stuck-finalizer-does-not-block",
        "`what_says_so_is_held_or_is_not_ours_stays_and_blocks_nobody`",
    ),
    (
        "g-cache-tampered",
        "`a_commit_that_somebody_put_into_the_mirror_in_anothers_place_is_never_applied`: what is kept of a repository is held against its ids; there is no cache of rendered objects, and compiled plugins are kept under a MAC (`host/wasm`)",
    ),
    (
        "g-empty-impersonation",
        "`an_account_has_two_names_and_neither_is_empty`: what a request is made as cannot be empty, and `host/kube/src/impersonate.rs` sends none that is",
    ),
    (
        "g-good-signature-misread",
        "`every_kind_of_openpgp_key_is_judged_as_git_judges_it_or_stricter`: signatures are checked in the process, and nobody's text is read",
    ),
    (
        "g-kubeconfig-exec",
        "no source can bring a kubeconfig: a key that is not known is an error of the configuration, and the host's own is its administrator's",
    ),
    (
        "g-path-traversal",
        "`a_repository_of_kustomizations_is_refused_by_each_of_them`: nothing that one names is opened",
    ),
    (
        "g-signed-tag-accepted",
        "`a_signed_tag_is_taken_where_tags_count`, `the_signature_of_a_tag_counts_only_where_tags_were_said_to_count`",
    ),
    (
        "g-stale-render-cache",
        "nothing is rendered; of what is kept between commits: `what_is_kept_of_one_commit_is_never_shown_for_another`",
    ),
    (
        "g-submodule-private",
        "`a_submodule_beside_the_sources_folder_does_not_concern_it`, `modes_that_git_does_not_have_submodules_and_pointers_are_not_followed`",
    ),
    (
        "g-symlink-leaves-and-returns",
        "`links_that_leave_the_root_are_refused_and_not_followed`, in Git `links_that_leave_the_folder_are_refused_and_what_they_lead_to_is_not_shown`",
    ),
    (
        "g-symlink-out",
        "`links_that_leave_the_root_are_refused_and_not_followed`, in Git `links_that_leave_the_folder_are_refused_and_what_they_lead_to_is_not_shown`",
    ),
    (
        "g-unsigned-commit-in-range",
        "`a_signed_merge_that_brings_an_unsigned_branch_is_refused_at_the_unsigned_commit`",
    ),
    (
        "k-nameless-inventory",
        "`what_is_not_understood_is_refused_whole` and `an_object_without_a_name_never_enters` in host/core/src/inventory",
    ),
    (
        "p-commit-changes-mid-read",
        "`a_tree_that_never_rests_is_not_half_read`, in Git `what_is_committed_while_a_commit_is_read_is_of_the_next_one`",
    ),
    (
        "p-copied-owner-labels",
        "`what_says_so_is_held_or_is_not_ours_stays_and_blocks_nobody`, and for an owner `an_object_that_says_so_or_has_another_owner_stays`",
    ),
    (
        "p-empty-guard-bypass",
        "`a_source_that_declares_nothing_prunes_nothing_whatever_else_is_there`",
    ),
    ("p-list-forbidden", "`where_something_is_not_known_nothing_is_deleted`"),
    (
        "p-mass-prune",
        "`a_mass_deletion_waits_for_exactly_its_digest_and_an_emptied_source_deletes_nothing`",
    ),
    (
        "p-moved-between-owners",
        "`an_object_that_another_source_declares_now_is_handed_over_and_never_deleted`",
    ),
    ("p-namespace-in-use", "`a_namespace_with_what_others_have_in_it_waits_for_a_word_of_its_own`"),
    (
        "p-source-path-missing",
        "`tests/system/sources/` and `host/source/tests/directory.rs`: a path that is not there is `source_missing`, and nothing is written",
    ),
    ("p-survivors-kept", "`a_deletion_that_is_refused_stays_in_the_inventory_and_stops_no_other`"),
    (
        "w-hpa-dry-run-duplicate-metric",
        "an old server's answer cannot be made by this one: `sdk/compare/tests/lists.rs` has it",
    ),
    (
        "w-ignore-respected-on-other-change",
        "`an_ignored_field_is_made_with_the_object_and_then_never_written_though_others_drift`",
    ),
    (
        "z-same-message-status-honest",
        "`a_deletion_that_is_refused_stays_in_the_inventory_and_stops_no_other`: a round with `prune_failed` ends with 1",
    ),
];

#[test]
fn the_table_of_reports_is_that_of_the_cases() -> Result<()> {
    let file = folder().join("README.md");
    let text = std::fs::read_to_string(&file)?;
    let (head, now) = text.split_once(BEGIN).context("README.md has no table")?;
    let table = table(&all()?);
    if std::env::var_os("TRIMTAB_UPDATE").is_some() {
        std::fs::write(&file, format!("{head}{BEGIN}{table}"))?;
        return Ok(());
    }
    ensure!(now == table, "the table is old: run this test with TRIMTAB_UPDATE=1");
    Ok(())
}

#[test]
fn every_report_of_the_shared_file_is_in_the_table() -> Result<()> {
    let file = workspace().join("../shared/cases/drift.yaml");
    let Ok(text) = std::fs::read_to_string(&file) else {
        say(&format!("skipped: there are no reports at {}", file.display()));
        return Ok(());
    };
    let reports: Vec<Value> = serde_saphyr::from_str(&text)?;
    let cases = all()?;
    let told: BTreeSet<&str> = cases
        .iter()
        .flat_map(|case| case.reports.iter().map(String::as_str))
        .chain(ELSEWHERE.iter().map(|(id, _)| *id))
        .collect();
    let ids: BTreeSet<&str> = reports.iter().filter_map(|report| report["id"].as_str()).collect();
    let untold: Vec<_> = ids.difference(&told).collect();
    ensure!(untold.is_empty(), "{} reports have no case and no note: {untold:?}", untold.len());
    let unknown: Vec<_> = told.difference(&ids).collect();
    ensure!(unknown.is_empty(), "there are no such reports: {unknown:?}");
    Ok(())
}

fn table(cases: &[Case]) -> String {
    let mut rows: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for case in cases {
        let offline = case.known.as_ref().map_or("yes".into(), |why| format!("known: {why}"));
        let (server, note) = match &case.server {
            OnServer::No(why) => (format!("no: {why}"), ""),
            OnServer::Yes(way) => match &way.known {
                Some(why) => (format!("known: {why}"), &*way.note),
                None => ("yes".into(), &*way.note),
            },
        };
        for report in &case.reports {
            let row = format!("{} ({}) | {offline} | {server} | {note}", case.name, case.namespace);
            rows.entry(report).or_default().push(row);
        }
    }
    for (id, note) in ELSEWHERE {
        rows.entry(id).or_default().push(format!("| | | {note}"));
    }
    let mut table = String::from(
        "\n| report | case | offline | server | note |\n| --- | --- | --- | --- | --- |\n",
    );
    for (report, rows) in rows {
        for row in rows {
            let _ = writeln!(table, "| `{report}` | {row} |");
        }
    }
    let siblings = cases.iter().filter(|case| case.reports.is_empty()).count();
    let _ = writeln!(
        table,
        "\n{} cases in all: {} stand for reports, {siblings} are siblings that no report names.",
        cases.len(),
        cases.len() - siblings
    );
    table
}
