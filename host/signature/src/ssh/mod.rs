//! OpenSSH's keys and signatures. PROTOCOL.sshsig, PROTOCOL.key and PROTOCOL.u2f of OpenSSH
//! describe the forms; `ssh-keygen` is what tests hold this against.

mod allowed;
mod key;
mod private;
mod signature;

pub use allowed::{AllowedSigners, Line};
pub use key::PublicKey;
pub use private::{is_private_key, private_key};
pub use signature::{BEGIN, Signature, sign};
