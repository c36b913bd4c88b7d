//! Files that never serve: refused before anything of them runs.

use super::arena::{Trial, trial};
use super::made::{self, Files};
use crate::world::Test;
use anyhow::Result;

async fn refused(number: u8, files: Files, says: &[&str]) -> Result<()> {
    let mut trial = Trial::begin(number).await?;
    for ((shape, file), says) in files.iter().zip(says) {
        trial.refuses(shape, file, says).await?;
    }
    trial.end(&[]).await
}

#[test]
pub(super) fn a_giant_file_is_not_parsed() -> Test {
    trial(|| refused(8, made::giant(), &["at most"]))
}

#[test]
pub(super) fn a_file_that_no_compiler_can_digest_is_given_up_and_nobody_waits_for_it() -> Test {
    trial(|| refused(9, made::bomb(), &["compiling it takes more than"]))
}

#[test]
pub(super) fn another_contract_is_refused_and_both_versions_are_named() -> Test {
    trial(|| refused(12, made::wrong_contracts(), &["0.2.0", "flush"]))
}

#[test]
pub(super) fn an_import_that_nobody_granted_is_refused_even_where_it_is_never_called() -> Test {
    trial(|| refused(13, made::imports(), &["wasi:cli/environment", "stranger:net/out"]))
}
