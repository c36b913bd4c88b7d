//! What people write for the host, read: texts in, values or one clear error out.
//!
//! [`grants`] are what an administrator allows each plugin, [`config`] says which sources a host
//! follows and what they are held to. Whatever a file says, nothing here
//! widens it: an unknown key, an impossible combination or half a set is an error with its place.

pub mod config;
pub mod grants;
