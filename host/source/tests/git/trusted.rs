//! Signatures and steps in history, by way of the whole source: fetch, judge, accept, restart.

use super::*;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use trimtab_source::git::Reference;
use trimtab_source::git::trust::{Commit, Limit, Memory, Mode, SignerSource, Verification};

/// A repository whose commits Alice may sign.
struct Signed {
    repo: Repo,
    key: PathBuf,
}

impl Signed {
    /// `None`, said aloud, where ssh-keygen is missing.
    fn new() -> Option<Self> {
        let repo = Repo::empty();
        let key = repo.parent().join("alice");
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-C", "alice", "-f"])
            .arg(&key)
            .stdout(Stdio::null())
            .status();
        if made.is_err() {
            eprintln!("skipped: ssh-keygen is not installed");
            return None;
        }
        let signed = Self { repo, key };
        signed.allow(true);
        Some(signed)
    }

    fn signers(&self) -> PathBuf {
        self.repo.parent().join("allowed_signers")
    }

    /// Lists Alice, or somebody else's key alone.
    fn allow(&self, alice: bool) {
        let public = std::fs::read_to_string(self.key.with_extension("pub")).unwrap();
        let other =
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJjC8dUqF1fQk7q0TqKp1zjyvSLR3RmAwZPd4x8l3b6f";
        let line = if alice { &public } else { other };
        std::fs::write(self.signers(), format!("alice@pier.test {line}\n")).unwrap();
    }

    fn verification(&self, mode: Mode) -> Verification {
        let signers = vec![SignerSource::AllowedSigners(self.signers())];
        Verification { mode, signers, limits: vec![], tags: false, since: None }
    }

    fn source(&self, verify: Verification) -> Git {
        open(
            GitOptions { verify: Some(verify), ..options(&self.repo.address()) },
            &self.repo.state(),
        )
    }

    /// Commits one object by this name, signed.
    fn commit(&self, name: &str) -> String {
        self.repo.write("a.yaml", &config_map(name));
        self.repo.git(&["add", "-A"]);
        self.sign(&["commit", "-q", "-S", "-m", "a change"]);
        self.repo.head()
    }

    fn sign(&self, arguments: &[&str]) {
        let key = format!("user.signingKey={}", self.key.display());
        let mut all = vec!["-c", "gpg.format=ssh", "-c", &key];
        all.extend(arguments);
        self.repo.git(&all);
    }
}

fn refused(source: &Git) -> String {
    source.read().unwrap_err().to_string()
}

#[test]
fn only_what_an_allowed_signer_signed_is_taken_and_the_signer_is_named_by_the_key() {
    let Some(signed) = Signed::new() else { return };
    signed.commit("one");
    let source = signed.source(signed.verification(Mode::Head));
    let signer = take(&source).provenance.signer.unwrap();
    assert_eq!(&*signer.principal, "alice@pier.test");
    assert!(signer.fingerprint.starts_with("SHA256:"));

    let unsigned = signed.repo.commit(&[("a.yaml", &config_map("two"))]);
    assert!(matches!(source.read(), Err(SourceError::Unverified { .. })));
    let error = refused(&source);
    assert!(error.contains(&unsigned) && error.contains("[signature_missing]"), "{error}");
    // What is in force stays, also after a restart.
    let again = signed.source(signed.verification(Mode::Head));
    assert_eq!(names(&again.last_good().unwrap()), ["a.yaml:1 one"]);

    signed.commit("three");
    assert_eq!(read(&source), ["a.yaml:1 three"]);
    let every = signed.source(signed.verification(Mode::Every));
    let error = refused(&every);
    assert!(error.contains(&unsigned) && error.contains("[signature_missing]"), "{error}");
}

#[test]
fn a_key_that_is_taken_from_the_list_is_noticed_without_a_new_commit() {
    let Some(signed) = Signed::new() else { return };
    signed.commit("one");
    let source = signed.source(signed.verification(Mode::Head));
    take(&source);
    let before = source.fingerprint().unwrap();
    assert!(before.still_holds(&source.fingerprint().unwrap()));
    signed.allow(false);
    assert!(!before.still_holds(&source.fingerprint().unwrap()));
    assert!(refused(&source).contains("[signature_by_unknown_key]"));
    std::fs::remove_file(signed.signers()).unwrap();
    let error = refused(&source);
    assert!(error.contains("[signers_unreadable]") && error.contains("allowed_signers"), "{error}");
    signed.allow(true);
    assert!(before.still_holds(&source.fingerprint().unwrap()));
    assert_eq!(read(&source), ["a.yaml:1 one"]);
}

#[test]
fn a_signed_tag_is_taken_where_tags_count() {
    let Some(signed) = Signed::new() else { return };
    signed.repo.commit(&[("a.yaml", &config_map("one"))]);
    signed.sign(&["tag", "-s", "-m", "a release", "v1"]);
    let tagged = |tags| {
        let verify = Verification { tags, ..signed.verification(Mode::Head) };
        let reference = Reference::Tag("v1".into());
        let options =
            GitOptions { verify: Some(verify), reference, ..options(&signed.repo.address()) };
        open(options, &signed.repo.state())
    };
    assert!(refused(&tagged(false)).contains("[signature_of_tag_only]"));
    assert_eq!(read(&tagged(true)), ["a.yaml:1 one"]);
}

#[test]
fn a_signer_with_limits_is_held_to_them() {
    let Some(signed) = Signed::new() else { return };
    signed.commit("one");
    let source = signed.source(signed.verification(Mode::Head));
    take(&source);
    signed.commit("two");
    let limits = vec![Limit { principal: "alice@pier.test".into(), paths: vec!["b/**".into()] }];
    let source = signed.source(Verification { limits, ..signed.verification(Mode::Head) });
    let error = refused(&source);
    assert!(error.contains("may not change \"a.yaml\" [signer_outside_paths]"), "{error}");
}

#[test]
fn a_step_back_is_taken_once_where_a_person_allowed_that_one() {
    let repo = Repo::with(&[("a.yaml", &config_map("one"))]);
    let first = repo.head();
    let source = source(&repo);
    take(&source);
    let second = repo.commit(&[("a.yaml", &config_map("two"))]);
    take(&source);
    let memory = Memory::new(source.folder());
    assert_eq!(memory.accepted().unwrap().unwrap().commit.to_string(), second);
    repo.git(&["reset", "-q", "--hard", &first]);
    assert!(matches!(source.read(), Err(SourceError::SteppedBack { .. })));
    let error = refused(&source);
    assert!(error.contains(&format!("trimtab source allow pier {first}")), "{error}");

    memory.allow(first.parse().unwrap()).unwrap();
    // Reading uses nothing up: what is read may still be refused for its content.
    assert_eq!(read(&source), ["a.yaml:1 one"]);
    take(&source);
    assert_eq!(memory.allowed(), Ok(None));
    assert_eq!(read(&source), ["a.yaml:1 one"]);

    repo.git(&["reset", "-q", "--hard", &second]);
    take(&source);
    repo.git(&["reset", "-q", "--hard", &first]);
    assert!(matches!(source.read(), Err(SourceError::SteppedBack { .. })));
}

#[test]
fn a_state_directory_that_was_lost_lets_nobody_step_back_behind_what_others_remember() {
    let repo = Repo::with(&[("a.yaml", &config_map("one"))]);
    let first = repo.head();
    let second: Commit = repo.commit(&[("a.yaml", &config_map("two"))]).parse().unwrap();
    repo.git(&["reset", "-q", "--hard", &first]);
    let source = source(&repo);
    assert_eq!(read(&source), ["a.yaml:1 one"]);
    source.remembered_elsewhere(second);
    assert!(matches!(source.read(), Err(SourceError::SteppedBack { .. })));
    repo.git(&["reset", "-q", "--hard", &second.to_string()]);
    take(&source);
}

#[test]
fn where_the_memory_is_lost_the_clusters_says_which_commits_are_new_and_have_to_be_signed() {
    let Some(signed) = Signed::new() else { return };
    let first: Commit = signed.commit("one").parse().unwrap();
    let unsigned = signed.repo.commit(&[("a.yaml", &config_map("two"))]);
    signed.commit("three");
    let source = signed.source(signed.verification(Mode::Every));
    source.remembered_elsewhere(first);
    let error = refused(&source);
    assert!(error.contains(&unsigned) && error.contains("[signature_missing]"), "{error}");
}

#[test]
fn what_a_person_had_us_leave_holds_nothing_back_although_others_still_remember_it() {
    let repo = Repo::with(&[("a.yaml", &config_map("one"))]);
    let first = repo.head();
    let source = source(&repo);
    take(&source);
    let second: Commit = repo.commit(&[("a.yaml", &config_map("two"))]).parse().unwrap();
    let third: Commit = repo.commit(&[("a.yaml", &config_map("three"))]).parse().unwrap();
    take(&source);
    repo.git(&["reset", "-q", "--hard", &first]);
    Memory::new(source.folder()).allow(first.parse().unwrap()).unwrap();
    take(&source);
    // The inventory is written later, and not at all by a host that was killed.
    for behind in [second, third] {
        source.remembered_elsewhere(behind);
        assert_eq!(take(&source).id.to_string(), first);
    }
    let other = repo.commit(&[("a.yaml", &config_map("other"))]);
    assert_eq!(take(&source).id.to_string(), other);
    let later: Commit = repo.commit(&[("a.yaml", &config_map("later"))]).parse().unwrap();
    source.remembered_elsewhere(later);
    repo.git(&["reset", "-q", "--hard", &other]);
    assert!(matches!(source.read(), Err(SourceError::SteppedBack { .. })));
}

#[test]
fn a_memory_that_is_damaged_takes_nothing_and_says_what_to_do() {
    let repo = Repo::with(&[("a.yaml", &config_map("one"))]);
    let source = source(&repo);
    take(&source);
    std::fs::write(source.folder().join("accepted.json"), "{").unwrap();
    assert!(matches!(source.read(), Err(SourceError::State { .. })));
    assert!(refused(&source).contains("accepted.json"));
}

/// Case g-cache-tampered: whoever can write the mirror cannot have it believed.
#[test]
fn a_commit_that_somebody_put_into_the_mirror_in_anothers_place_is_never_applied() {
    let Some(signed) = Signed::new() else { return };
    signed.commit("one");
    let source = signed.source(signed.verification(Mode::Head));
    take(&source);
    let good = signed.commit("two");
    read(&source);
    // The mirror's objects one by one, with an evil commit's bytes under the good one's name.
    let evil = Repo::with(&[("a.yaml", &config_map("evil"))]);
    let objects = source.folder().join("mirror/objects");
    for pack in std::fs::read_dir(objects.join("pack")).unwrap() {
        std::fs::remove_file(pack.unwrap().path()).unwrap();
    }
    for repository in [&signed.repo, &evil] {
        let from = repository.path().join(".git/objects/.");
        let copied = Command::new("cp").arg("-rf").args([&from, &objects]).status().unwrap();
        assert!(copied.success());
    }
    let loose = |id: &str| objects.join(&id[..2]).join(&id[2..]);
    std::fs::remove_file(loose(&good)).unwrap();
    std::fs::copy(loose(&evil.head()), loose(&good)).unwrap();
    // It is noticed, the mirror is made anew, and what the server has is what is read.
    assert_eq!(read(&source), ["a.yaml:1 two"]);
    assert!(!loose(&evil.head()).exists());
}
