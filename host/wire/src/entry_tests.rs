//! Every race that an entry can see, one sentence each.

use super::*;

fn object(uid: &str, version: &str) -> Sight {
    Sight::Object(live(uid, version))
}

fn live(uid: &str, version: &str) -> LiveObject {
    LiveObject {
        json: b"{}".as_slice().into(),
        uid: uid.into(),
        resource_version: version.into(),
        deleting: false,
    }
}

fn text(text: &str) -> Arc<str> {
    text.into()
}

/// `uid@version`, `absent`, or why it is unknown.
fn shown(entry: &Entry) -> String {
    match entry.live() {
        Live::Present(object) => format!("{}@{}", object.uid, object.resource_version),
        Live::Absent => "absent".into(),
        Live::Unknown(reason) => reason.to_string(),
    }
}

/// Present as `u@10`, seen by list 1.
fn present() -> Entry {
    let mut entry = Entry::new(0);
    assert!(entry.listed(object("u", "10"), 1));
    entry
}

#[test]
fn an_object_is_unknown_until_something_speaks_of_it() {
    assert_eq!(shown(&Entry::new(0)), "it has not been read yet");
}

#[test]
fn the_first_list_decides_present_and_absent() {
    let mut entry = present();
    assert!(!entry.list_ended(1, &text("20")));
    assert_eq!(shown(&entry), "u@10");
    let mut other = Entry::new(0);
    assert!(other.list_ended(1, &text("20")));
    assert_eq!(shown(&other), "absent");
}

#[test]
fn a_newer_event_replaces_and_an_older_or_equal_one_is_no_news() {
    let mut entry = present();
    assert!(entry.event(object("u", "11")));
    assert!(!entry.event(object("u", "11")));
    assert!(!entry.event(object("u", "9")));
    assert_eq!(shown(&entry), "u@11");
}

#[test]
fn our_own_write_is_known_at_once_and_its_echo_is_no_news() {
    let mut entry = present();
    entry.written(live("u", "15"));
    assert_eq!(shown(&entry), "u@15");
    assert!(!entry.event(object("u", "12")), "an event from before our write");
    assert!(!entry.event(object("u", "15")), "the echo");
    assert!(entry.event(object("u", "16")), "someone else's change after it");
}

#[test]
fn an_event_newer_than_our_write_wins_over_the_writes_late_answer() {
    let mut entry = present();
    assert!(entry.event(object("u", "16")));
    entry.written(live("u", "15"));
    assert_eq!(shown(&entry), "u@16");
}

#[test]
fn a_creation_of_ours_survives_a_list_that_began_before_it() {
    let mut entry = Entry::new(0);
    entry.list_ended(1, &text("20"));
    entry.written(live("u", "30"));
    assert!(!entry.list_ended(2, &text("25")), "the list's snapshot is older than the write");
    assert_eq!(shown(&entry), "u@30");
    assert!(entry.list_ended(3, &text("31")));
    assert_eq!(shown(&entry), "absent");
}

#[test]
fn what_we_deleted_does_not_come_back_through_older_events_or_a_list_that_was_running() {
    let mut entry = present();
    entry.deleted_by_us(&text("u"), 2);
    assert_eq!(shown(&entry), "absent");
    assert!(!entry.event(object("u", "11")), "an event from before the delete");
    assert!(!entry.listed(object("u", "11"), 2), "a list that began before the delete");
    assert!(!entry.deleted(&text("u"), &text("12"), 2), "the delete's own echo");
    assert_eq!(shown(&entry), "absent");
}

#[test]
fn a_later_list_may_show_again_what_we_deleted() {
    let mut entry = present();
    entry.deleted_by_us(&text("u"), 2);
    assert!(entry.listed(object("u", "40"), 3));
    assert_eq!(shown(&entry), "u@40");
}

#[test]
fn an_object_that_is_made_again_under_the_same_name_is_seen() {
    let mut entry = present();
    entry.deleted_by_us(&text("u"), 1);
    assert!(entry.event(object("v", "14")));
    assert_eq!(shown(&entry), "v@14");
    entry.deleted_by_us(&text("u"), 1);
    assert_eq!(shown(&entry), "v@14", "a late answer about the old one changes nothing");
}

#[test]
fn a_deletion_is_seen_once_and_never_undone_by_what_is_older() {
    let mut entry = present();
    assert!(entry.deleted(&text("u"), &text("12"), 1));
    assert!(!entry.deleted(&text("u"), &text("12"), 1));
    assert!(!entry.event(object("u", "11")));
    assert_eq!(shown(&entry), "absent");
}

#[test]
fn an_old_deletion_does_not_remove_what_we_made_since() {
    let mut entry = present();
    entry.deleted_by_us(&text("u"), 1);
    entry.written(live("v", "20"));
    assert!(!entry.deleted(&text("u"), &text("12"), 1));
    assert_eq!(shown(&entry), "v@20");
}

#[test]
fn a_relist_finds_a_deletion_that_was_missed() {
    let mut entry = present();
    assert!(entry.list_ended(2, &text("20")));
    assert_eq!(shown(&entry), "absent");
    assert!(!entry.event(object("u", "11")));
}

#[test]
fn interest_that_begins_during_a_list_is_not_taken_for_absent() {
    let mut entry = Entry::new(3);
    assert!(!entry.list_ended(3, &text("20")));
    assert!(entry.is_pending());
    assert!(entry.list_ended(4, &text("30")));
}

#[test]
fn a_read_that_a_deletion_overtook_does_not_bring_the_object_back() {
    let mut entry = Entry::new(1);
    assert!(entry.deleted(&text("u"), &text("12"), 1));
    assert!(!entry.read(Some(object("u", "11")), None, 1));
    assert_eq!(shown(&entry), "absent");
}

#[test]
fn a_read_that_an_event_overtook_changes_nothing() {
    let mut entry = Entry::new(1);
    assert!(entry.event(object("u", "12")));
    assert!(!entry.read(Some(object("u", "11")), None, 1));
    assert!(!entry.read(None, None, 1), "created after the read");
    assert_eq!(shown(&entry), "u@12");
}

#[test]
fn a_read_fills_what_was_pending() {
    let mut entry = Entry::new(1);
    assert!(entry.read_failed(text("timeout")));
    assert_eq!(shown(&entry), "it cannot be read: timeout");
    assert!(entry.read(Some(object("u", "11")), None, 1));
    assert_eq!(shown(&entry), "u@11");
    let mut other = Entry::new(1);
    assert!(other.read(None, None, 1));
    assert_eq!(shown(&other), "absent");
    assert!(!other.read_failed(text("late")));
}

#[test]
fn a_read_that_finds_nothing_where_nothing_was_heard_since_removes() {
    let mut entry = present();
    let asked = entry.at().cloned();
    assert!(entry.read(None, asked.as_ref(), 1));
    assert_eq!(shown(&entry), "absent");
}

#[test]
fn an_undecodable_object_is_unknown_and_heals_with_its_next_version() {
    let mut entry = present();
    assert!(entry.event(Sight::Undecodable("no uid".into())));
    assert!(!entry.event(Sight::Undecodable("no uid".into())));
    assert_eq!(shown(&entry), "it does not decode: no uid");
    assert!(entry.event(object("u", "12")));
    assert_eq!(shown(&entry), "u@12");
}

#[test]
fn a_list_with_a_nameless_item_leaves_what_it_does_not_show_unknown() {
    let mut entry = present();
    assert!(entry.list_ended_unsure(2));
    assert!(shown(&entry).contains("holds an object whose name cannot be read"));
    assert!(entry.listed(object("u", "10"), 3), "the next list heals it, at the same version too");
    assert_eq!(shown(&entry), "u@10");
}

#[test]
fn after_a_restore_from_backup_older_versions_are_believed_again() {
    let mut entry = present();
    entry.forget_version();
    assert!(entry.listed(object("u", "3"), 2));
    assert_eq!(shown(&entry), "u@3");
}

#[test]
fn versions_without_an_order_are_taken_as_they_arrive() {
    let mut entry = Entry::new(0);
    assert!(entry.listed(object("u", "abc"), 1));
    assert!(entry.event(object("u", "abb")));
    assert!(!entry.event(object("u", "abb")), "the same again");
    assert_eq!(shown(&entry), "u@abb");
}
