//! `trimtab`: the one place that names all adapters.
//!
//! Reads the command line, connects the adapters, and maps what happened to an exit status.
//! Start reading at `cli.rs` for what can be asked, at `engine` for the loop.

mod cli;
mod cmd;

mod engine;
mod findings;
mod generic;
mod journal;
mod made;
mod plugins;
mod rbac;
mod replay;
mod requests;
mod round;
mod schemas;
mod secrets;
mod signing;
mod sources;
mod state;
mod suspension;

mod output;
mod timestamp;

use clap::Parser as _;
use trimtab_settings::{config, grants};

fn main() -> std::process::ExitCode {
    cli::Cli::parse().run()
}
