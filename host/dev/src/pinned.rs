//! Which releases of etcd and Kubernetes Trimtab builds, and down to which it accepts others.
//!
//! This is the file to change for a new release, together with `go.mod` and `go.sum` under
//! `control-plane/`. Those two are part of this binary, so an installed `trimtab` builds exactly
//! what the repository pins: every dependency's version and checksum.
//!
//! The checksum files hold what building needs and not what `go mod tidy` adds for tests. After a
//! change of `go.mod`: empty `go.sum`, then `GOFLAGS=-mod=mod go list -deps PACKAGE…`.

use sha2::{Digest, Sha256};

use crate::binaries::Version;

/// A Go module of ours that pins one upstream release.
pub(crate) struct Module {
    pub(crate) name: &'static str,
    /// The upstream release; a test holds it against `go_mod`.
    pub(crate) version: &'static str,
    /// The oldest release that is accepted when it is found instead of built.
    pub(crate) minimum: Version,
    pub(crate) go_mod: &'static str,
    pub(crate) go_sum: &'static str,
    pub(crate) ldflags: &'static str,
}

/// One program of a module.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) module: &'static Module,
    pub(crate) package: &'static str,
    /// How long a first build takes: measured on two cores, for a person who waits.
    pub(crate) takes: &'static str,
    /// How many packages it is made of (`go list -deps`), Go's own included.
    pub(crate) packages: u32,
}

static ETCD_MODULE: Module = Module {
    name: "etcd",
    version: "v3.7.3",
    // What every Kubernetes from 1.33 on still supports.
    minimum: Version { major: 3, minor: 5, patch: 0 },
    go_mod: include_str!("../control-plane/etcd/go.mod"),
    go_sum: include_str!("../control-plane/etcd/go.sum"),
    ldflags: "-s -w",
};

static KUBERNETES_MODULE: Module = Module {
    name: "kubernetes",
    version: "v1.37.2",
    // Ordered namespace deletion, ratcheting validation and stable watch lists are on from here.
    minimum: Version { major: 1, minor: 33, patch: 0 },
    go_mod: include_str!("../control-plane/kubernetes/go.mod"),
    go_sum: include_str!("../control-plane/kubernetes/go.sum"),
    ldflags: "-s -w \
        -X k8s.io/component-base/version.gitVersion=v1.37.2 \
        -X k8s.io/component-base/version.gitMajor=1 \
        -X k8s.io/component-base/version.gitMinor=37",
};

pub(crate) static ETCD: Program = Program {
    name: "etcd",
    module: &ETCD_MODULE,
    package: "go.etcd.io/etcd/server/v3",
    takes: "about 1 minute",
    packages: 565,
};

pub(crate) static KUBE_APISERVER: Program = Program {
    name: "kube-apiserver",
    module: &KUBERNETES_MODULE,
    package: "k8s.io/kubernetes/cmd/kube-apiserver",
    takes: "about 6 minutes",
    packages: 2079,
};

pub(crate) static KUBE_CONTROLLER_MANAGER: Program = Program {
    name: "kube-controller-manager",
    module: &KUBERNETES_MODULE,
    package: "k8s.io/kubernetes/cmd/kube-controller-manager",
    takes: "about 2 minutes after kube-apiserver, 7 without",
    packages: 2440,
};

/// The oldest Go that builds these modules: what their `go.mod` files say.
pub(crate) const NEEDED_GO: &str = "1.26";
/// [`NEEDED_GO`], to compare.
pub(crate) const NEEDED_GO_VERSION: Version = Version { major: 1, minor: 26, patch: 0 };

impl Module {
    /// The cache's sub-folder: the release for people, the platform and a digest of everything
    /// that is pinned so that a changed pin is never served from an old build.
    pub(crate) fn key(&self) -> String {
        let mut digest = Sha256::new();
        for part in [self.go_mod, self.go_sum, self.ldflags] {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
        let digest = digest.finalize();
        let short: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
        format!("{}-{}-{os}-{arch}-{short}", self.name, self.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_versions_here_are_those_that_the_modules_pin() {
        for (module, path) in
            [(&ETCD_MODULE, "go.etcd.io/etcd/server/v3"), (&KUBERNETES_MODULE, "k8s.io/kubernetes")]
        {
            let pinned = format!("require {path} {}\n", module.version);
            assert!(module.go_mod.contains(&pinned), "{pinned}");
            assert!(module.go_mod.contains(&format!("\ngo {NEEDED_GO}.0\n")));
        }
        assert_eq!(NEEDED_GO_VERSION, Version::find(NEEDED_GO).unwrap());
        let Version { major, minor, .. } = Version::find(KUBERNETES_MODULE.version).unwrap();
        for flag in [
            format!("gitVersion={} ", KUBERNETES_MODULE.version),
            format!("gitMajor={major} "),
            format!("gitMinor={minor}"),
        ] {
            assert!(KUBERNETES_MODULE.ldflags.contains(&flag), "{flag}");
        }
    }
}
