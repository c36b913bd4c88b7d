//! WASI 0.2, closed: for plugins that other languages' toolchains make.
//!
//! Their standard libraries import files, arguments, clocks and random numbers whether the plugin
//! uses them or not. Here all of it links and none of it leads anywhere: no folder, argument or
//! variable; sockets are refused; input has ended, and what is printed is dropped. The clocks stand
//! at the pass's time, what waits for them is ready at once, and random numbers follow from the
//! snapshot: such a plugin is as pure as any other, and no host call of it can block.
//!
//! A plugin without WASI pays for a few words in its store.

use crate::call::Call;
use crate::limits;
use sha2::{Digest as _, Sha256};
use std::pin::Pin;
use trimtab_core::identity::Digest;
use trimtab_core::object::Live;
use trimtab_core::policy::Request;
use trimtab_core::snapshot::Snapshot;
use wasmtime::component::{HasSelf, Linker, Resource, ResourceTable};
use wasmtime_wasi::p2::bindings::clocks::wall_clock::Datetime;
use wasmtime_wasi::p2::bindings::clocks::{monotonic_clock, wall_clock};
use wasmtime_wasi::p2::bindings::random::{insecure, insecure_seed, random};
use wasmtime_wasi::p2::{DynPollable, Pollable, subscribe};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

const NANOSECONDS_PER_MILLISECOND: u32 = 1_000_000;

/// One call's WASI.
#[derive(Default)]
pub(crate) struct Wasi {
    /// The pass's time, in milliseconds since the Unix epoch.
    now_ms: u64,
    /// What random numbers follow from.
    seed: [u8; 32],
    /// Blocks of them that were drawn.
    drawn: u64,
    /// Made when it is first asked for.
    parts: Option<Box<Parts>>,
}

struct Parts {
    ctx: WasiCtx,
    table: ResourceTable,
}

impl Wasi {
    /// For a pass over this snapshot.
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        let live = match &snapshot.live {
            Live::Present(live) => Digest::of(&live.json),
            _ => Digest::of(b""),
        };
        let seed = Sha256::new()
            .chain_update(snapshot.key.to_string())
            .chain_update(snapshot.desired.digest.bytes())
            .chain_update(live.bytes())
            .chain_update(snapshot.now_ms.to_le_bytes())
            .finalize();
        Self { now_ms: snapshot.now_ms, seed: seed.into(), ..Self::default() }
    }

    /// For a review of this request.
    pub(crate) fn of_review(request: &Request) -> Self {
        let mut seed = Sha256::new().chain_update(request.key.to_string());
        for json in [&request.desired, &request.live] {
            seed.update(Digest::of(json.as_deref().unwrap_or_default()).bytes());
        }
        let seed = seed.chain_update(request.now_ms.to_le_bytes()).finalize();
        Self { now_ms: request.now_ms, seed: seed.into(), ..Self::default() }
    }

    fn nanoseconds(&self) -> u64 {
        self.now_ms.saturating_mul(NANOSECONDS_PER_MILLISECOND.into())
    }

    fn block(&mut self) -> [u8; 32] {
        let block = Sha256::new().chain_update(self.seed).chain_update(self.drawn.to_le_bytes());
        self.drawn += 1;
        block.finalize().into()
    }

    fn number(&mut self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.block();
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(count.next_multiple_of(32));
        while bytes.len() < count {
            bytes.extend_from_slice(&self.block());
        }
        bytes.truncate(count);
        bytes
    }
}

/// Links all of it: wasmtime's own for what is closed by holding nothing, ours for time and chance.
pub(crate) fn add_to_linker(linker: &mut Linker<Call>) -> wasmtime::Result<()> {
    wasmtime_wasi::p2::add_to_linker_sync(linker)?;
    linker.allow_shadowing(true);
    wall_clock::add_to_linker::<Call, HasSelf<Call>>(linker, |call| call)?;
    monotonic_clock::add_to_linker::<Call, HasSelf<Call>>(linker, |call| call)?;
    random::add_to_linker::<Call, HasSelf<Call>>(linker, |call| call)?;
    insecure::add_to_linker::<Call, HasSelf<Call>>(linker, |call| call)?;
    insecure_seed::add_to_linker::<Call, HasSelf<Call>>(linker, |call| call)?;
    linker.allow_shadowing(false);
    Ok(())
}

impl WasiView for Call {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let parts = self.wasi.parts.get_or_insert_with(|| {
            let mut table = ResourceTable::new();
            table.set_max_capacity(limits::WASI_RESOURCES);
            let mut builder = WasiCtx::builder();
            builder.allow_tcp(false).allow_udp(false).allow_ip_name_lookup(false);
            Box::new(Parts { ctx: builder.build(), table })
        });
        WasiCtxView { ctx: &mut parts.ctx, table: &mut parts.table }
    }
}

impl wall_clock::Host for Call {
    fn now(&mut self) -> wasmtime::Result<Datetime> {
        let (seconds, rest) = (self.wasi.now_ms / 1000, self.wasi.now_ms % 1000);
        let rest = u32::try_from(rest).unwrap_or_default();
        Ok(Datetime { seconds, nanoseconds: rest * NANOSECONDS_PER_MILLISECOND })
    }

    fn resolution(&mut self) -> wasmtime::Result<Datetime> {
        Ok(Datetime { seconds: 0, nanoseconds: NANOSECONDS_PER_MILLISECOND })
    }
}

impl monotonic_clock::Host for Call {
    fn now(&mut self) -> wasmtime::Result<u64> {
        Ok(self.wasi.nanoseconds())
    }

    fn resolution(&mut self) -> wasmtime::Result<u64> {
        Ok(NANOSECONDS_PER_MILLISECOND.into())
    }

    fn subscribe_instant(&mut self, _: u64) -> wasmtime::Result<Resource<DynPollable>> {
        over(self)
    }

    fn subscribe_duration(&mut self, _: u64) -> wasmtime::Result<Resource<DynPollable>> {
        over(self)
    }
}

/// A wait that is over: time does not pass here, and a host call that waited would outlast the
/// call's deadline.
fn over(call: &mut Call) -> wasmtime::Result<Resource<DynPollable>> {
    let table = call.ctx().table;
    let over = table.push(Over)?;
    subscribe(table, over)
}

struct Over;

impl Pollable for Over {
    fn ready<'a, 'b>(&'a mut self) -> Pin<Box<dyn Future<Output = ()> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(std::future::ready(()))
    }
}

impl random::Host for Call {
    fn get_random_bytes(&mut self, count: u64) -> wasmtime::Result<Vec<u8>> {
        match usize::try_from(count) {
            Ok(count) if count <= limits::WASI_RANDOM_BYTES => Ok(self.wasi.bytes(count)),
            _ => Err(self.meter.exceed(format!(
                "random numbers: it asks for {count} bytes at once, and {} are allowed",
                limits::WASI_RANDOM_BYTES
            ))),
        }
    }

    fn get_random_u64(&mut self) -> wasmtime::Result<u64> {
        Ok(self.wasi.number())
    }
}

impl insecure::Host for Call {
    fn get_insecure_random_bytes(&mut self, count: u64) -> wasmtime::Result<Vec<u8>> {
        random::Host::get_random_bytes(self, count)
    }

    fn get_insecure_random_u64(&mut self) -> wasmtime::Result<u64> {
        Ok(self.wasi.number())
    }
}

impl insecure_seed::Host for Call {
    fn insecure_seed(&mut self) -> wasmtime::Result<(u64, u64)> {
        Ok((self.wasi.number(), self.wasi.number()))
    }
}
