//! The inventory: what comes back from its text, and what is refused.

use super::*;
use crate::identity::GroupKind;
use proptest::prelude::*;

fn key(kind: &str, namespace: &str, name: &str) -> ObjectKey {
    ObjectKey::new(GroupKind::new("", kind), namespace, name)
}

fn made(uid: &str, revision: &str) -> Entry {
    Entry {
        uid: Some(uid.into()),
        digest: "0123456789ab".into(),
        ..Entry::intended(&revision.into())
    }
}

fn texts(inventory: &mut Inventory) -> Vec<(usize, Vec<u8>)> {
    let all = inventory.changed();
    all.into_iter().map(|index| (index, inventory.take(index))).collect()
}

fn read(source: &str, texts: &[(usize, Vec<u8>)]) -> Result<Inventory, Corrupt> {
    let texts: Vec<(usize, &[u8])> = texts.iter().map(|(index, text)| (*index, &**text)).collect();
    Inventory::read(&source.into(), &texts)
}

#[test]
fn an_object_has_one_entry_whatever_version_it_is_declared_in() {
    let mut inventory = Inventory::new(&"shop".into());
    let web = ObjectKey::new(GroupKind::new("apps", "Deployment"), "shop", "web");
    assert!(inventory.set(&web, Entry::intended(&"r1".into())));
    assert!(inventory.set(&web, made("u1", "r1")), "it is made now");
    assert!(!inventory.set(&web, made("u1", "r1")), "and nothing is other");
    assert_eq!(inventory.len(), 1);
    assert_eq!(inventory.undeclared(|key| *key == web), []);
    assert_eq!(inventory.undeclared(|_| false), std::slice::from_ref(&web));
    assert!(inventory.remove(&web) && !inventory.remove(&web) && inventory.is_empty());
}

#[test]
fn the_text_gives_back_what_was_written_and_one_change_writes_one_shard() {
    let mut inventory = Inventory::new(&"shop".into());
    inventory.set_revision(&"sha256:abc".into());
    for number in 0..9000 {
        let name = format!("a-config-map-with-a-name-of-usual-length-{number:05}");
        inventory.set(&key("ConfigMap", "shop", &name), made(&format!("{number:036}"), "r1"));
    }
    let mut all = texts(&mut inventory);
    assert!(all.len() > 1, "it takes several shards");
    assert!(all.iter().all(|(_, text)| text.len() <= SHARD_BYTES_AT_MOST));
    assert_eq!(all.last().unwrap().0, 0, "the shard that counts the others is written last");
    let back = read("shop", &all).unwrap();
    assert_eq!(back, inventory);
    assert_eq!(back.revision().map(|it| &**it), Some("sha256:abc"));

    let last = key("ConfigMap", "shop", "a-config-map-with-a-name-of-usual-length-08999");
    inventory.set(&last, Entry { done: true, approved: Approval::WithContents, ..made("u", "r2") });
    assert_eq!(inventory.changed(), [all.len() - 1]);
    let changed = texts(&mut inventory);
    all[0] = changed[0].clone();
    assert_eq!(read("shop", &all).unwrap(), inventory);
    assert!(inventory.changed().is_empty());
    inventory.not_written(0);
    assert_eq!(inventory.changed(), [0]);
}

#[test]
fn a_lost_shard_is_no_shorter_inventory() {
    let mut inventory = Inventory::new(&"shop".into());
    for number in 0..9000 {
        let name = format!("a-config-map-with-a-name-of-usual-length-{number:05}");
        inventory.set(&key("ConfigMap", "shop", &name), made(&format!("{number:036}"), "r1"));
    }
    let all = texts(&mut inventory);
    for lost in 0..all.len() {
        let mut rest = all.clone();
        let (index, _) = rest.remove(lost);
        let error = read("shop", &rest).unwrap_err().to_string();
        assert!(error.contains(&format!("shard {index} of source shop is missing")), "{error}");
    }
    assert!(read("shop", &[]).unwrap().is_empty(), "none at all: nothing was ever made");
}

#[test]
fn what_is_not_understood_is_refused_whole() {
    let whole = |entries: &str| {
        format!(
            r#"{{"version":1,"source":"shop","shard":0,"shards":1,"revisions":["r"],"entries":[{entries}]}}"#
        )
    };
    let good = r#"["","ConfigMap","shop","a","u","d",0,""]"#;
    assert_eq!(read("shop", &[(0, whole(good).into_bytes())]).unwrap().len(), 1);
    for (text, words) in [
        (whole(good).replace("\"version\":1", "\"version\":2"), "its version is 2"),
        (whole(good).replace("\"version\":1,", ""), "its version is none"),
        (whole(good).replace("\"source\":\"shop\"", "\"source\":\"x\""), "it is of source \"x\""),
        (whole(good).replace("\"shard\":0", "\"shard\":1"), "of another number"),
        (whole(good).replace("\"shards\":1", "\"shards\":99"), "how many shards"),
        (whole(&format!("{good},{good}")), "entry 1: ConfigMap shop/a is there twice"),
        // An object without a name, as one that was skipped and remembered all the same.
        (whole(r#"["kyverno.io","ClusterPolicy","","","","",0,""]"#), "it names no object"),
        (whole(r#"["","ConfigMap","shop","a","u","d",7,""]"#), "its revision is not among"),
        (whole(r#"["","ConfigMap","shop","a","u","d",0,"x"]"#), "its mark 'x' is not known"),
        (whole(r#"["","ConfigMap","shop","a"]"#), "not eight members"),
        (whole(r#"["","ConfigMap","shop",7,"u","d",0,""]"#), "a member is no text"),
        (whole(&good.replace("\"a\"", &format!("\"{}\"", "a".repeat(600)))), "more than 512 bytes"),
        (whole(good).replace("\"entries\"", "\"Entries\""), "it has no list entries"),
        (whole(good)[..40].to_owned(), "shard 0 of source shop"),
    ] {
        let error = read("shop", &[(0, text.clone().into_bytes())]).unwrap_err().to_string();
        assert!(
            error.starts_with("inventory_corrupt: ") && error.contains(words),
            "{text}: {error}"
        );
    }
    let twice = [(0, whole(good).into_bytes()), (0, whole("").into_bytes())];
    assert!(read("shop", &twice).unwrap_err().to_string().contains("is there twice"));
    assert!(read("shop", &[(64, vec![])]).unwrap_err().to_string().contains("one too many"));
}

#[test]
fn an_object_without_a_name_never_enters() {
    let mut inventory = Inventory::new(&"shop".into());
    assert!(!inventory.set(&key("Job", "shop", ""), made("u", "r")));
    assert!(inventory.is_empty());
}

#[test]
fn what_somebody_else_wrote_meanwhile_is_kept_beside_our_own() {
    let (mut ours, mut theirs) = (Inventory::new(&"s".into()), Inventory::new(&"s".into()));
    ours.set(&key("ConfigMap", "n", "a"), made("u1", "r2"));
    theirs.set(&key("ConfigMap", "n", "a"), made("u0", "r1"));
    theirs.set(&key("ConfigMap", "n", "b"), made("u2", "r1"));
    ours.merge(&theirs);
    assert_eq!(ours.len(), 2);
    assert_eq!(ours.get(&key("ConfigMap", "n", "a")).unwrap().uid.as_deref(), Some("u1"));
    assert_eq!(ours.changed(), [0]);
}

proptest! {
    #[test]
    fn whatever_is_remembered_comes_back(
        entries in prop::collection::vec(
            (".{0,8}", "[A-Za-z]{1,6}", ".{0,8}", ".{1,12}", ".{0,6}", ".{0,6}", any::<[bool; 2]>()),
            0..40,
        ),
    ) {
        let mut inventory = Inventory::new(&"s".into());
        for (group, kind, namespace, name, uid, revision, [done, keep]) in &entries {
            let key = ObjectKey::new(GroupKind::new(group, kind), namespace, name);
            let uid = (!uid.is_empty()).then(|| uid.as_str().into());
            let entry =
                Entry { uid, done: *done, keep: *keep, ..Entry::intended(&revision.as_str().into()) };
            inventory.set(&key, entry);
        }
        inventory.not_written(0);
        let texts = texts(&mut inventory);
        prop_assert_eq!(read("s", &texts).unwrap(), inventory);
    }
}
