//! What is known without any schema: of a few kinds, and of pod templates inside custom resources
//! whose schema does not describe them.

/// A place that no schema describes, and what its surroundings tell of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Guess {
    /// Nothing.
    Free,
    /// A Secret.
    Secret,
    /// Its data.
    SecretData,
    /// A HorizontalPodAutoscaler.
    Autoscaler,
    /// Its spec.
    AutoscalerSpec,
    /// A list that means the same in any order.
    Multiset,
    /// A list called `containers` or such.
    Containers,
    /// An element of that.
    Container,
    /// Its `resources`.
    Resources,
    /// `requests` or `limits` in that.
    Quantities,
    /// A quantity.
    Quantity,
    /// base64.
    Byte,
}

impl Guess {
    pub(super) fn of_kind(kind: &str) -> Self {
        match kind {
            "Secret" => Guess::Secret,
            "HorizontalPodAutoscaler" => Guess::Autoscaler,
            _ => Guess::Free,
        }
    }

    pub(super) fn field(self, name: &str) -> Self {
        match (self, name) {
            (Guess::Secret, "data") => Guess::SecretData,
            (Guess::SecretData, _) => Guess::Byte,
            (Guess::Autoscaler, "spec") => Guess::AutoscalerSpec,
            (Guess::AutoscalerSpec, "metrics") => Guess::Multiset,
            (Guess::Container, "resources") => Guess::Resources,
            (Guess::Resources, "requests" | "limits") => Guess::Quantities,
            (Guess::Quantities, _) => Guess::Quantity,
            (_, "containers" | "initContainers" | "ephemeralContainers") => Guess::Containers,
            _ => Guess::Free,
        }
    }

    pub(super) fn item(self) -> Self {
        match self {
            Guess::Containers => Guess::Container,
            _ => Guess::Free,
        }
    }
}
