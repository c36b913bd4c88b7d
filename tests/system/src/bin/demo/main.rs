//! `make demo`: the whole story of Trimtab, told once on a real API server.
//!
//! Takes nothing but what `make build` leaves in `target/`. Prints plain lines to stdout, one
//! step after the other; each step is held against the API server, its audit log and the host's
//! journal before the next one begins. Ends with status 0, or with 1 and the step that did not
//! happen. Whatever it started ends with it; nothing outside its temporary folders is touched.
//!
//! Start reading at `story.rs`.

mod story;
mod tell;

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    let told = tokio::select! {
        told = story::tell() => told,
        _ = tokio::signal::ctrl_c() => Err(anyhow::anyhow!("interrupted; everything that was started is ended")),
    };
    match told {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\ndemo: {error:#}");
            ExitCode::FAILURE
        }
    }
}
