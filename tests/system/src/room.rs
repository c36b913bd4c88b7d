//! A host's place in the world: its source, plugins, grants, state and credentials, in one
//! temporary folder.

use crate::{Built, Cluster, Host, Journal, Once};
use anyhow::{Context as _, Result};
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// How the namespaces of inventories begin: each host of the tests has its own.
pub(crate) const INVENTORY: &str = "inventory-of-";

/// The folders of one host. Removed with the value.
pub struct Room {
    folder: TempDir,
    built: Built,
    user: String,
    /// Further arguments for `trimtab run`.
    pub arguments: Vec<OsString>,
    /// Further environment for `trimtab run`; it gets nothing else but `PATH` and `HOME`.
    pub environment: Vec<(String, OsString)>,
    /// A configuration file that names the source, in place of `--source`.
    pub config: Option<PathBuf>,
    /// Where the credentials are; without it the host looks for some itself.
    pub kubeconfig: Option<PathBuf>,
}

impl Room {
    pub(crate) fn new(built: Built, user: &str, kubeconfig: &str) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("trimtab-room-").tempdir()?;
        for name in ["source", "plugins", "grants", "home"] {
            std::fs::create_dir(folder.path().join(name))?;
        }
        let file = folder.path().join("kubeconfig");
        std::fs::write(&file, kubeconfig)?;
        Ok(Self {
            folder,
            built,
            user: user.to_owned(),
            arguments: Vec::new(),
            environment: Vec::new(),
            config: None,
            kubeconfig: Some(file),
        })
    }

    /// From now on the host has a Pod's own credentials and nothing else: a real token of this
    /// ServiceAccount, in a folder as a kubelet lays it out.
    ///
    /// # Errors
    /// The account is not there, or a file cannot be written.
    pub async fn as_service_account(
        &mut self,
        cluster: &Cluster,
        namespace: &str,
        account: &str,
    ) -> Result<()> {
        let folder = self.path().join("serviceaccount");
        std::fs::create_dir(&folder)?;
        let token = cluster.user("installer")?.token(namespace, account).await?;
        std::fs::write(folder.join("token"), token)?;
        std::fs::write(folder.join("ca.crt"), cluster.ca_pem())?;
        std::fs::write(folder.join("namespace"), namespace)?;
        let server = cluster.server().trim_start_matches("https://");
        let (address, port) = server.rsplit_once(':').context("the server's port")?;
        self.kubeconfig = None;
        self.environment = [
            ("KUBERNETES_SERVICE_HOST", address.into()),
            ("KUBERNETES_SERVICE_PORT", port.into()),
            ("TRIMTAB_SERVICE_ACCOUNT_DIR", folder.into_os_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        Ok(())
    }

    /// The user that the audit log shows for this host.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// What is under test.
    pub fn built(&self) -> &Built {
        &self.built
    }

    /// The namespace of the host's inventory.
    pub fn inventory(&self) -> String {
        let label =
            |it: char| if it.is_ascii_alphanumeric() { it.to_ascii_lowercase() } else { '-' };
        let name: String = self.user.chars().map(label).collect();
        format!("{INVENTORY}{}", name.trim_matches('-'))
    }

    /// The folder with everything.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Where desired state is.
    pub fn source(&self) -> PathBuf {
        self.path().join("source")
    }

    /// The plugin directory.
    pub fn plugins(&self) -> PathBuf {
        self.path().join("plugins")
    }

    /// The folder of grants.
    pub fn grants(&self) -> PathBuf {
        self.path().join("grants")
    }

    /// The state directory.
    pub fn state(&self) -> PathBuf {
        self.path().join("state")
    }

    /// What the host writes to stderr, over all its runs.
    pub fn log_file(&self) -> PathBuf {
        self.path().join("host.log")
    }

    /// The journal of the state directory.
    pub fn journal(&self) -> Journal {
        Journal::new(&self.state())
    }

    /// Puts a file into the source, whole at once.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn declare(&self, file: &str, text: &str) -> Result<()> {
        self.put(&self.source().join(file), text.as_bytes())
    }

    /// Takes a file out of the source.
    ///
    /// # Errors
    /// It is not there.
    pub fn withdraw(&self, file: &str) -> Result<()> {
        let path = self.source().join(file);
        std::fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))
    }

    /// Puts a file into the plugin directory, whole at once.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn drop_plugin(&self, file: &str, bytes: &[u8]) -> Result<()> {
        self.put(&self.plugins().join(file), bytes)
    }

    /// Puts one of our plugins into the plugin directory.
    ///
    /// # Errors
    /// It is not built, or cannot be written.
    pub fn drop_our_plugin(&self, name: &str) -> Result<()> {
        self.drop_plugin(&format!("{name}.wasm"), &self.built.plugin_bytes(name)?)
    }

    /// Grants a file of the plugin directory everything that it asks for, with the command that
    /// a person would use. Replaces the grant of an older file of that name.
    ///
    /// # Errors
    /// The command fails.
    pub fn enforce(&self, file: &str) -> Result<()> {
        let grant = self.grant_of(file, "enforce")?;
        self.grant(file, &grant)
    }

    /// The grant that `trimtab plugin grant` prints for a file of the plugin directory, with every
    /// hard denial lifted: what tests declare is what their administrator means.
    ///
    /// # Errors
    /// The command fails.
    pub fn grant_of(&self, file: &str, mode: &str) -> Result<String> {
        let path = self.plugins().join(file);
        let arguments = [
            "plugin".as_ref(),
            "grant".as_ref(),
            path.as_os_str(),
            "--mode".as_ref(),
            mode.as_ref(),
            "--allow".as_ref(),
            "all".as_ref(),
        ];
        self.built.output(&arguments)
    }

    /// Puts this grant where the host looks.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn grant(&self, name: &str, yaml: &str) -> Result<()> {
        self.put(&self.grants().join(format!("{name}.yaml")), yaml.as_bytes())
    }

    /// The generic plugin, dropped and granted: what most tests begin with.
    ///
    /// # Errors
    /// As its two parts.
    pub fn with_generic(self) -> Result<Self> {
        self.drop_our_plugin("generic")?;
        self.enforce("generic.wasm")?;
        Ok(self)
    }

    /// Starts the host.
    ///
    /// # Errors
    /// It cannot be run.
    pub fn start(&self) -> Result<Host> {
        Host::start(self, &[])
    }

    /// Runs `trimtab run --once` to its end.
    ///
    /// # Errors
    /// It cannot be run, or does not end within the time that it was given.
    pub async fn once(&self) -> Result<Once> {
        self.once_within(300).await
    }

    /// The same with `--timeout`, in seconds.
    ///
    /// # Errors
    /// As [`Room::once`].
    pub async fn once_within(&self, seconds: u64) -> Result<Once> {
        let timeout = seconds.to_string();
        Host::start(self, &["--once", "--timeout", &timeout, "-o", "json"])?
            .end_of_round(seconds)
            .await
    }

    /// Runs `trimtab plan` on what the room's host would run on: exit status, stdout and stderr.
    ///
    /// # Errors
    /// It cannot be run.
    pub fn plan(&self, arguments: &[&str]) -> Result<(i32, String, String)> {
        let output = std::process::Command::new(std::path::absolute(&self.built.trimtab)?)
            .arg("plan")
            .args(self.run_arguments().iter().skip(1))
            .args(arguments)
            .output()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let status = output.status.code().context("ended by a signal")?;
        Ok((status, text(&output.stdout), text(&output.stderr)))
    }

    /// What `trimtab audit verify` says of the room's log.
    ///
    /// # Errors
    /// The log is not whole, with the first bad record.
    pub fn verify_audit(&self) -> Result<Value> {
        let state = self.state();
        let verify = ["audit", "verify", "-o", "json", "--state"].map(std::ffi::OsStr::new);
        let all: Vec<&std::ffi::OsStr> = verify.into_iter().chain([state.as_os_str()]).collect();
        Ok(serde_json::from_str(&self.built.output(&all)?)?)
    }

    /// What `trimtab findings` says, as JSON.
    ///
    /// # Errors
    /// The command fails, or no host has run.
    pub fn findings(&self, arguments: &[&str]) -> Result<Vec<Value>> {
        let output = std::process::Command::new(std::path::absolute(&self.built.trimtab)?)
            .args(["findings", "-o", "json", "--state"])
            .arg(self.state())
            .args(arguments)
            .output()?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        // 1 says that there are some.
        anyhow::ensure!(matches!(output.status.code(), Some(0 | 1)), "trimtab findings: {text}");
        let file: Value = serde_json::from_slice(&output.stdout)?;
        Ok(file["findings"].as_array().cloned().unwrap_or_default())
    }

    /// What `trimtab audit explain` prints.
    ///
    /// # Errors
    /// The command fails.
    pub fn explain(&self, arguments: &[&str]) -> Result<String> {
        let state = self.state();
        let mut all: Vec<&std::ffi::OsStr> = vec!["audit".as_ref(), "explain".as_ref()];
        all.extend(arguments.iter().map(std::ffi::OsStr::new));
        all.extend(["--state".as_ref(), state.as_os_str()]);
        self.built.output(&all)
    }

    /// The entry of this file in the plugin list that the host writes.
    ///
    /// # Errors
    /// There is no list yet, or no such file in it.
    pub fn plugin_status(&self, file: &str) -> Result<Value> {
        let list = std::fs::read(self.state().join("plugins.json"))?;
        let list: Value = serde_json::from_slice(&list)?;
        let mut plugins = list["plugins"].as_array().into_iter().flatten();
        let found = plugins.find(|plugin| plugin["file"] == file);
        found.cloned().with_context(|| format!("{file} is not in the plugin list"))
    }

    pub(crate) fn run_arguments(&self) -> Vec<OsString> {
        let mut all: Vec<OsString> = vec!["run".into()];
        let mut option =
            |name: &str, value: PathBuf| all.extend([name.into(), value.into_os_string()]);
        match &self.config {
            Some(config) => option("--config", config.clone()),
            None => option("--source", self.source()),
        }
        option("--plugins", self.plugins());
        option("--grants", self.grants());
        option("--state", self.state());
        // Some tests name another.
        if !self.arguments.iter().any(|it| it == "--inventory-namespace") {
            option("--inventory-namespace", self.inventory().into());
        }
        if let Some(kubeconfig) = &self.kubeconfig {
            option("--kubeconfig", kubeconfig.clone());
        }
        all.extend(self.arguments.iter().cloned());
        all
    }

    /// By renaming, so that nobody ever sees half of it.
    fn put(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let mut file = tempfile::NamedTempFile::new_in(self.path())?;
        std::io::Write::write_all(&mut file, bytes)?;
        file.persist(path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(())
    }
}
