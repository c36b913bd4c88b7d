//! 36 hostile plugins, and what must come of each. One behaviour, one guest, one test: [`ROWS`] has
//! them all, and nothing that stands in one of the three places and not in the others builds or
//! passes.
//!
//! Each test asserts the state of the world: see `arena.rs`, where to start reading. Guests that the
//! SDK has words for are in `tests/guests/hostile`, the others in `made.rs`.

mod arena;
mod made;

mod again;
mod files;
mod powers;
mod resources;
mod words;

use crate::world::Test;
use made::Files;
use trimtab_guest_hostile::BEHAVIOURS;
use trimtab_system_tests::workspace;

/// Where a guest is.
enum Guest {
    /// The behaviour of this number in `tests/guests/hostile`.
    Sdk,
    /// Made here, in one shape or several.
    Made(fn() -> Files),
}

struct Row {
    number: u8,
    name: &'static str,
    guest: Guest,
    outcome: &'static str,
    /// The test's path within this module, and the test.
    test: &'static str,
    run: fn() -> Test,
}

macro_rules! rows {
    ($($number:literal $name:literal, $guest:expr, $outcome:literal, $module:ident $test:ident;)*) => {
        &[$(Row {
            number: $number,
            name: $name,
            guest: $guest,
            outcome: $outcome,
            test: concat!(stringify!($module), "::", stringify!($test)),
            run: $module::$test,
        }),*]
    };
}

/// The table; `tests/guests/README.md` shows it.
#[rustfmt::skip]
const ROWS: &[Row] = rows! {
    1 "infinite loop", Guest::Sdk, "interrupted at its deadline; quarantined",
        resources an_endless_loop_is_interrupted_and_its_plugin_is_called_no_more;
    2 "copies of many megabytes in a loop", Guest::Made(made::bulk_copies), "interrupted at its deadline, one copy late at most; quarantined",
        resources copies_of_many_megabytes_are_interrupted_at_the_next_turn_of_their_loop;
    3 "memory bomb", Guest::Sdk, "growth refused; quarantined",
        resources memory_beyond_its_limit_is_refused_to_a_plugin;
    4 "table bomb, instance bomb", Guest::Made(made::tables_and_instances), "growth refused; not loaded",
        resources tables_and_instances_beyond_their_limits_are_refused_to_a_plugin;
    5 "deep recursion", Guest::Sdk, "trapped; quarantined",
        resources endless_recursion_is_a_trap_and_the_host_goes_on;
    6 "huge or deep output", Guest::Sdk, "the whole answer refused, before it is held",
        resources an_answer_that_is_too_long_too_large_or_too_deep_is_refused_as_a_whole;
    7 "bad lifts: UTF-8, odd UTF-16, no such case, list beyond memory", Guest::Made(made::bad_lifts), "the pass is lost",
        resources an_answer_that_cannot_be_lifted_costs_its_pass;
    8 "giant file", Guest::Made(made::giant), "refused before it is parsed",
        files a_giant_file_is_not_parsed;
    9 "compile bomb", Guest::Made(made::bomb), "the compile worker is given up",
        files a_file_that_no_compiler_can_digest_is_given_up_and_nobody_waits_for_it;
    10 "trap or loop at the start", Guest::Made(made::starts), "the pass is lost",
        resources a_trap_or_a_loop_before_the_first_call_costs_its_pass;
    11 "panic with forged last words", Guest::Sdk, "trapped; words cut and escaped; quarantined",
        resources a_panics_last_words_are_cut_and_escaped;
    12 "wrong WIT version", Guest::Made(made::wrong_contracts), "not loaded, with the reason",
        files another_contract_is_refused_and_both_versions_are_named;
    13 "import that is not granted", Guest::Made(made::imports), "not loaded, called or not",
        files an_import_that_nobody_granted_is_refused_even_where_it_is_never_called;
    14 "handles forged, dropped twice, leaked", Guest::Made(made::handles), "the pass is lost",
        resources handles_that_are_forged_given_back_twice_or_hoarded_cost_their_pass;
    15 "time spent in host calls", Guest::Sdk, "interrupted at its deadline; quarantined",
        resources time_that_is_spent_in_the_hosts_functions_counts_for_the_deadline;
    16 "re-entrant or concurrent host calls", Guest::Made(made::reentrant), "trapped; not loaded",
        resources a_call_of_the_host_from_within_the_hosts_call_is_a_trap_and_one_that_does_not_wait_is_refused;
    17 "kind that is not granted", Guest::Sdk, "refused, in content and as an object",
        powers a_kind_that_was_not_granted_is_not_written;
    18 "write into another namespace", Guest::Sdk, "refused, in content and as an object",
        powers another_namespace_is_not_written;
    19 "cluster-scoped kind with a namespace", Guest::Sdk, "refused by discovery's scope",
        powers a_namespace_does_not_bring_a_cluster_scoped_kind_within_reach;
    20 "other version, group, subresource", Guest::Sdk, "refused as another object",
        powers another_spelling_of_a_kind_or_a_subresource_is_another_object;
    21 "names that are none", Guest::Sdk, "refused, none corrected",
        powers a_name_that_is_none_is_not_written_and_not_corrected_into_one;
    22 "List wrapper, one key twice", Guest::Sdk, "refused; the whole answer refused",
        powers a_list_around_an_object_is_refused_and_a_key_that_stands_twice_is_a_fault;
    23 "RBAC: bindings, escalate, bind, impersonate", Guest::Sdk, "hard denial",
        powers rights_are_not_written_without_a_second_word;
    24 "hostPath, privileged, host namespaces in any container", Guest::Sdk, "hard denial",
        powers a_pod_that_gets_out_of_its_walls_is_not_written_in_any_place_of_a_template;
    25 "foreign service account, token Secret, TokenRequest", Guest::Sdk, "hard denial; refused as another object",
        powers somebody_elses_service_account_or_token_is_not_taken;
    26 "webhook, CRD, APIService, CSR, PersistentVolume", Guest::Sdk, "hard denial",
        powers what_hands_out_power_is_not_written_without_a_second_word;
    27 "pod-security label of a namespace", Guest::Sdk, "hard denial, set or removed",
        powers a_namespace_is_not_opened_for_privileged_pods;
    28 "owner reference", Guest::Sdk, "refused: the host's alone",
        powers an_object_is_not_given_an_owner_by_a_plugin;
    29 "finalizer set or taken", Guest::Sdk, "refused: the host's alone",
        powers a_finalizer_is_neither_set_nor_taken_by_a_plugin;
    30 "status, managedFields, our annotations", Guest::Sdk, "refused, and a finding each",
        powers bookkeeping_that_a_plugin_writes_is_refused_and_told;
    31 "a Secret's value in words and content", Guest::Sdk, "words withheld, content refused",
        words a_secret_that_a_plugin_read_stands_in_nothing_that_it_says_or_writes;
    32 "flood, control characters, forged lines", Guest::Sdk, "bounded and escaped",
        words a_flood_is_bounded_and_no_line_of_it_is_taken_for_the_hosts;
    33 "another answer the second time", Guest::Sdk, "nothing to differ by; a difference would be refused",
        again there_is_nothing_by_which_two_answers_to_one_question_could_differ;
    34 "oscillation", Guest::Sdk, "left alone after three times",
        again a_plugin_that_undoes_what_it_wrote_is_stopped_after_three_times;
    35 "action storm, mass deletion", Guest::Sdk, "cut at the budgets of the pass and of the hour",
        again a_storm_of_actions_is_cut_and_a_mass_deletion_stops_at_its_budget;
    36 "state kept from another tenant", Guest::Sdk, "gone: each call has a fresh instance",
        again what_a_plugin_saw_of_one_tenant_is_gone_when_it_is_asked_about_another;
};

/// As many as the brief has, in order, and a row for each behaviour of the SDK's guest. This is
/// looked at by the compiler: a guest without a row, or a row without its guest, does not build.
const _: () = {
    assert!(ROWS.len() == 36, "a row for each of the 36");
    let (mut row, mut behaviour) = (0, 0);
    while row < ROWS.len() {
        assert!(ROWS[row].number as usize == row + 1, "the rows are in order");
        if matches!(ROWS[row].guest, Guest::Sdk) {
            assert!(behaviour < BEHAVIOURS.len(), "a row has no guest");
            assert!(BEHAVIOURS[behaviour].number == ROWS[row].number, "a guest has no row");
            behaviour += 1;
        }
        row += 1;
    }
    assert!(behaviour == BEHAVIOURS.len(), "a guest has no row");
};

/// The tests of this module, as the test runner knows them.
fn tests() -> Vec<String> {
    let program = std::env::current_exe().expect("this program");
    let output = std::process::Command::new(program).args(["--list", "--format", "terse"]).output();
    let output = String::from_utf8(output.expect("it lists its tests").stdout).expect("text");
    output
        .lines()
        .filter_map(|line| Some(line.strip_prefix("hostile::")?.strip_suffix(": test")?.to_owned()))
        .collect()
}

#[test]
fn every_hostile_guest_has_a_test_and_every_test_its_guest() {
    let tests = tests();
    for row in ROWS {
        assert!(tests.contains(&row.test.to_owned()), "{}: {} is no test", row.number, row.test);
        // The same function, called by nobody else.
        let _: fn() -> Test = row.run;
        if let Guest::Made(make) = &row.guest {
            let files = make();
            assert!(!files.is_empty() && files.iter().all(|(_, file)| !file.is_empty()));
        }
    }
    for test in tests.iter().filter(|test| test.contains("::")) {
        assert!(ROWS.iter().any(|row| row.test == test), "{test} stands in no row");
    }
    let folder = workspace().join("tests/guests/hostile/src/behaviours");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .expect("the guest's behaviours")
        .map(|entry| entry.expect("a file").file_name().to_string_lossy().into_owned())
        .filter(|name| name != "mod.rs")
        .collect();
    files.sort();
    let expected: Vec<String> = BEHAVIOURS
        .iter()
        .map(|it| format!("p{:02}_{}.rs", it.number, it.name.replace('-', "_")))
        .collect();
    assert_eq!(files, expected, "one file for each behaviour, named after it");
}

#[test]
fn the_table_that_people_read_is_the_table_that_is_tested() {
    let page = workspace().join("tests/guests/README.md");
    let page = std::fs::read_to_string(page).expect("tests/guests/README.md");
    for row in ROWS {
        let guest = match row.guest {
            Guest::Sdk => "SDK",
            Guest::Made(_) => "made",
        };
        let test = row.test.rsplit("::").next().unwrap_or_default();
        let line =
            format!("| {} | {} | {guest} | {} | `{test}` |", row.number, row.name, row.outcome);
        assert!(page.contains(&line), "the page has no line\n{line}");
    }
}
