//! A new plugin: a crate that compiles, with cases and a test that its logic can fail.

use crate::Error;
use std::fs;
use std::path::{Path, PathBuf};

/// Bytes of a plugin's name: an RFC 1123 label.
const MAX_NAME_BYTES: usize = 63;

/// The files of a new plugin. `__NAME__` and `__SDK__` are filled in.
const FILES: [(&str, &str); 8] = [
    ("Cargo.toml", include_str!("template/Cargo.toml.txt")),
    ("src/lib.rs", include_str!("template/lib.rs.txt")),
    ("cases/in-sync.yaml", include_str!("template/in-sync.yaml")),
    ("cases/missing.yaml", include_str!("template/missing.yaml")),
    ("cases/changed.yaml", include_str!("template/changed.yaml")),
    ("cases/immutable.yaml", include_str!("template/immutable.yaml")),
    ("README.md", include_str!("template/README.md")),
    (".gitignore", "/target\n/*.wasm\n"),
];

/// The files of a new policy.
const POLICY_FILES: [(&str, &str); 6] = [
    ("Cargo.toml", include_str!("template/policy/Cargo.toml.txt")),
    ("src/lib.rs", include_str!("template/policy/lib.rs.txt")),
    ("cases/labelled.yaml", include_str!("template/policy/labelled.yaml")),
    ("cases/unlabelled.yaml", include_str!("template/policy/unlabelled.yaml")),
    ("README.md", include_str!("template/policy/README.md")),
    (".gitignore", "/target\n/*.wasm\n"),
];

/// What a new plugin is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// It compares and decides.
    Reconciler,
    /// It reviews.
    Policy,
}

/// Where a new plugin takes the SDK from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sdk {
    /// The SDK crate's folder.
    Path(PathBuf),
    /// A Git repository that holds it.
    Git(String),
    /// A released version.
    Version(String),
}

impl Sdk {
    /// The SDK of the checkout that this program was built from, if it is still there.
    pub fn of_this_checkout() -> Option<Self> {
        let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk").canonicalize().ok()?;
        sdk.join("Cargo.toml").is_file().then_some(Self::Path(sdk))
    }

    /// As a dependency's value in a `Cargo.toml`.
    fn to_toml(&self) -> Result<String, Error> {
        // JSON's strings are TOML's basic strings.
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        Ok(match self {
            Self::Path(path) => {
                let path = path.canonicalize().map_err(Error::file(path))?;
                let manifest = path.join("Cargo.toml");
                fs::metadata(&manifest).map_err(Error::file(&manifest))?;
                format!("{{ path = {} }}", quoted(&path.to_string_lossy()))
            }
            Self::Git(url) => format!("{{ git = {} }}", quoted(url)),
            Self::Version(version) => quoted(version),
        })
    }
}

/// Writes a new plugin `name` into the folder `dir`; gives the files that were written.
///
/// # Errors
/// The name cannot be used, the folder is in use, or the SDK is not where it should be.
pub fn create(dir: &Path, name: &str, sdk: &Sdk, sort: Sort) -> Result<Vec<PathBuf>, Error> {
    check_name(name)?;
    let sdk = sdk.to_toml()?;
    if fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(Error::Occupied(dir.to_owned()));
    }
    let mut written = Vec::new();
    let files = match sort {
        Sort::Reconciler => &FILES[..],
        Sort::Policy => &POLICY_FILES[..],
    };
    for (file, text) in files {
        let path = dir.join(file);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(Error::file(folder))?;
        }
        let text = text.replace("__NAME__", name).replace("__SDK__", &sdk);
        fs::write(&path, text).map_err(Error::file(&path))?;
        written.push(path);
    }
    Ok(written)
}

fn check_name(name: &str) -> Result<(), Error> {
    let wrong = |why| Err(Error::Name { name: name.to_owned(), why });
    if name.is_empty() || name.len() > MAX_NAME_BYTES {
        return wrong("it has 1 to 63 characters");
    }
    if !name.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-') {
        return wrong("it is made of lower-case letters, digits and '-'");
    }
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || name.ends_with('-') {
        return wrong("it begins with a letter and does not end with '-'");
    }
    if matches!(name, "test" | "core" | "std" | "alloc" | "proc-macro" | "trimtab-sdk") {
        return wrong("a crate of this name would clash with Rust's own or the SDK's");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_no_crate_or_plugin_can_have_are_refused() {
        for name in ["", "Web", "a/b", "..", "-a", "a-", "1a", "test", "a b", "ä"] {
            assert!(check_name(name).is_err(), "{name}");
        }
        assert!(check_name("config-keeper2").is_ok());
    }

    #[test]
    fn a_folder_in_use_is_not_written_into() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("mine"), "x").unwrap();
        let error =
            create(dir.path(), "a", &Sdk::Version("0.1.0".into()), Sort::Policy).unwrap_err();
        assert!(matches!(error, Error::Occupied(_)), "{error}");
    }

    #[test]
    fn every_placeholder_is_filled_in() {
        let dir = tempfile::tempdir().unwrap();
        for (name, sort) in [("keeper", Sort::Reconciler), ("guard", Sort::Policy)] {
            let folder = dir.path().join(name);
            let sdk = Sdk::Git("https://a.example/b".into());
            for file in create(&folder, name, &sdk, sort).unwrap() {
                assert!(!fs::read_to_string(&file).unwrap().contains("__"), "{}", file.display());
            }
            let cargo = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
            assert!(cargo.contains("{ git = \"https://a.example/b\" }"), "{cargo}");
        }
    }
}
