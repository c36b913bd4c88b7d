//! The comparison: one walk over desired, live and facts in lock-step.
//!
//! This file has the entry, the state of the walk and what is special about the top of an object.
//! `value.rs` compares one value and the members of objects, `list.rs` lists, `absent.rs` deals
//! with what live lacks, `stray.rs` with what only live has, `released.rs` with what we stated
//! before, `secret.rs` with Secrets; `context.rs` has the defaults that depend on a neighbour and
//! `lookup.rs` keeps large objects and lists linear.
//!
//! A walk that finds nothing allocates nothing but indexes of objects and lists beyond a few dozen
//! members; paths are made only for what is reported.

mod absent;
mod context;
mod list;
mod lookup;
mod metadata;
mod released;
mod secret;
mod stray;
mod value;

pub(crate) use self::list::all_scalar;
pub(crate) use self::lookup::{By, Elements};

use crate::facts::{Facts, Node};
use crate::managed_fields::{self, Operation, Tree};
use crate::trail::Trail;
use crate::{CompareError, Difference, Kind, Options, ignore, scalar};
use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;
use trimtab_json::{Object, Path, Step, Value};

/// What stands in for a map that live lacks, so that what is missing is told by key.
const EMPTY: &Value<'static> = &Value::Object(Object::new());

/// What a step of the walk answers: differences go into the walk, an error ends it. Boxed, so that
/// the frames of the recursion stay small.
type Answer = Result<(), Box<CompareError>>;

/// Compares a live object with what desired asks of it.
///
/// `live` is `None` where the object does not exist: then the whole is [`Kind::Missing`] at the
/// root, and desired is still checked against the schema. The differences come in the order of
/// desired, then what only live has. Both objects are compared in one API version; that they have
/// the same identity is the caller's business.
///
/// The rules are in the crate's documentation. Linear in the size of the objects, but for lists
/// that are multisets (quadratic up to 64 elements, in order beyond).
///
/// # Errors
/// The first [`CompareError`]: desired is something that the API server would refuse.
pub fn compare<'a>(
    desired: &'a Value<'a>,
    live: Option<&'a Value<'a>>,
    facts: Facts<'_>,
    options: &Options<'_>,
) -> Result<Vec<Difference<'a>>, CompareError> {
    let Value::Object(wanted) = desired else { return Err(CompareError::NotAnObject) };
    let mut walk = Walk::new(live, options);
    let kind = desired.str_at(&["kind"]).unwrap_or_default();
    let node = facts.root().of_kind(kind);
    walk.known = !node.is_unknown();
    let answer = match live {
        None => walk.create(desired, wanted, &node),
        Some(Value::Object(live)) => walk.root(wanted, live, kind, &node),
        Some(_) => return Err(CompareError::NotAnObject),
    };
    match answer {
        Err(error) => Err(*error),
        Ok(()) if options.ignore.is_empty() => Ok(walk.out),
        Ok(()) => Ok(ignore::split(walk.out, live, options.ignore).0),
    }
}

/// The state of a walk.
struct Walk<'a> {
    out: Vec<Difference<'a>>,
    /// Whether live says who wrote what.
    managed: bool,
    /// What people and tools own, that are neither we nor the control plane.
    foreign: Vec<Tree<'a>>,
    /// What we own by apply, or our predecessors by update.
    ours: Vec<Tree<'a>>,
    /// Within the object's own metadata, and while a multiset is matched: what only live has is
    /// not looked at.
    quiet: bool,
    /// Within a map that desired speaks for as a whole: where live does not say who wrote what, what
    /// only live has is stray without further evidence.
    strict: bool,
    /// Within a value that an apply replaces as a whole, of a type that is known: what only live has
    /// goes with it, whoever wrote it.
    whole: bool,
    /// Whether anything is known of the object's type.
    known: bool,
    /// A Secret's `stringData`, whose members are stated in `data` too.
    plain: Option<&'a Object<'a>>,
    /// The admission plugin LimitRanger filled in requests and limits, and says so in live.
    limited: bool,
    /// How many steps lead to the immutable field that the walk is in.
    immutable: Option<usize>,
    /// Live is a ConfigMap or Secret that says of itself that its content cannot change.
    sealed: bool,
}

impl<'a> Walk<'a> {
    fn new(live: Option<&'a Value<'a>>, options: &Options<'_>) -> Self {
        let mut walk = Walk {
            out: Vec::new(),
            managed: false,
            foreign: Vec::new(),
            ours: Vec::new(),
            quiet: false,
            strict: false,
            whole: false,
            known: false,
            plain: None,
            limited: false,
            immutable: None,
            sealed: false,
        };
        let Some(live) = live else { return walk };
        let version = live.str_at(&["apiVersion"]).unwrap_or_default();
        walk.limited =
            live.at(&["metadata", "annotations", "kubernetes.io/limit-ranger"]).is_some();
        for entry in managed_fields::entries(live) {
            let tree = entry.tree();
            if tree.root().is_none() {
                continue;
            }
            walk.managed = true;
            if entry.subresource.is_some() || entry.api_version != version {
                continue;
            }
            let named = |names: &[&str]| names.contains(&entry.manager);
            let ours = named(options.managers);
            if ours && entry.operation == Operation::Apply
                || named(options.predecessors) && entry.operation == Operation::Update
            {
                walk.ours.push(tree);
            } else if !ours && !named(options.trusted) && !managed_fields::is_system(entry.manager)
            {
                walk.foreign.push(tree);
            }
        }
        walk
    }

    /// The object does not exist.
    fn create(
        &mut self,
        desired: &'a Value<'a>,
        wanted: &'a Object<'a>,
        node: &Node<'_>,
    ) -> Answer {
        self.out.push(Difference {
            path: Path::root(),
            kind: Kind::Missing,
            desired: Some(Cow::Borrowed(desired)),
            live: None,
            immutable: None,
        });
        for (name, value) in wanted.iter() {
            match name {
                "apiVersion" | "kind" | "status" => {}
                "metadata" => self.check_metadata(value)?,
                _ => {
                    let child = node.field(name);
                    self.check_member(value, node, &child, &Trail::ROOT.field(name))?;
                }
            }
        }
        Ok(())
    }

    /// The top of the object: what is compared there, and how.
    fn root(
        &mut self,
        wanted: &'a Object<'a>,
        live: &'a Object<'a>,
        kind: &str,
        node: &Node<'_>,
    ) -> Answer {
        let aggregated = wanted.get("aggregationRule").is_some_and(|rule| !rule.is_null());
        let holds_content = matches!(kind, "ConfigMap" | "Secret") && is_core(live);
        self.sealed = holds_content && live.get("immutable").and_then(Value::as_bool) == Some(true);
        // Declared without content, a ConfigMap is a place that somebody else fills.
        let is_nothing = |value| scalar::is_hollow(value) && !matches!(value, Value::Array(_));
        let is_place = kind == "ConfigMap"
            && CONTENT.iter().all(|name| wanted.get(name).is_none_or(is_nothing));
        for (name, desired) in wanted.iter() {
            match (kind, name) {
                (_, "apiVersion" | "kind" | "status") => {}
                (_, "metadata") => {
                    self.metadata(desired, live.get("metadata").unwrap_or(&Value::Null), node)?;
                }
                ("Secret", "data" | "stringData") => {}
                ("ConfigMap", "data" | "binaryData") if is_place => {}
                // The aggregation controller writes the rules (rbac/v1 ClusterRole.rules).
                ("ClusterRole", "rules") if aggregated => {}
                _ => {
                    self.strict = kind == "ConfigMap"
                        && matches!(name, "data" | "binaryData")
                        && !scalar::is_hollow(desired);
                    let child = node.field(name);
                    let live = live.get(name).or(self.strict.then_some(EMPTY));
                    self.member(desired, live, node, &child, &Trail::ROOT.field(name))?;
                    self.strict = false;
                }
            }
        }
        if kind == "Secret" {
            self.secret(wanted, live, node)?;
        }
        for (name, value) in live.iter() {
            let judged = match name {
                "apiVersion" | "kind" | "status" | "metadata" => false,
                "data" => kind != "Secret" && !is_place,
                "binaryData" => !is_place,
                "rules" => !(kind == "ClusterRole" && aggregated),
                _ => true,
            };
            if judged && wanted.get(name).is_none() {
                self.stray(name, value, live, &node.field(name), &Trail::ROOT.field(name));
            }
        }
        if kind == "Secret" {
            self.plain = wanted.get("stringData").and_then(Value::as_object);
        }
        self.released(wanted, live, node);
        Ok(())
    }

    /// Reports a difference.
    #[cold]
    #[inline(never)]
    fn report(
        &mut self,
        kind: Kind,
        desired: Option<Cow<'a, Value<'a>>>,
        live: Option<&'a Value<'a>>,
        node: &Node<'_>,
        trail: &Trail<'_>,
    ) {
        let path = trail.path();
        let depth = path.steps().len();
        let itself = (node.is_immutable() && live.is_some()).then_some(depth);
        let sealed = (self.sealed && is_sealed(&path)).then_some(1);
        let immutable = self
            .immutable
            .or(itself)
            .or(sealed)
            .map(|depth| path.steps().iter().take(depth).cloned().collect());
        self.out.push(Difference { path, kind, desired, live, immutable });
    }
}

/// Where a ConfigMap has its content.
const CONTENT: [&str; 2] = ["data", "binaryData"];

/// Whether an object is of the core group.
fn is_core(object: &Object<'_>) -> bool {
    object.get("apiVersion").and_then(Value::as_str) == Some("v1")
}

/// Whether a place cannot change once `immutable` is true: the content, and the word itself.
fn is_sealed(path: &Path) -> bool {
    matches!(path.steps().first(), Some(Step::Field(name)) if name == "immutable" || CONTENT.contains(&name.as_str()))
}
