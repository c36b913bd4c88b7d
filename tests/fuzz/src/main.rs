//! A short run of every target on any toolchain: each seed, then inputs made of seeds, for the
//! given number of seconds in all. Prints what it did; a broken property ends it with the input.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use trimtab_fuzz::{TARGETS, mutate::Numbers};

/// The largest input, in bytes: beyond it a reader's limits matter more than its logic.
const INPUT_BYTES: usize = 64 << 10;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(folder), Some(Ok(seconds)), start) = (
        arguments.next().map(PathBuf::from),
        arguments.next().map(|text| text.parse::<u32>()),
        arguments.next().map_or(Ok(1), |text| text.parse::<u64>()),
    ) else {
        eprintln!("usage: trimtab-fuzz SEEDS SECONDS [NUMBER [TARGET]]");
        return ExitCode::from(2);
    };
    let Ok(start) = start else {
        eprintln!("the number that inputs are made from is a whole one");
        return ExitCode::from(2);
    };
    let wanted = arguments.next();
    let targets: Vec<_> = TARGETS
        .into_iter()
        .filter(|(name, _)| wanted.as_deref().is_none_or(|wanted| wanted == *name))
        .collect();
    let each =
        Duration::from_secs(seconds.into()) / u32::try_from(targets.len().max(1)).unwrap_or(1);
    for (name, target) in targets {
        let seeds = match seeds(&folder.join(name)) {
            Ok(seeds) => seeds,
            Err(problem) => {
                eprintln!("{problem}");
                return ExitCode::from(2);
            }
        };
        seeds.iter().for_each(|seed| run(name, target, seed));
        let (began, mut numbers, mut made) = (Instant::now(), Numbers::new(start), 0_u64);
        while began.elapsed() < each {
            let mut input = numbers.input(&seeds);
            input.truncate(INPUT_BYTES);
            run(name, target, &input);
            made += 1;
        }
        println!("{name}: {} seeds and {made} inputs made of them, from {start}", seeds.len());
    }
    ExitCode::SUCCESS
}

/// One input; a panic leaves it where it can be looked at.
fn run(name: &str, target: fn(&[u8]), input: &[u8]) {
    let outcome = std::panic::catch_unwind(|| target(input));
    if outcome.is_err() {
        let file = std::env::temp_dir().join(format!("trimtab-fuzz-{name}"));
        let kept = fs::write(&file, input).map_err(|error| error.to_string());
        eprintln!("target {name} broke; its input: {} {kept:?}", file.display());
        std::process::exit(1);
    }
}

fn seeds(folder: &Path) -> Result<Vec<Vec<u8>>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        files.push(entry.map_err(failed)?.path());
    }
    files.sort();
    files.iter().map(|file| fs::read(file).map_err(failed)).collect()
}
