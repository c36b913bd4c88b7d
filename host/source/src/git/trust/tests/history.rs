//! Ranges, merges, tags and steps in history.

use super::super::*;
use super::world::*;

/// A repository with two signers and one commit that was accepted.
fn room() -> Option<(World, Key, Commit)> {
    let world = World::new()?;
    let alice = world.ssh("ed25519", "", "alice");
    world.allow(&[world.line(&alice, "")], &[]);
    let first = world.change("a.yaml", "1", Some(&alice));
    Some((world, alice, first))
}

#[test]
fn an_unsigned_commit_between_two_signed_ones_is_refused_where_every_one_is_checked() {
    let Some((world, alice, first)) = room() else { return };
    let unsigned = world.change("a.yaml", "2", None);
    let last = world.change("a.yaml", "3", Some(&alice));
    let refused =
        judge_since(&world, last, Some(first), &world.verification(Mode::Every)).unwrap_err();
    assert_eq!((refused.commit, refused.reason.code()), (unsigned, "signature_missing"));
    // The head's signer vouches for it where that was chosen.
    assert_eq!(
        word(&judge_since(&world, last, Some(first), &world.verification(Mode::Head))),
        "ok"
    );
    // From the unsigned one on, which somebody accepted before, all are signed.
    let accepted =
        judge_since(&world, last, Some(unsigned), &world.verification(Mode::Every)).unwrap();
    assert_eq!(accepted.checked, 1);
}

#[test]
fn a_signed_merge_that_brings_an_unsigned_branch_is_refused_at_the_unsigned_commit() {
    let Some((world, alice, first)) = room() else { return };
    world.git(&["checkout", "-q", "-b", "topic"]);
    world.change("b.yaml", "1", Some(&alice));
    let unsigned = world.change("b.yaml", "2", None);
    world.change("b.yaml", "3", Some(&alice));
    world.git(&["checkout", "-q", "main"]);
    world.change("a.yaml", "2", Some(&alice));
    world.make(&["merge", "-q", "--no-ff", "-m", "merge", "topic"], Some(&alice));
    let merge = world.head();
    let refused =
        judge_since(&world, merge, Some(first), &world.verification(Mode::Every)).unwrap_err();
    assert_eq!((refused.commit, refused.reason.code()), (unsigned, "signature_missing"));
    assert_eq!(
        word(&judge_since(&world, merge, Some(first), &world.verification(Mode::Head))),
        "ok"
    );
    // An old branch that was merged before is not new because it is old.
    let next = world.change("a.yaml", "3", Some(&alice));
    let accepted =
        judge_since(&world, next, Some(merge), &world.verification(Mode::Every)).unwrap();
    assert_eq!(accepted.checked, 1);
}

#[test]
fn a_first_run_checks_the_head_alone_or_all_after_the_configured_beginning() {
    let Some((world, alice, _)) = room() else { return };
    let beginning = world.change("a.yaml", "2", None);
    let unsigned = world.change("a.yaml", "3", None);
    let head = world.change("a.yaml", "4", Some(&alice));
    let every = world.verification(Mode::Every);
    assert_eq!(word(&judge(&world, head, &every)), "ok");
    let since = |since| Verification { since: Some(since), ..every.clone() };
    let refused = judge(&world, head, &since(beginning)).unwrap_err();
    assert_eq!((refused.commit, refused.reason.code()), (unsigned, "signature_missing"));
    assert_eq!(word(&judge(&world, head, &since(unsigned))), "ok");
    world.git(&["checkout", "-q", "--orphan", "elsewhere"]);
    let elsewhere = world.change("z.yaml", "1", Some(&alice));
    assert_eq!(word(&judge(&world, head, &since(elsewhere))), "since_not_in_history");
    // What was accepted comes before what was configured.
    assert_eq!(word(&judge_since(&world, head, Some(unsigned), &since(beginning))), "ok");
}

#[test]
fn clocks_of_committers_that_differ_make_no_old_commit_new() {
    let Some((world, alice, _)) = room() else { return };
    // An unsigned past, the last of it dated in the future; then a branch dated long before it.
    for text in ["2", "3", "4"] {
        world.change("a.yaml", text, None);
    }
    world.at.set(NOW + 1000 * DAY);
    let accepted = world.change("a.yaml", "5", None);
    world.git(&["checkout", "-q", "-b", "topic", "HEAD~2"]);
    world.at.set(NOW - 5 * DAY);
    world.change("b.yaml", "1", Some(&alice));
    world.git(&["checkout", "-q", "main"]);
    world.make(&["merge", "-q", "--no-ff", "-m", "merge", "topic"], Some(&alice));
    let every = world.verification(Mode::Every);
    let judged = judge_since(&world, world.head(), Some(accepted), &every).unwrap();
    assert_eq!(judged.checked, 2);
}

#[test]
fn the_signature_of_a_tag_counts_only_where_tags_were_said_to_count() {
    let Some((world, alice, _)) = room() else { return };
    let commit = world.change("a.yaml", "2", None);
    world.make(&["tag", "-s", "-m", "release", "v1"], Some(&alice));
    world.make(&["tag", "-a", "-m", "release", "v2"], None);
    world.make(&["tag", "v3"], None);
    let tagged = |name: &str| {
        let (name, object) = (name.to_owned(), world.id(name));
        let tag =
            if object == commit { Tag::Light { name } } else { Tag::Annotated { name, object } };
        Target { commit, tag }
    };
    let judge = |target: &Target, tags| {
        let wanted = Verification { tags, ..world.verification(Mode::Head) };
        verify(&world.objects(), target, None, &wanted, moment(NOW + DAY))
    };
    assert!(world.git_trusts("verify-tag", world.id("v1")));
    assert_eq!(word(&judge(&tagged("v1"), false)), "signature_of_tag_only");
    let accepted = judge(&tagged("v1"), true).unwrap();
    assert!(accepted.by_tag);
    assert_eq!(accepted.signer.principal, "alice@example.com");
    assert_eq!(word(&judge(&tagged("v2"), true)), "signature_missing");
    assert_eq!(word(&judge(&tagged("v3"), true)), "tag_not_annotated");
    assert_eq!(word(&judge(&tagged("v3"), false)), "signature_missing");

    // The same object under another name: an old release as a new one.
    let object = world.id("v1");
    let replayed = Target { commit, tag: Tag::Annotated { name: "v9".into(), object } };
    assert_eq!(word(&judge(&replayed, true)), "tag_under_another_name");

    // Over another commit, and over other words: Git says the same of both.
    let other = world.change("a.yaml", "3", None);
    let raw = String::from_utf8(world.raw("tag", object)).unwrap();
    for forged in
        [raw.replace(&commit.to_string(), &other.to_string()), raw.replace("release", "revenge")]
    {
        let commit = if forged.contains(&other.to_string()) { other } else { commit };
        let object = world.store("tag", forged.as_bytes());
        assert!(!world.git_trusts("verify-tag", object));
        let target = Target { commit, tag: Tag::Annotated { name: "v1".into(), object } };
        assert_eq!(word(&judge(&target, true)), "signature_over_other_bytes");
    }
    // A good commit does not make up for a bad tag.
    let signed = world.change("a.yaml", "4", Some(&alice));
    let forged = raw.replace(&commit.to_string(), &signed.to_string());
    let object = world.store("tag", forged.as_bytes());
    let target = Target { commit: signed, tag: Tag::Annotated { name: "v1".into(), object } };
    assert_eq!(word(&judge(&target, true)), "signature_over_other_bytes");
    assert_eq!(word(&judge(&target, false)), "ok");
    // A tag of another commit than the one that would be applied.
    let target = Target {
        commit: signed,
        tag: Tag::Annotated { name: "v1".into(), object: world.id("v1") },
    };
    assert_eq!(word(&judge(&target, true)), "object_damaged");
}

#[test]
fn a_merge_is_not_signed_by_the_signed_tag_that_it_merges() {
    let Some((world, alice, first)) = room() else { return };
    world.git(&["checkout", "-q", "-b", "topic"]);
    world.change("b.yaml", "1", Some(&alice));
    world.make(&["tag", "-s", "-m", "topic", "t1"], Some(&alice));
    world.git(&["checkout", "-q", "main"]);
    world.make(&["merge", "-q", "--no-ff", "-m", "merge", "t1"], None);
    let unsigned = world.head();
    assert!(String::from_utf8(world.raw("commit", unsigned)).unwrap().contains("\nmergetag "));
    let refused =
        judge_since(&world, unsigned, Some(first), &world.verification(Mode::Head)).unwrap_err();
    assert_eq!(refused.reason, Reason::OnlyWhatWasMergedIsSigned);
    world.git(&["reset", "-q", "--hard", &first.to_string()]);
    world.make(&["merge", "-q", "--no-ff", "-m", "merge", "t1"], Some(&alice));
    let signed = world.head();
    assert!(world.git_trusts("verify-commit", signed));
    assert_eq!(
        word(&judge_since(&world, signed, Some(first), &world.verification(Mode::Every))),
        "ok"
    );
}

fn step(world: &World, accepted: &[Commit], new: Commit, allowed: Option<Commit>) -> &'static str {
    match judge_step(&world.objects(), accepted, new, allowed) {
        Step::First => "first",
        Step::Same => "same",
        Step::Forward => "forward",
        Step::Allowed => "allowed",
        Step::Refused(refused) => refused.reason.code(),
    }
}

#[test]
fn a_step_back_is_refused_whichever_way_it_is_made() {
    let Some((world, alice, first)) = room() else { return };
    let second = world.change("a.yaml", "2", Some(&alice));
    world.make(&["tag", "-s", "-m", "old", "v1"], Some(&alice));
    let third = world.change("a.yaml", "3", Some(&alice));
    assert_eq!(step(&world, &[], first, None), "first");
    assert_eq!(step(&world, &[third], third, None), "same");
    assert_eq!(step(&world, &[first], third, None), "forward");
    // A branch that was rewound, a tag that was replayed: one commit each.
    assert_eq!(step(&world, &[third], second, None), "history_stepped_back");
    assert_eq!(step(&world, &[third], world.id("v1^{commit}"), None), "history_stepped_back");
    // A force-push beside it, also a signed one, and one without any common past.
    world.git(&["checkout", "-q", "-b", "beside", &second.to_string()]);
    let beside = world.change("a.yaml", "other", Some(&alice));
    assert_eq!(step(&world, &[third], beside, None), "history_stepped_back");
    world.git(&["checkout", "-q", "--orphan", "elsewhere"]);
    let elsewhere = world.commit(Some(&alice));
    assert_eq!(step(&world, &[third], elsewhere, None), "history_stepped_back");
    // What was accepted is gone from the mirror.
    let gone: Commit = "1111111111111111111111111111111111111111".parse().unwrap();
    assert_eq!(step(&world, &[gone], third, None), "history_stepped_back");
    // A merge of what was accepted goes on, whichever parent it is.
    world.git(&["checkout", "-q", "beside"]);
    world.make(&["merge", "-q", "-s", "ours", "-m", "merge", "main"], Some(&alice));
    assert_eq!(step(&world, &[third], world.head(), None), "forward");
    // A memory that is old, beside another that is not: the newer one holds.
    assert_eq!(step(&world, &[first, third], second, None), "history_stepped_back");
    assert_eq!(step(&world, &[third, first], third, None), "forward");
}

#[test]
fn what_a_person_allowed_is_taken_once_and_nothing_else_is() {
    let Some((world, alice, first)) = room() else { return };
    let second = world.change("a.yaml", "2", Some(&alice));
    let memory = Memory::new(world.path("state/sources/shop"));
    assert_eq!((memory.accepted(), memory.allowed()), (Ok(None), Ok(None)));
    let remember = |commit| {
        let taken = Remembered { commit, at: NOW, configuration: "sha256:abc".into() };
        memory.remember(&taken).unwrap();
        assert_eq!(memory.accepted().unwrap(), Some(taken));
    };
    remember(second);
    let go = |to| {
        step(&world, &[memory.accepted().unwrap().unwrap().commit], to, memory.allowed().unwrap())
    };
    assert_eq!(go(first), "history_stepped_back");
    memory.allow(first).unwrap();
    assert_eq!(go(first), "allowed");
    world.git(&["checkout", "-q", "--orphan", "elsewhere"]);
    let elsewhere = world.commit(Some(&alice));
    assert_eq!(go(elsewhere), "history_stepped_back");
    remember(first);
    assert_eq!(memory.allowed(), Ok(None));
    // Forward again, and back: a second time is asked for a second time.
    assert_eq!(go(second), "forward");
    remember(second);
    assert_eq!(go(first), "history_stepped_back");
    // What was allowed while another revision was taken was allowed for another situation.
    memory.allow(first).unwrap();
    remember(second);
    assert_eq!(go(first), "history_stepped_back");
}

#[test]
fn a_memory_that_is_damaged_is_an_error_and_not_an_empty_one() {
    let dir = tempfile::tempdir().unwrap();
    let memory = Memory::new(dir.path());
    let id = "1".repeat(40);
    for text in [
        "",
        "{",
        r#"{"version":1,"commit":"abc","acceptedAtSeconds":1,"configuration":""}"#,
        &format!(r#"{{"version":2,"commit":"{id}","acceptedAtSeconds":1,"configuration":""}}"#),
        &format!(
            r#"{{"version":1,"commit":"{id}","acceptedAtSeconds":1,"configuration":"","x":1}}"#
        ),
    ] {
        std::fs::write(dir.path().join("accepted.json"), text).unwrap();
        let error = memory.accepted().unwrap_err().to_string();
        assert!(error.contains("accepted.json: ") && error.contains("inventory"), "{error}");
    }
    for text in ["", "main", "1111"] {
        std::fs::write(dir.path().join("allow"), text).unwrap();
        assert!(memory.allowed().unwrap_err().to_string().contains("40 hexadecimal digits"));
    }
}

#[test]
fn both_files_of_the_memory_are_the_users_alone_and_replaced_in_one_step() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("sources/shop");
    let memory = Memory::new(&folder);
    let commit: Commit = "2".repeat(40).parse().unwrap();
    memory.remember(&Remembered { commit, at: 1, configuration: "c".into() }).unwrap();
    memory.allow(commit).unwrap();
    let mode = |name: &str| folder.join(name).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("."), mode("accepted.json"), mode("allow")), (0o700, 0o600, 0o600));
    let names = std::fs::read_dir(&folder).unwrap().map(|it| it.unwrap().file_name());
    let mut names: Vec<_> = names.collect();
    names.sort();
    assert_eq!(names, ["accepted.json", "allow"]);
}

#[test]
fn a_file_is_vouched_for_by_whoever_made_it_what_it_is_and_not_by_who_signed_an_earlier_state() {
    let Some((world, alice, first)) = room() else { return };
    let (bob, carol) = (world.ssh("ed25519", "", "bob"), world.ssh("ed25519", "", "carol"));
    let lines = [&alice, &bob, &carol].map(|key| world.line(key, ""));
    world.allow(&lines, &[]);
    // Bob signs a harmless state, Alice another one on a branch, and Carol merges that.
    world.change("role.yaml", "harmless", Some(&bob));
    world.git(&["checkout", "-q", "-b", "topic"]);
    world.change("role.yaml", "powerful", Some(&alice));
    world.git(&["checkout", "-q", "main"]);
    world.make(&["merge", "-q", "--no-ff", "-m", "merge", "topic"], Some(&carol));
    let merge = world.head();
    let every = world.verification(Mode::Every);
    let judged = judge_since(&world, merge, Some(first), &every).unwrap();
    let mut names = judged.touched["role.yaml"].clone();
    names.sort();
    let principal = |key: &Key| {
        judge_since(&world, world.change("x", "x", Some(key)), Some(merge), &every)
            .unwrap()
            .signer
            .principal
    };
    assert_eq!(names, [principal(&alice), principal(&carol)]);
    // Who changes nothing of it later is not named for it, and one commit alone has one name.
    let later = world.change("other.yaml", "1", Some(&bob));
    let judged = judge_since(&world, later, Some(merge), &every).unwrap();
    assert!(!judged.touched.contains_key("role.yaml"));
    assert_eq!(judged.touched["other.yaml"], [principal(&bob)]);
}
