//! Verdicts over repositories that Git, ssh-keygen and gpg made.

mod formats;
mod history;
mod limited;
mod openpgp;
mod ssh;
mod tampered;
mod world;
