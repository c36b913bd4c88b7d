//! What goes out through the two imports: bounded, escaped, and only what was declared.

use crate::guest::{
    MANIFEST, WIT, compare, component, load, module, no_lookups, sandbox, snapshot, with_manifest,
};
use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};
use tracing::field::{Field, Visit};
use trimtab_core::decision::Comparison;
use trimtab_core::identity::GroupKind;
use trimtab_core::plugin::PluginIdentity;
use trimtab_core::ports::PluginFault;
use trimtab_wasm::{Limits, LookupError, Lookups, Plugin};

thread_local! {
    /// The lines that were logged on this thread: each test has one, and calls on it.
    static LINES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Keeps the lines of plugins.
struct Lines;

impl tracing::Subscriber for Lines {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "trimtab::plugin"
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        struct Text(String);
        impl Visit for Text {
            fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
                self.0.push_str(&format!("{}={value:?} ", field.name()));
            }
        }
        let mut text = Text(String::new());
        event.record(&mut text);
        LINES.with_borrow_mut(|lines| lines.push(text.0));
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

fn logged(run: impl FnOnce()) -> Vec<String> {
    static INSTALLED: LazyLock<()> = LazyLock::new(|| {
        tracing::subscriber::set_global_default(Lines).unwrap();
    });
    LazyLock::force(&INSTALLED);
    LINES.with_borrow_mut(Vec::clear);
    run();
    LINES.take()
}

/// Logs this text at level error, then does `then`.
fn log_error(text: &str, then: &str) -> (String, String) {
    let length = text.len() - 2 * text.matches('\\').count();
    (
        format!(r#"(data (i32.const 4096) "{text}")"#),
        format!("(call $log (i32.const 3) (i32.const 4096) (i32.const {length})) {then}"),
    )
}

#[test]
fn a_line_names_the_plugin_and_the_object_and_forges_no_other() {
    let (data, body) = log_error("one\\0atwo", "");
    let lines = logged(|| assert_eq!(compare(&load(&data, &body)), Ok(Comparison::InSync)));
    assert_eq!(lines.len(), 1, "{lines:?}");
    for part in ["one\\ntwo", "hostile", "ConfigMap shop/a"] {
        assert!(lines[0].contains(part), "{part}: {}", lines[0]);
    }
}

#[test]
fn a_flood_of_lines_is_cut_and_says_so_once() {
    let flood = "(local $i i32)
        (loop $l
            (call $log (i32.const 1) (i32.const 4096) (i32.const 10))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br_if $l (i32.lt_u (local.get $i) (i32.const 10000))))";
    let plugin = load("", flood);
    let lines = logged(|| assert_eq!(compare(&plugin), Ok(Comparison::InSync)));
    assert_eq!(lines.len(), Limits::default().log_lines as usize + 1);
    assert!(lines.last().unwrap().contains("dropped=9950"), "{lines:?}");
}

#[test]
fn a_line_of_many_megabytes_is_a_limit() {
    let body = "(drop (memory.grow (i32.const 512)))
        (call $log (i32.const 1) (i32.const 65536) (i32.const 20000000))";
    assert!(matches!(compare(&load("", body)), Err(PluginFault::Limit(_))));
}

#[test]
fn a_panics_text_is_the_traps_text() {
    let (data, body) = log_error("panicked at src/lib.rs:3:\\0aindex out of bounds", "unreachable");
    assert_eq!(
        compare(&load(&data, &body)),
        Err(PluginFault::Trap("panicked at src/lib.rs:3:\\nindex out of bounds".into()))
    );
}

#[test]
fn a_guest_that_is_shown_a_secret_has_no_log_and_no_last_words() {
    let (data, body) = log_error("hunter2", "unreachable");
    let plugin = load(&data, &body);
    let lines = logged(|| {
        let fault = plugin.compare(&snapshot("Secret"), &no_lookups()).unwrap_err();
        assert!(!fault.to_string().contains("hunter2"), "{fault}");
    });
    assert!(lines.is_empty(), "{lines:?}");
}

/// Counts what it is asked; has two objects of this size of every kind.
#[derive(Default)]
struct Counting {
    asked: AtomicU32,
    bytes: usize,
}

impl Lookups for Counting {
    fn get(
        &self,
        _: &PluginIdentity,
        _: &GroupKind,
        _: &str,
        _: &str,
    ) -> Result<Option<Arc<[u8]>>, LookupError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Ok(None)
    }

    fn find(
        &self,
        _: &PluginIdentity,
        _: &GroupKind,
        _: &str,
    ) -> Result<Vec<Arc<[u8]>>, LookupError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Ok(vec![vec![b' '; self.bytes].into(); 2])
    }
}

/// Looks up an object of this kind `times`, then answers `unknown` with the digit of the last
/// answer: 0 for one that was given, else 1 and the error's number.
fn looks_up(kind: &str, times: u32) -> (String, String) {
    (
        format!(r#"(data (i32.const 4096) "{kind}")"#),
        format!(
            "(local $i i32)
            (loop $l
                (call $lookup (i32.const 0) (i32.const 0) (i32.const 4096) (i32.const {})
                    (i32.const 0) (i32.const 0) (i32.const 4096) (i32.const 1) (i32.const 8192))
                (local.set $i (i32.add (local.get $i) (i32.const 1)))
                (br_if $l (i32.lt_u (local.get $i) (i32.const {times}))))
            (i32.store8 (i32.const 9000) (i32.add (i32.const 48)
                (i32.mul (i32.load8_u (i32.const 8192))
                    (i32.add (i32.const 1) (i32.load8_u (i32.const 8196))))))
            {}",
            kind.len(),
            crate::guest::answer_unknown(9000, 1)
        ),
    )
}

fn asks(kind: &str, times: u32) -> (String, u32) {
    let (data, body) = looks_up(kind, times);
    let counting = Arc::new(Counting::default());
    let lookups: Arc<dyn Lookups> = counting.clone();
    match load(&data, &body).compare(&snapshot("ConfigMap"), &lookups) {
        Ok(Comparison::Unknown(answer)) => (answer, counting.asked.load(Ordering::Relaxed)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_read_that_the_manifest_does_not_declare_never_reaches_the_host() {
    assert_eq!(asks("Secret", 1), ("1".into(), 0), "undeclared");
    assert_eq!(asks("Service", 1), ("0".into(), 1), "declared");
}

#[test]
fn reads_beyond_their_number_are_exhausted() {
    assert_eq!(asks("Service", 40), ("4".into(), Limits::default().lookups));
}

/// Finds all objects of this kind, which has two of this size; answers as [`looks_up`] does.
fn finds(kind: &str, bytes: usize) -> String {
    let more = format!(
        r#"(import "trimtab:plugin/lookup@0.1.0" "find" (func $find (param i32 i32 i32 i32 i32 i32 i32)))
        (data (i32.const 4096) "{kind}")"#
    );
    let body = format!(
        "(call $find (i32.const 0) (i32.const 0) (i32.const 4096) (i32.const {})
            (i32.const 0) (i32.const 0) (i32.const 8192))
        (i32.store8 (i32.const 9000) (i32.add (i32.const 48)
            (i32.mul (i32.load8_u (i32.const 8192))
                (i32.add (i32.const 1) (i32.load8_u (i32.const 8196))))))
        (if (i32.eqz (i32.load8_u (i32.const 8192)))
            (then (i32.store8 (i32.const 9001)
                (i32.add (i32.const 48) (i32.load (i32.const 8200))))))
        {}",
        kind.len(),
        crate::guest::answer_unknown(9000, 2)
    );
    let lookups: Arc<dyn Lookups> = Arc::new(Counting { bytes, ..Counting::default() });
    match load(&more, &body).compare(&snapshot("ConfigMap"), &lookups) {
        Ok(Comparison::Unknown(answer)) => answer.trim_end_matches(['\0', ' ']).to_owned(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn all_objects_of_a_kind_are_handed_over_within_the_bytes_of_a_call() {
    assert_eq!(finds("Service", 1000), "02", "both");
    assert!(finds("Service", Limits::default().lookup_bytes / 2 + 1).starts_with('4'), "exhausted");
    assert!(finds("Secret", 1000).starts_with('1'), "undeclared");
}

#[test]
fn a_component_that_was_built_before_an_import_was_added_still_loads_and_runs() {
    let line = "find: func(group: string, kind: string, namespace: string) -> result<list<json>, lookup-error>;";
    let before = WIT.replace(line, "");
    assert_ne!(before, WIT);
    // It looks up a Service the old way.
    let (data, body) = looks_up("Service", 1);
    let old = with_manifest(component(&before, &module(&data, &body)), MANIFEST);
    let plugin = Plugin::load(&old, &sandbox()).unwrap();
    let lookups: Arc<dyn Lookups> = Arc::new(Counting::default());
    let answer = plugin.compare(&snapshot("ConfigMap"), &lookups);
    assert_eq!(answer, Ok(Comparison::Unknown("0".into())));
}
