//! Signers that may change some paths alone, and their ways out.

use super::super::*;
use super::world::*;

/// Alice may change everything, Bob what is in apps/bob.
struct Room {
    world: World,
    alice: Key,
    bob: Key,
    first: Commit,
}

impl Room {
    fn new() -> Option<Self> {
        let world = World::new()?;
        let (alice, bob) = (world.ssh("ed25519", "", "alice"), world.ssh("ed25519", "", "bob"));
        world.allow(&[world.line(&alice, ""), world.line(&bob, "")], &[]);
        world.write("rbac.yaml", "1");
        world.write("apps/bob/web.yaml", "1");
        let first = world.commit(Some(&alice));
        Some(Self { world, alice, bob, first })
    }

    fn wanted(&self, mode: Mode) -> Verification {
        let paths = vec!["apps/bob/**".to_owned()];
        let limits = vec![Limit { principal: "bob@example.com".into(), paths }];
        Verification { limits, ..self.world.verification(mode) }
    }

    /// The verdict over the head, with both modes, since the first commit.
    fn both(&self) -> [&'static str; 2] {
        self.since(self.first)
    }

    fn since(&self, last: Commit) -> [&'static str; 2] {
        [Mode::Head, Mode::Every].map(|mode| {
            word(&judge_since(&self.world, self.world.head(), Some(last), &self.wanted(mode)))
        })
    }
}

const OUTSIDE: [&str; 2] = ["signer_outside_paths"; 2];
const OK: [&str; 2] = ["ok"; 2];

#[test]
fn a_signer_changes_what_is_theirs_and_nothing_else() {
    let Some(room) = Room::new() else { return };
    let (world, bob) = (&room.world, Some(&room.bob));
    world.change("apps/bob/web.yaml", "2", bob);
    world.change("apps/bob/deep/er.yaml", "1", bob);
    assert_eq!(room.both(), OK);
    let reset = || {
        world.git(&["reset", "-q", "--hard", &room.first.to_string()]);
    };
    let outside = |what: &str| {
        let every = judge_since(world, world.head(), Some(room.first), &room.wanted(Mode::Every));
        let text = every.unwrap_err().to_string();
        assert!(text.contains(what) && text.contains("bob@example.com may not change"), "{text}");
        assert_eq!(room.both(), OUTSIDE, "{what}");
        reset();
    };
    reset();
    world.change("rbac.yaml", "2", bob);
    outside("rbac.yaml");
    world.change("apps/bobby/web.yaml", "2", bob);
    outside("apps/bobby/web.yaml");
    world.git(&["rm", "-q", "rbac.yaml"]);
    world.commit(bob);
    outside("rbac.yaml");
    world.git(&["mv", "rbac.yaml", "apps/bob/rbac.yaml"]);
    world.commit(bob);
    outside("rbac.yaml");
    world.git(&["mv", "apps/bob/web.yaml", "web.yaml"]);
    world.commit(bob);
    outside("web.yaml");
    world.git(&["update-index", "--chmod=+x", "rbac.yaml"]);
    world.commit(bob);
    outside("rbac.yaml");
    // The folder itself as a link to somewhere else.
    world.git(&["rm", "-q", "-r", "apps/bob"]);
    std::fs::create_dir_all(world.path("repo/apps")).unwrap();
    std::os::unix::fs::symlink("../", world.path("repo/apps/bob")).unwrap();
    world.git(&["add", "apps/bob"]);
    world.commit(bob);
    outside("apps/bob");
    // A module instead of a file.
    let module = format!("160000,{},rbac.yaml", room.first);
    world.git(&["update-index", "--cacheinfo", &module]);
    world.commit(bob);
    outside("rbac.yaml");
}

#[test]
fn a_commit_that_undoes_what_is_outside_hides_nothing_where_every_one_is_checked() {
    let Some(room) = Room::new() else { return };
    room.world.change("rbac.yaml", "2", Some(&room.bob));
    room.world.change("rbac.yaml", "1", Some(&room.bob));
    // Nothing of it would be applied, and nothing is: the head's difference is none.
    assert_eq!(room.both(), ["ok", "signer_outside_paths"]);
}

#[test]
fn a_signed_head_does_not_carry_what_others_left_unsigned_below_it() {
    let Some(room) = Room::new() else { return };
    room.world.change("rbac.yaml", "2", None);
    room.world.change("apps/bob/web.yaml", "2", Some(&room.bob));
    assert_eq!(room.both(), ["signer_outside_paths", "signature_missing"]);
}

#[test]
fn a_signer_with_limits_vouches_for_no_first_revision() {
    let Some(room) = Room::new() else { return };
    let head = room.world.change("apps/bob/web.yaml", "2", Some(&room.bob));
    for mode in [Mode::Head, Mode::Every] {
        let refused = judge(&room.world, head, &room.wanted(mode)).unwrap_err();
        assert!(matches!(refused.reason, Reason::VouchesForAll { .. }), "{refused}");
    }
    let since = Verification { since: Some(room.first), ..room.wanted(Mode::Every) };
    assert_eq!(word(&judge(&room.world, head, &since)), "ok");
}

#[test]
fn a_merge_by_a_signer_with_limits_may_bring_what_others_signed_and_no_hand_of_theirs() {
    let Some(room) = Room::new() else { return };
    let (world, alice, bob) = (&room.world, Some(&room.alice), Some(&room.bob));
    let every = || room.since(room.first)[1];
    world.git(&["checkout", "-q", "-b", "topic"]);
    world.change("apps/bob/web.yaml", "2", bob);
    world.git(&["checkout", "-q", "main"]);
    world.change("rbac.yaml", "2", alice);
    world.change("new.yaml", "1", alice);
    // Both ways round: the topic into main, and main into the topic.
    world.git(&["checkout", "-q", "-b", "one"]);
    world.make(&["merge", "-q", "--no-ff", "-m", "merge", "topic"], bob);
    assert_eq!(every(), "ok");
    world.git(&["checkout", "-q", "-b", "two", "topic"]);
    world.make(&["merge", "-q", "--no-ff", "-m", "merge", "main"], bob);
    assert_eq!(every(), "ok");
    // With a hand in it: a path that is as no parent has it, and one as the wrong parent has it.
    for (path, text) in [("rbac.yaml", "3"), ("rbac.yaml", "1"), ("planted.yaml", "1")] {
        world.git(&["checkout", "-q", "-B", "three", "main"]);
        world.make(&["merge", "-q", "--no-ff", "--no-commit", "topic"], None);
        world.write(path, text);
        world.commit(bob);
        assert_eq!(every(), "signer_outside_paths", "{path} {text}");
    }
    // "Ours": what main did since is undone by saying so.
    world.git(&["checkout", "-q", "-B", "four", "topic"]);
    world.make(&["merge", "-q", "-s", "ours", "-m", "merge", "main"], bob);
    assert_eq!(every(), "signer_outside_paths");
    // Alice may.
    world.git(&["reset", "-q", "--hard", "topic"]);
    world.make(&["merge", "-q", "-s", "ours", "-m", "merge", "main"], alice);
    assert_eq!(every(), "ok");
}

/// A file as one parent has it is not enough: the parent may be years old.
#[test]
fn merging_an_old_commit_brings_back_no_old_state_of_what_is_outside() {
    let Some(room) = Room::new() else { return };
    let (world, alice, bob) = (&room.world, Some(&room.alice), Some(&room.bob));
    let fixed = world.change("rbac.yaml", "2", alice);
    for parents in [["first", "fixed"], ["fixed", "first"]] {
        let id = |name: &str| if name == "first" { room.first } else { fixed };
        let [one, other] = parents.map(id);
        let tree = format!("{}^{{tree}}", room.first);
        let (one, other) = (one.to_string(), other.to_string());
        let arguments = ["commit-tree", "-S", "-m", "merge", "-p", &one, "-p", &other, &tree];
        world.make(&["checkout", "-q", "-B", "back", &fixed.to_string()], None);
        let file = world.path("keys/bob");
        let key = format!("user.signingKey={}", file.display());
        let mut all = vec!["-c", "gpg.format=ssh", "-c", &key];
        all.extend(arguments);
        let merge = world.git(&all);
        world.git(&["reset", "-q", "--hard", &merge]);
        assert_eq!(room.since(fixed), OUTSIDE, "{parents:?}");
    }
    // The same with a branch of their own from the old commit, which is the usual way to try it.
    world.git(&["checkout", "-q", "-B", "topic", &room.first.to_string()]);
    world.change("apps/bob/web.yaml", "2", bob);
    world.make(&["merge", "-q", "-s", "ours", "-m", "merge", &fixed.to_string()], bob);
    assert_eq!(room.since(fixed), OUTSIDE);
}

#[test]
fn a_limit_that_holds_nobody_or_cannot_be_meant_is_refused() {
    let Some(room) = Room::new() else { return };
    let limit = |principal: &str, path: &str| {
        let limits = vec![Limit { principal: principal.into(), paths: vec![path.into()] }];
        let wanted = Verification { limits, ..room.world.verification(Mode::Head) };
        judge(&room.world, room.first, &wanted)
    };
    let refused = limit("bop@example.com", "apps/bob/**").unwrap_err();
    assert!(refused.to_string().contains("holds no key"), "{refused}");
    let refused = limit("bob@example.com", "/apps/bob").unwrap_err();
    assert!(refused.to_string().contains("from the repository's root"), "{refused}");
    assert_eq!(word(&limit("bob@example.com", "apps/bob/**")), "ok");
}

#[test]
fn a_limit_is_for_a_key_by_principal_pattern_fingerprint_user_id_and_address() {
    let Some(world) = World::new() else { return };
    let bob = world.ssh("ed25519", "", "bob");
    let eve = world.gpg("eve", "ed25519", "sign", NOW - 9 * DAY, "never");
    world.allow(&[world.line(&bob, "").replace("bob@", "*@")], &[&eve]);
    let by_bob = world.change("a.yaml", "1", Some(&bob));
    let by_eve = world.change("a.yaml", "2", Some(&eve));
    let fingerprint =
        judge(&world, by_bob, &world.verification(Mode::Head)).unwrap().signer.fingerprint;
    for (commit, last, principal) in [
        (by_bob, None, "*@example.com"),
        (by_bob, None, "bob@example.com"),
        (by_bob, None, &fingerprint),
        (by_eve, Some(by_bob), "eve <eve@example.com>"),
        (by_eve, Some(by_bob), "eve@example.com"),
        (by_eve, Some(by_bob), &eve.name),
    ] {
        let limits = vec![Limit { principal: principal.into(), paths: vec!["b/**".into()] }];
        let wanted = Verification { limits, ..world.verification(Mode::Head) };
        let judged = judge_since(&world, commit, last, &wanted);
        assert_eq!(word(&judged), "signer_outside_paths", "{principal}");
    }
}
