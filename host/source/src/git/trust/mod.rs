//! Who may change desired state: the shapes that configuration and the Git source share.

use std::path::PathBuf;

/// Which signatures a source asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verification {
    /// Which commits must be signed.
    pub mode: Mode,
    /// Whose signatures count.
    pub signers: Vec<SignerSource>,
    /// Whether the signature of an annotated tag counts for the commit that it names.
    pub tags: bool,
    /// With [`Mode::Every`]: the commit from which on every one must be signed.
    pub since: Option<String>,
}

/// Which commits must be signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The commit that is applied.
    Head,
    /// Every commit since the last one that was applied.
    Every,
}

/// Where allowed signers are listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignerSource {
    /// A file as ssh-keygen reads it (`allowed_signers`).
    AllowedSigners(PathBuf),
    /// OpenPGP public keys: a file or a folder of them.
    OpenPgp(PathBuf),
}

/// What becomes of a revision that does not descend from the last one that was accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HistoryPolicy {
    /// Refused until a person allows that one revision.
    #[default]
    ForwardOnly,
    /// Taken as any other.
    Any,
}
