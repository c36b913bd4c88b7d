//! Comparison by meaning: does the live object say what the desired one asks?
//!
//! [`compare`] takes both objects as trees, what the cluster's schema says of their type
//! ([`Facts`]), and [`Options`]; it gives the [`Difference`]s. It is a pure function, has no
//! dependency but `trimtab-json`, needs only `alloc`, never panics and never changes anything.
//!
//! # The rules, and where they come from
//!
//! | rule | source |
//! | --- | --- |
//! | Only what desired states is judged; `null` states nothing. | server-side apply: a field set is what was sent |
//! | `apiVersion`, `kind`, `status` and all of `metadata` but labels, annotations, finalizers and owner references are not judged. | the API server owns them or they are identity |
//! | Once live says `immutable: true`, the content of a ConfigMap or Secret and that word cannot change. | their validation |
//! | Without content of its own a ConfigMap or Secret is a place that others fill: what they put there is not stray. | trust bundles and tokens that controllers write |
//! | Quantities are compared as exact numbers (`1000m` = `1`, `3072Mi` = `3Gi`, `1G` ≠ `1Gi`). | apimachinery `resource.Quantity` |
//! | Numbers by value (`1e3` = `1000`); int-or-string by what it means (`80` = `"80"`). | JSON; apimachinery `intstr` |
//! | Keyed lists by their keys, a missing key taking its default (`protocol` is `TCP`); their order says nothing. Two elements with the same key are an error. | `x-kubernetes-list-map-keys`; structured-merge-diff |
//! | Sets by their elements; atomic lists in order. | `x-kubernetes-list-type` |
//! | In Go types a zero or empty value reads like an absent field, unless the field is a pointer (`runAsUser: 0`, `automountServiceAccountToken: false`, `emptyDir: {}`). In custom resources what is stated is stored. | `omitempty` in k8s.io/api; CRDs are stored as sent |
//! | An empty value where the server allocates or defaults (`clusterIP: ""`, `timeoutSeconds: 0`) asks for nothing. | the Go defaulting functions and allocators |
//! | base64 by content in Kubernetes' own types; `stringData` folds into `data`. | Secret |
//! | Go durations in custom resources when live is in Go's own spelling (`1h` = `1h0m0s`). | `time.Duration.String`, by which controllers rewrite |
//! | HPA metrics are a multiset; duplicates and empty entries in live are dropped. | the HPA controller reorders them |
//! | Finalizers, owner references: desired is a subset of live. | controllers add theirs |
//! | Live alone has an element of a keyed list, or of a map whose keys nobody defaults: stray. Anything else that live alone has is stray only where `managedFields` shows that a person or tool wrote it. Defaults, allocated and injected values never are. | DESIGN "Comparing" |
//! | Within an atomic list or map of a known type: what live alone has is changed, whoever wrote it, unless it is a default: an apply replaces the whole. | structured-merge-diff |
//! | A field that we applied before and no longer state: released. | `managedFields`, operation Apply |
//! | A field that the schema does not have: pruned. | structural schemas drop unknown fields |
//! | A value of a type that the schema does not allow is an error, told without the value. | the API server refuses it |
//!
//! All of it is held against the API server: docs/comparison.md has how, and the named exceptions.
//!
//! Beside it stands what the host and plugins both have to know of values: [`shapes`], what a secret looks
//! like.
//!
//! Start reading at `walk/mod.rs`.

#![no_std]

extern crate alloc;

mod base64;
mod difference;
mod exclusive;
pub mod facts;
pub mod ignore;
pub mod managed_fields;
mod options;
mod quantity;
mod scalar;
pub mod shapes;
mod time;
mod trail;
mod walk;

pub use base64::{decode as decode_base64, encode as encode_base64};
pub use difference::{CompareError, Difference, Kind};
pub use exclusive::excluded;
pub use facts::Facts;
pub use ignore::Rule;
pub use options::Options;
pub use quantity::{equal as quantity_equal, number_equal, order as quantity_order};
pub use walk::compare;
