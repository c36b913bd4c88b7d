//! Guests that import WASI: refused unless somebody says so, and then shown nothing of the world.

use crate::guest::{MANIFEST, WIT, answer_unknown, compare, component, module, no_lookups};
use crate::guest::{sandbox, snapshot, with_manifest};
use std::time::{Duration, Instant};
use trimtab_core::decision::Comparison;
use trimtab_core::ports::{Judge as _, PluginFault};
use trimtab_wasm::{Error, Limits, Plugin, inspect};

/// The interfaces of WASI that the guests here import, as WASI words them.
const PACKAGES: &str = "
package wasi:io@0.2.3 {
  interface poll {
    resource pollable { block: func(); }
    poll: func(in: list<borrow<pollable>>) -> list<u32>;
  }
}
package wasi:clocks@0.2.3 {
  interface wall-clock { record datetime { seconds: u64, nanoseconds: u32 } now: func() -> datetime; }
  interface monotonic-clock {
    use wasi:io/poll@0.2.3.{pollable};
    now: func() -> u64;
    subscribe-duration: func(when: u64) -> pollable;
  }
}
package wasi:random@0.2.3 {
  interface random { get-random-bytes: func(len: u64) -> list<u8>; get-random-u64: func() -> u64; }
}
package wasi:cli@0.2.3 {
  interface environment {
    get-environment: func() -> list<tuple<string, string>>;
    get-arguments: func() -> list<string>;
  }
  interface exit { exit: func(status: result); }
}
package wasi:filesystem@0.2.3 {
  interface types { resource descriptor; }
  interface preopens {
    use types.{descriptor};
    get-directories: func() -> list<tuple<descriptor, string>>;
  }
}
package wasi:sockets@0.2.3 {
  interface network {
    enum error-code {
      unknown, access-denied, not-supported, invalid-argument, out-of-memory, timeout,
      concurrency-conflict, not-in-progress, would-block, invalid-state, new-socket-limit,
      address-not-bindable, address-in-use, remote-unreachable, connection-refused,
      connection-reset, connection-aborted, datagram-too-large, name-unresolvable,
      temporary-resolver-failure, permanent-resolver-failure
    }
    enum ip-address-family { ipv4, ipv6 }
  }
  interface tcp { resource tcp-socket; }
  interface tcp-create-socket {
    use network.{error-code, ip-address-family};
    use tcp.{tcp-socket};
    create-tcp-socket: func(address-family: ip-address-family) -> result<tcp-socket, error-code>;
  }
}
package wasi:http@0.2.3 {
  interface types { http-error-code: func() -> u32; }
}
";

/// What each guest imports, as a core module does, and a way to show bytes: `$show` writes those at
/// an address as hexadecimal digits behind what was shown before, from 9000 on.
const HELPERS: &str = r#"
    (import "wasi:cli/environment@0.2.3" "get-environment" (func $environment (param i32)))
    (import "wasi:cli/environment@0.2.3" "get-arguments" (func $arguments (param i32)))
    (import "wasi:cli/exit@0.2.3" "exit" (func $exit (param i32)))
    (import "wasi:filesystem/preopens@0.2.3" "get-directories" (func $directories (param i32)))
    (import "wasi:sockets/tcp-create-socket@0.2.3" "create-tcp-socket"
        (func $socket (param i32 i32)))
    (import "wasi:clocks/wall-clock@0.2.3" "now" (func $wall (param i32)))
    (import "wasi:clocks/monotonic-clock@0.2.3" "now" (func $monotonic (result i64)))
    (import "wasi:clocks/monotonic-clock@0.2.3" "subscribe-duration"
        (func $after (param i64) (result i32)))
    (import "wasi:io/poll@0.2.3" "[method]pollable.block" (func $block (param i32)))
    (import "wasi:random/random@0.2.3" "get-random-bytes" (func $bytes (param i64 i32)))
    (import "wasi:random/random@0.2.3" "get-random-u64" (func $number (result i64)))
    (global $shown (mut i32) (i32.const 9000))
    (func $digit (param $value i32)
        (i32.store8 (global.get $shown) (i32.add (local.get $value)
            (select (i32.const 48) (i32.const 87) (i32.lt_u (local.get $value) (i32.const 10)))))
        (global.set $shown (i32.add (global.get $shown) (i32.const 1))))
    (func $show (param $at i32) (param $count i32)
        (loop $next
            (call $digit (i32.shr_u (i32.load8_u (local.get $at)) (i32.const 4)))
            (call $digit (i32.and (i32.load8_u (local.get $at)) (i32.const 15)))
            (local.set $at (i32.add (local.get $at) (i32.const 1)))
            (local.set $count (i32.sub (local.get $count) (i32.const 1)))
            (br_if $next (local.get $count))))"#;

/// A plugin file whose `compare` does this and answers with `digits` of what it showed.
fn file(compare: &str, digits: u32) -> Vec<u8> {
    let imports = [
        "cli/environment",
        "cli/exit",
        "filesystem/preopens",
        "sockets/tcp-create-socket",
        "clocks/wall-clock",
        "clocks/monotonic-clock",
        "io/poll",
        "random/random",
    ];
    let imports: String =
        imports.iter().map(|name| format!("  import wasi:{name}@0.2.3;\n")).collect();
    let wit = WIT.replace("  import log;\n", &format!("{imports}  import log;\n")) + PACKAGES;
    let body = format!("{compare} {}", answer_unknown(9000, digits));
    with_manifest(component(&wit, &module(HELPERS, &body)), MANIFEST)
}

fn granted(compare: &str, digits: u32) -> Plugin {
    Plugin::load_with_wasi(&file(compare, digits), &sandbox()).unwrap()
}

fn shown(plugin: &Plugin) -> String {
    match compare(plugin) {
        Ok(Comparison::Unknown(shown)) => shown,
        other => panic!("{other:?}"),
    }
}

fn limit(plugin: &Plugin) -> String {
    match compare(plugin) {
        Err(PluginFault::Limit(what)) => what,
        other => panic!("{other:?}"),
    }
}

/// Sleeps for an hour.
const SLEEP: &str = "(call $block (call $after (i64.const 3600000000000)))";

#[test]
fn a_file_that_imports_wasi_is_refused_by_name_unless_somebody_says_so() {
    let bytes = file("", 0);
    let error = Plugin::load(&bytes, &sandbox()).unwrap_err();
    let first = inspect(&bytes).unwrap().wasi().next().unwrap().to_owned();
    assert!(first.starts_with("wasi:"), "{first}");
    assert_eq!(error, Error::Wasi { name: first.clone() });
    let text = error.to_string();
    assert!(text.contains(&first) && text.contains("wasi: closed"), "{text}");
    // Said before anything is compiled: what would not compile is refused by its imports.
    let wit = WIT.replace("  import log;\n", "  import wasi:random/random@0.2.3;\n  import log;\n");
    let only = r#"(import "wasi:random/random@0.2.3" "get-random-u64" (func $number (result i64)))
        (func $tail (return_call $tail))"#;
    let bytes = with_manifest(component(&(wit + PACKAGES), &module(only, "")), MANIFEST);
    assert!(matches!(Plugin::load(&bytes, &sandbox()), Err(Error::Wasi { .. })));
    assert!(matches!(Plugin::load_with_wasi(&bytes, &sandbox()), Err(Error::Compile(_))));
}

#[test]
fn http_is_refused_whatever_anybody_says() {
    let wit = WIT.replace("  import log;\n", "  import wasi:http/types@0.2.3;\n  import log;\n");
    let more = r#"(import "wasi:http/types@0.2.3" "http-error-code" (func $http (result i32)))"#;
    let bytes = with_manifest(component(&(wit + PACKAGES), &module(more, "")), MANIFEST);
    let error = Plugin::load_with_wasi(&bytes, &sandbox()).unwrap_err();
    assert_eq!(error, Error::Import { name: "wasi:http/types@0.2.3".into() });
}

#[test]
fn there_is_no_variable_no_argument_no_folder_and_no_socket() {
    let plugin = granted(
        "(call $environment (i32.const 8192)) (call $show (i32.const 8196) (i32.const 1))
         (call $arguments (i32.const 8192)) (call $show (i32.const 8196) (i32.const 1))
         (call $directories (i32.const 8192)) (call $show (i32.const 8196) (i32.const 1))
         (call $socket (i32.const 0) (i32.const 8192))
         (call $show (i32.const 8192) (i32.const 1)) (call $show (i32.const 8196) (i32.const 1))",
        10,
    );
    assert!(std::env::vars().next().is_some() && std::env::args().next().is_some());
    // Three empty lists; an error, and it is access-denied.
    assert_eq!(shown(&plugin), "0000000101");
}

#[test]
fn both_clocks_stand_at_the_passes_time_and_a_sleep_is_over_at_once() {
    let look = "(call $wall (i32.const 8192)) (call $show (i32.const 8192) (i32.const 12))
        (i64.store (i32.const 8192) (call $monotonic))
        (call $show (i32.const 8192) (i32.const 8))";
    let plugin = granted(&format!("{look} {SLEEP} {look}"), 80);
    let mut object = snapshot("ConfigMap");
    object.now_ms = 1_767_225_600_123;
    let start = Instant::now();
    let answer = plugin.compare(&object, &no_lookups()).unwrap();
    assert!(start.elapsed() < Duration::from_secs(60), "it slept for {:?}", start.elapsed());
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let seconds = hex(&1_767_225_600_u64.to_le_bytes());
    let nanoseconds = hex(&123_000_000_u32.to_le_bytes());
    let monotonic = hex(&(object.now_ms * 1_000_000).to_le_bytes());
    let once = format!("{seconds}{nanoseconds}{monotonic}");
    assert_eq!(answer, Comparison::Unknown(format!("{once}{once}")));
}

#[test]
fn random_numbers_are_the_same_for_one_snapshot_and_others_for_another() {
    let draw = "(call $bytes (i64.const 40) (i32.const 8192))
        (call $show (i32.load (i32.const 8192)) (i32.const 40))
        (i64.store (i32.const 8200) (call $number)) (call $show (i32.const 8200) (i32.const 8))";
    let plugin = granted(draw, 96);
    let first = shown(&plugin);
    // The first calls are made twice and have to agree: a fault otherwise.
    assert!((0..20).all(|_| shown(&plugin) == first));
    // Of another process as well: nothing of the machine is in it.
    assert_eq!(shown(&granted(draw, 96)), first);
    let mut words: Vec<&str> = (0..12).map(|at| &first[at * 8..at * 8 + 8]).collect();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), 12, "they repeat: {first}");
    let mut later = snapshot("ConfigMap");
    later.now_ms += 1;
    assert_ne!(plugin.compare(&later, &no_lookups()), Ok(Comparison::Unknown(first)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_runtime_it_is_called_as_any_other() {
    let judge = granted(SLEEP, 0).judgement(no_lookups());
    let answer = judge.compare(&snapshot("ConfigMap")).await;
    assert_eq!(answer, Ok(Comparison::Unknown(String::new())));
}

#[test]
fn what_wasi_gives_is_limited_as_everything_else() {
    let hungry = "(call $bytes (i64.const 1000000000000) (i32.const 8192))";
    assert!(limit(&granted(hungry, 0)).starts_with("random numbers"));
    let hoard = "(loop $more (drop (call $after (i64.const 1))) (br $more))";
    let what = limit(&granted(hoard, 0));
    assert!(what.contains("WASI resources"), "{what}");
    let wall_time = Duration::from_millis(50);
    let endless = granted("(loop $l (drop (call $number)) (br $l))", 0);
    let endless = endless.with_limits(Limits { wall_time, ..Limits::default() });
    assert_eq!(compare(&endless), Err(PluginFault::Deadline(wall_time)));
}

#[test]
fn an_exit_ends_the_call_and_not_the_host() {
    match compare(&granted("(call $exit (i32.const 1))", 0)) {
        Err(PluginFault::Trap(text)) => assert!(text.contains("status 1"), "{text}"),
        other => panic!("{other:?}"),
    }
}
