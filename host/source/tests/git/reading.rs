//! What of a commit is read, and what a change costs.

use super::*;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use trimtab_source::Directory;
use trimtab_source::git::Reference;

#[test]
fn a_commit_is_read_as_a_directory_with_its_files_is() {
    let repo = Repo::empty();
    for (name, text) in [
        ("a.yaml", config_map("a")),
        ("deck/b.yml", format!("{}---\n{}", config_map("b"), config_map("c"))),
        ("deck/aft/d.json", r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"d"}}"#.into()),
        ("README.md", "words: [not YAML".into()),
        (".github/x.yaml", "broken: [".into()),
        (".store/e.yaml", config_map("e")),
        ("plain.txt", config_map("f")),
    ] {
        repo.write(name, &text);
    }
    for (target, link) in [
        ("deck/aft", "same"),
        (".store", "stored"),
        (".store", "stored-again"),
        ("../plain.txt", "deck/f.yaml"),
        ("deck/b.yml", "again.yaml"),
        ("..", "deck/up"),
    ] {
        symlink(target, repo.path().join(link)).unwrap();
    }
    let commit = repo.commit(&[]);
    let directory = Directory::new("pier", repo.path(), "default").read().unwrap();
    let revision = source(&repo).read().unwrap();
    assert_eq!(names(&revision), names(&directory));
    assert_eq!(
        names(&revision),
        [
            "a.yaml:1 a",
            "deck/aft/d.json:1 d",
            "deck/b.yml:1 b",
            "deck/b.yml:5 c",
            "deck/f.yaml:1 f",
            "stored/e.yaml:1 e"
        ]
    );
    assert_eq!(&*revision.id, commit);
    for (one, other) in revision.manifests.iter().zip(&directory.manifests) {
        assert_eq!(one.json, other.json);
    }
}

#[test]
fn a_revision_says_who_made_it_and_when() {
    let repo = Repo::with(&[("a.yaml", &config_map("a"))]);
    let provenance = source(&repo).read().unwrap().provenance;
    assert_eq!(provenance.author.as_deref(), Some("Ada <ada@pier.test>"));
    assert_eq!(provenance.committer.as_deref(), Some("Bo <bo@pier.test>"));
    assert_eq!(provenance.message_subject.as_deref(), Some("a change"));
    assert!(provenance.committed_at.unwrap() >= 1_700_000_000);
    assert_eq!(provenance.signer, None);
}

#[test]
fn one_folder_is_the_source_and_what_lies_beside_it_does_not_count() {
    let repo = Repo::with(&[
        ("clusters/prod/a.yaml", &config_map("a")),
        ("clusters/test/a.yaml", "broken: ["),
        ("Chart.yaml", "name: outside"),
    ]);
    let at = |path: &str| {
        let mut options = options(&repo.address());
        options.path = path.into();
        open(options, &repo.state())
    };
    assert_eq!(read(&at("clusters/prod")), ["a.yaml:1 a"]);
    assert_eq!(read(&at("/clusters/prod/")), ["a.yaml:1 a"]);
    assert_eq!(refusals(&at("")), ["not_rendered Chart.yaml"]);
    // A folder that is gone is no empty one, and not the same as a broken one.
    let error = at("clusters/gone").read().unwrap_err();
    assert_eq!(error.problems()[0].code.as_str(), "source_path_missing", "{error}");
    assert!(error.is_of_content() && error.to_string().contains(&repo.head()), "{error}");
    let error = at("clusters/prod/a.yaml").read().unwrap_err();
    assert!(matches!(error, SourceError::PathMissing { .. }), "{error}");
}

#[test]
fn a_folder_that_a_later_commit_takes_away_leaves_what_was_accepted() {
    let repo = Repo::with(&[("deploy/a.yaml", &config_map("a")), ("b.txt", "b")]);
    let mut options = options(&repo.address());
    options.path = "deploy".into();
    let source = open(options.clone(), &repo.state());
    let accepted = take(&source);
    repo.git(&["rm", "-rq", "deploy"]);
    repo.commit(&[]);
    let error = source.read().unwrap_err();
    assert!(matches!(error, SourceError::PathMissing { .. }), "{error}");
    let restarted = open(options, &repo.state()).last_good().unwrap();
    assert_eq!((restarted.id.clone(), names(&restarted)), (accepted.id.clone(), names(&accepted)));
}

#[test]
fn a_reference_is_a_branch_a_tag_a_commit_or_the_default() {
    let repo = Repo::with(&[("a.yaml", &config_map("first"))]);
    let first = repo.head();
    repo.git(&["tag", "light"]);
    repo.git(&["tag", "-a", "v1.0.0", "-m", "released"]);
    repo.git(&["tag", "-a", "of-tag", "-m", "again", "v1.0.0"]);
    repo.git(&["checkout", "-qb", "side"]);
    repo.commit(&[("a.yaml", &config_map("side"))]);
    repo.git(&["checkout", "-q", "main"]);
    repo.commit(&[("a.yaml", &config_map("main"))]);
    let at = |number: usize, reference: Reference| {
        let mut options = options(&repo.address());
        options.reference = reference;
        open(options, &repo.parent().join(format!("state-{number}"))).read()
    };
    for (number, (reference, name)) in [
        (Reference::Default, "main"),
        (Reference::Branch("main".into()), "main"),
        (Reference::Branch("side".into()), "side"),
        (Reference::Tag("light".into()), "first"),
        (Reference::Tag("v1.0.0".into()), "first"),
        (Reference::Tag("of-tag".into()), "first"),
        (Reference::Commit(first.clone()), "first"),
    ]
    .into_iter()
    .enumerate()
    {
        let revision = at(number, reference.clone()).unwrap();
        assert_eq!(names(&revision), [format!("a.yaml:1 {name}")], "{reference:?}");
    }
    for (number, reference) in [
        Reference::Branch("v1.0.0".into()),
        Reference::Tag("main".into()),
        Reference::Commit("1".repeat(40)),
    ]
    .into_iter()
    .enumerate()
    {
        let error = at(10 + number, reference).unwrap_err();
        assert!(matches!(error, SourceError::ReferenceMissing { .. }), "{error:?}");
    }
    // A tag may name what is no commit.
    let tree = repo.git(&["rev-parse", "HEAD^{tree}"]);
    repo.git(&["tag", "of-tree", &tree]);
    let error = at(20, Reference::Tag("of-tree".into())).unwrap_err();
    assert!(matches!(error, SourceError::Corrupt { .. }), "{error}");
    let error = source(&Repo::empty()).read().unwrap_err();
    assert!(matches!(error, SourceError::ReferenceMissing { .. }), "{error}");
}

#[test]
fn a_file_that_did_not_change_is_not_decoded_again() {
    let repo = Repo::empty();
    let data = "x".repeat(1000);
    for number in 0..5000 {
        let text = format!("{}data: {{text: {data}}}\n", config_map(&format!("n{number}")));
        repo.write(&format!("{}/{number}.yaml", number % 7), &text);
    }
    repo.commit(&[]);
    let source = source(&repo);
    let timed = || {
        let started = std::time::Instant::now();
        (take(&source), started.elapsed())
    };
    let (before, whole) = timed();
    assert_eq!(source.decodings(), 5000);
    let (_, nothing) = timed();
    assert_eq!(source.decodings(), 5000);
    repo.commit(&[("3/3.yaml", &config_map("changed"))]);
    let (after, one) = timed();
    eprintln!("5000 files of 1 KB: first {whole:.1?}, no change {nothing:.1?}, one file {one:.1?}");
    assert_eq!(source.decodings(), 5001);
    let anew = before.manifests.iter().zip(&after.manifests);
    let anew: Vec<_> = anew.filter(|(one, other)| !Arc::ptr_eq(&one.json, &other.json)).collect();
    assert_eq!(anew.len(), 1);
    assert_eq!((&*anew[0].0.name, &*anew[0].1.name), ("n3", "changed"));
    // The way back to an earlier content is a new content as well.
    repo.git(&["revert", "--no-edit", "HEAD"]);
    assert_eq!(names(&take(&source)), names(&before));
}

#[test]
fn what_is_kept_of_one_commit_is_never_shown_for_another() {
    let repo = Repo::with(&[("a.yaml", &config_map("one")), ("b.yaml", &config_map("two"))]);
    let source = source(&repo);
    assert_eq!(read(&source), ["a.yaml:1 one", "b.yaml:1 two"]);
    // The same contents under each other's names.
    repo.git(&["mv", "a.yaml", "c.yaml"]);
    repo.git(&["mv", "b.yaml", "a.yaml"]);
    repo.git(&["mv", "c.yaml", "b.yaml"]);
    let commit = repo.commit(&[]);
    let revision = source.read().unwrap();
    assert_eq!(names(&revision), ["a.yaml:1 two", "b.yaml:1 one"]);
    assert_eq!(&*revision.id, commit);
    // The same content twice, by name one of them JSON.
    let json = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"j"}}"#;
    repo.commit(&[("d.yaml", json)]);
    assert_eq!(read(&source).len(), 3);
    repo.git(&["mv", "d.yaml", "d.json"]);
    repo.commit(&[]);
    assert_eq!(read(&source)[2], "d.json:1 j");
}

#[test]
fn what_is_committed_while_a_commit_is_read_is_of_the_next_one() {
    let repo = Repo::with(&[("0.yaml", &config_map("n0"))]);
    let source = source(&repo);
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Each commit has one file, by the number of the commit.
            for number in 1.. {
                if stop.load(std::sync::atomic::Ordering::Relaxed) {
                    return;
                }
                repo.git(&["rm", "-q", "*.yaml"]);
                let name = format!("{number}.yaml");
                repo.commit(&[(&name, &config_map(&format!("n{number}")))]);
            }
        });
        for _ in 0..15 {
            let revision = source.read().unwrap();
            let files = repo.git(&["ls-tree", "--name-only", &revision.id]);
            assert_eq!(revision.manifests.len(), 1);
            assert_eq!(&*revision.manifests[0].origin.file, files);
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
