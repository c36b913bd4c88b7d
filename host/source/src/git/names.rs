//! Names in a tree of Git: which of them could mean something else to another reader of the
//! repository. Nothing is ever written to a disk by these names; what is refused here would make a
//! tree mean one thing to the host and another to whoever checks it out to look at it.

use gix::bstr::BStr;
use gix::validate::path::{component, component::Options, component_is_windows_device};

/// Whether a name may stand in a tree.
///
/// # Errors
/// What is wrong with it; the words hold nothing of the name.
pub(crate) fn check(name: &[u8]) -> Result<(), &'static str> {
    if name.contains(&0) || name.iter().any(u8::is_ascii_control) {
        return Err("the name holds a control character");
    }
    if name.contains(&b'\\') {
        return Err("the name holds a backslash, which separates folders elsewhere");
    }
    let options = Options { protect_windows: false, protect_hfs: true, protect_ntfs: true };
    match component(BStr::new(name), None, options) {
        Ok(_) => {}
        Err(component::Error::DotGitDir) => {
            return Err("the name is .git, or is taken for it on some file systems");
        }
        Err(component::Error::Relative) => return Err("the name is . or .."),
        Err(component::Error::PathSeparator) => return Err("the name holds a slash"),
        Err(_) => return Err("the name is empty or no name of a file"),
    }
    if component_is_windows_device(BStr::new(name)) {
        return Err("the name is a device's on some systems");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn names_that_mean_something_else_elsewhere_are_refused() {
        for name in [
            &b".."[..],
            b".",
            b"",
            b"a/b",
            b"a\\b",
            b".git",
            b".GIT",
            b".Git ",
            b"git~1",
            b".git::$INDEX_ALLOCATION",
            ".g\u{200c}it".as_bytes(),
            b"a\0b",
            b"a\nb",
            b"\x1b[2J",
            b"con",
            b"NUL.yaml",
            b"com1.yml",
            b"aux.d.yaml",
            b"lpt9",
        ] {
            assert!(check(name).is_err(), "{:?}", String::from_utf8_lossy(name));
        }
        for name in [
            &b"a.yaml"[..],
            b".gitignore",
            b".github",
            b"...",
            b"console.yaml",
            b"system:node.yaml",
            b"auxiliary",
            b"com10.yaml",
            "\u{00fc}ber.yaml".as_bytes(),
            b"-n",
            b"a b.yaml",
        ] {
            assert_eq!(check(name), Ok(()), "{:?}", String::from_utf8_lossy(name));
        }
    }
}
