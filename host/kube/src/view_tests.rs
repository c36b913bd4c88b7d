//! A view under interest, lists, watches and writes that overlap.

use super::*;
use crate::events::{Event, Events};
use std::time::Duration;
use trimtab_core::identity::GroupKind;

fn key(name: &str) -> ObjectKey {
    ObjectKey::new(GroupKind::new("", "Pod"), "s", name)
}

fn pod(name: &str, version: u32) -> Vec<u8> {
    format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{name}","namespace":"s","uid":"u-{name}","resourceVersion":"{version}"}}}}"#
    )
    .into_bytes()
}

/// A view in which these pods are of interest; nothing is listed.
fn view(names: &[&str]) -> (View, Events) {
    let (queue, events) = Queue::new();
    let view = View::new(Gvk::from_api_version("v1", "Pod"), queue);
    view.set_interest(&names.iter().map(|name| key(name)).collect(), &HashSet::new());
    (view, events)
}

fn list(view: &View, scope: &Scope, items: &[Vec<u8>], at: &str) {
    let number = view.list_begins(scope);
    let named = items.iter().filter(|item| view.listed(item, scope, number)).count();
    view.list_ends(scope, number, &at.into(), named != items.len());
}

fn shown(live: Live) -> String {
    match live {
        Live::Present(object) => object.resource_version.to_string(),
        Live::Absent => "absent".into(),
        Live::Unknown(reason) => format!("unknown: {reason}"),
    }
}

fn changes(events: &mut Events) -> Vec<String> {
    std::iter::from_fn(|| events.try_next())
        .map(|event| match event {
            Event::Changed(key, _) => key.name.to_string(),
            Event::Synced(_) => "synced".into(),
            Event::Degraded { reason, .. } => format!("degraded: {reason}"),
            Event::Recovered(_) => "recovered".into(),
            Event::KindsChanged => "kinds".into(),
        })
        .collect()
}

#[test]
fn objects_are_unknown_until_the_first_list_has_ended() {
    let (view, mut events) = view(&["a", "b"]);
    let number = view.list_begins(&None);
    assert!(view.listed(&pod("a", 5), &None, number));
    assert_eq!(shown(view.live(&key("a"))), "unknown: it has not been listed yet");
    view.list_ends(&None, number, &"9".into(), false);
    assert_eq!(shown(view.live(&key("a"))), "5");
    assert_eq!(shown(view.live(&key("b"))), "absent");
    assert_eq!(changes(&mut events), ["synced"]);
}

#[test]
fn what_nobody_is_interested_in_is_seen_and_forgotten() {
    let (view, mut events) = view(&["a"]);
    list(&view, &None, &[pod("other", 5)], "9");
    view.saw(&pod("other", 10), Instant::now());
    assert_eq!(view.health().objects, 1);
    assert_eq!(changes(&mut events), ["synced"]);
    assert_eq!(shown(view.live(&key("other"))), "unknown: nobody has asked to watch it");
}

#[test]
fn a_relist_tells_only_what_is_different() {
    let (view, mut events) = view(&["a", "b", "c"]);
    list(&view, &None, &[pod("a", 5), pod("b", 6)], "9");
    changes(&mut events);
    list(&view, &None, &[pod("a", 5), pod("c", 12)], "20");
    let mut changed = changes(&mut events);
    changed.sort();
    assert_eq!(changed, ["b", "c"]);
    assert_eq!(shown(view.live(&key("b"))), "absent");
}

#[test]
fn a_list_that_failed_halfway_removes_nothing() {
    let (view, _events) = view(&["a", "b"]);
    list(&view, &None, &[pod("a", 5), pod("b", 6)], "9");
    let number = view.list_begins(&None);
    view.listed(&pod("a", 5), &None, number);
    view.list_failed(&None);
    assert_eq!(shown(view.live(&key("b"))), "6");
}

#[test]
fn an_item_without_a_name_makes_what_is_missing_unknown_and_not_absent() {
    let (view, _events) = view(&["a", "b"]);
    list(&view, &None, &[pod("a", 5), br#"{"metadata":{"uid":"x"}}"#.to_vec()], "9");
    assert_eq!(shown(view.live(&key("a"))), "5");
    assert!(shown(view.live(&key("b"))).starts_with("unknown: it does not decode"));
    assert_eq!(view.health().undecodable, 1);
}

#[test]
fn interest_that_begins_after_a_list_asks_for_a_read() {
    let (view, _events) = view(&["a"]);
    list(&view, &None, &[pod("a", 5)], "9");
    let gained = view.set_interest(&HashSet::from([key("a"), key("b")]), &HashSet::new());
    assert_eq!(gained, Gained { keys: vec![key("b")], relist: false });
    assert_eq!(shown(view.live(&key("a"))), "5", "what was known stays");
    assert!(view.is_pending(&key("b")));
    let asked = view.asked(&key("b"));
    view.read(&key("b"), Some(&pod("b", 7)), asked.as_ref());
    assert_eq!(shown(view.live(&key("b"))), "7");
}

#[test]
fn interest_that_begins_before_the_first_list_asks_for_nothing() {
    let (view, _events) = view(&["a"]);
    let gained = view.set_interest(&HashSet::from([key("b")]), &HashSet::new());
    assert_eq!(gained, Gained::default());
    list(&view, &None, &[pod("b", 5)], "9");
    assert_eq!(shown(view.live(&key("b"))), "5");
}

#[test]
fn the_echo_of_our_write_is_no_event_whether_it_comes_before_or_after_the_answer() {
    let (view, mut events) = view(&["a"]);
    list(&view, &None, &[pod("a", 5)], "9");
    changes(&mut events);
    for (version, echo_first) in [(11, true), (13, false)] {
        view.write_begins(&key("a"));
        if echo_first {
            view.saw(&pod("a", version), Instant::now());
        }
        view.written(&key("a"), &pod("a", version));
        view.write_ends(&key("a"));
        view.saw(&pod("a", version), Instant::now());
        assert_eq!(changes(&mut events), [""; 0]);
        assert_eq!(shown(view.live(&key("a"))), version.to_string());
    }
}

#[test]
fn someone_elses_change_during_our_write_is_told_when_the_write_ends() {
    let (view, mut events) = view(&["a"]);
    list(&view, &None, &[pod("a", 5)], "9");
    changes(&mut events);
    let first = Instant::now();
    view.write_begins(&key("a"));
    view.saw(&pod("a", 12), first);
    view.saw(&pod("a", 13), first + Duration::from_secs(1));
    view.written(&key("a"), &pod("a", 12));
    assert_eq!(changes(&mut events), [""; 0]);
    view.write_ends(&key("a"));
    assert_eq!(changes(&mut events), ["a"]);
    assert_eq!(shown(view.live(&key("a"))), "13");
}

#[test]
fn a_failed_write_lets_the_events_through_that_it_held() {
    let (view, mut events) = view(&["a"]);
    list(&view, &None, &[pod("a", 5)], "9");
    changes(&mut events);
    view.write_begins(&key("a"));
    view.saw(&pod("a", 12), Instant::now());
    view.write_ends(&key("a"));
    assert_eq!(changes(&mut events), ["a"]);
}

#[test]
fn the_echo_of_our_delete_is_no_event() {
    let (view, mut events) = view(&["a"]);
    list(&view, &None, &[pod("a", 5)], "9");
    changes(&mut events);
    view.write_begins(&key("a"));
    view.saw_deleted(&pod("a", 12), Instant::now());
    view.gone(&key("a"), &"u-a".into());
    view.write_ends(&key("a"));
    assert_eq!(changes(&mut events), [""; 0]);
    assert_eq!(shown(view.live(&key("a"))), "absent");
}

#[test]
fn a_forbidden_kind_is_unknown_and_a_broken_watch_keeps_what_is_known() {
    let (view, mut events) = view(&["a"]);
    list(&view, &None, &[pod("a", 5)], "9");
    view.set_broken(&None, &"down".into());
    view.set_broken(&None, &"down".into());
    assert_eq!(shown(view.live(&key("a"))), "5");
    assert_eq!(&*view.health().trouble.unwrap().1, "down");
    assert_eq!(changes(&mut events), ["synced", "degraded: down"]);
    view.set_working(&None);
    assert_eq!(changes(&mut events), ["recovered"]);
    view.set_unknown(&None, &"forbidden".into());
    assert_eq!(shown(view.live(&key("a"))), "unknown: forbidden");
    list(&view, &None, &[pod("a", 5)], "9");
    assert_eq!(changes(&mut events), ["degraded: forbidden", "synced"]);
}

#[test]
fn namespaces_are_known_one_by_one_and_others_are_unknown() {
    let (view, _events) = view(&["a"]);
    let scope: Scope = Some("s".into());
    view.set_scopes(&BTreeSet::from([scope.clone(), Some("t".into())]));
    list(&view, &scope, &[pod("a", 5)], "9");
    assert_eq!(shown(view.live(&key("a"))), "5");
    let elsewhere = |namespace| ObjectKey::new(GroupKind::new("", "Pod"), namespace, "a");
    assert_eq!(shown(view.live(&elsewhere("t"))), "unknown: it has not been listed yet");
    assert!(shown(view.live(&elsewhere("x"))).contains("x is not one of them"));
    assert!(!view.health().synced);
}

fn all(view: &View) -> String {
    match view.all("s") {
        Ok(objects) => {
            let versions: Vec<_> = objects.iter().map(|it| &*it.resource_version).collect();
            versions.join(" ")
        }
        Err(reason) => format!("unknown: {reason}"),
    }
}

fn whole() -> HashSet<Arc<str>> {
    HashSet::from(["s".into()])
}

#[test]
fn a_namespace_that_is_watched_whole_has_all_its_objects_by_name() {
    let (view, mut events) = view(&["b"]);
    view.set_interest(&HashSet::from([key("b")]), &whole());
    assert_eq!(all(&view), "unknown: it has not been listed yet");
    list(&view, &None, &[pod("c", 5), pod("a", 3), pod("b", 4)], "9");
    assert_eq!(all(&view), "3 4 5");
    assert_eq!(shown(view.live(&key("z"))), "absent", "what no list shows is not there");
    changes(&mut events);
    view.saw(&pod("d", 10), Instant::now());
    view.saw_deleted(&pod("a", 11), Instant::now());
    assert_eq!(changes(&mut events), ["d", "a"]);
    assert_eq!(all(&view), "4 5 10");
    list(&view, &None, &[pod("b", 4), pod("d", 10)], "12");
    assert_eq!(all(&view), "4 10");
    assert_eq!(view.health().objects, 2, "what is gone and has no name with us is forgotten");
}

#[test]
fn a_namespace_that_becomes_whole_after_a_list_is_unknown_until_the_next_one() {
    let (view, mut events) = view(&["a"]);
    list(&view, &None, &[pod("a", 5), pod("b", 6)], "9");
    assert_eq!(all(&view), "unknown: nobody has asked to watch all of its kind there");
    assert!(view.set_interest(&HashSet::from([key("a")]), &whole()).relist);
    assert_eq!(all(&view), "unknown: it has not been listed yet");
    changes(&mut events);
    list(&view, &None, &[pod("a", 5), pod("b", 6)], "10");
    assert_eq!(all(&view), "5 6");
    assert_eq!(changes(&mut events), ["b", "synced"], "whoever waits for it is told");
    assert!(!view.set_interest(&HashSet::from([key("b")]), &whole()).relist);
    assert_eq!(all(&view), "5 6", "what was known stays");
}

#[test]
fn one_object_that_does_not_decode_makes_the_whole_unknown_and_not_shorter() {
    let (view, _events) = view(&[]);
    view.set_interest(&HashSet::new(), &whole());
    let damaged = br#"{"metadata":{"name":"b","namespace":"s"}}"#.to_vec();
    list(&view, &None, &[pod("a", 5), damaged], "9");
    assert!(all(&view).starts_with("unknown: b: it does not decode"), "{}", all(&view));
    list(&view, &None, &[pod("a", 5), br#"{"metadata":{}}"#.to_vec()], "10");
    assert!(all(&view).starts_with("unknown: "), "{}", all(&view));
    list(&view, &None, &[pod("a", 5)], "11");
    assert_eq!(all(&view), "5");
}
