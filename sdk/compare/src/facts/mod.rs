//! What a type's schema says, as far as comparison needs it: a compact byte buffer that crosses the
//! sandbox boundary and is read where it lies, without parsing and without allocation.
//!
//! [`build`] makes the buffer of a built-in type from an API server's OpenAPI v3 document,
//! [`build_crd`] that of a custom resource from its CRD; the host does that once and caches it.
//! [`Facts`] reads it, here and in guests: [`Facts::root`] gives a [`Node`], and a node gives the
//! nodes of its fields, in lock-step with the walk over the objects.
//!
//! Nothing in a buffer is trusted: offsets that lead nowhere read as "nothing is known", loops in
//! the graph are fine because the objects end the walk.
//!
//! `layout.rs` is the format, `encode.rs` writes it, `schema.rs` reads schemas, `knowledge.rs` and
//! `pointers.rs` hold what the schemas do not say of Kubernetes' own types.

mod build;
mod encode;
mod guess;
mod keys;
mod knowledge;
mod layout;
mod pointers;
mod schema;

pub use build::{BuildError, build, build_crd};
pub(crate) use keys::Key;
pub use keys::Keys;
pub use layout::VERSION;

use guess::Guess;
use layout::{bits, marks};

/// A reader over a facts buffer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts<'f>(&'f [u8]);

impl<'f> Facts<'f> {
    /// Nothing is known of the type.
    pub const NONE: Facts<'static> = Facts(&[]);

    /// Reads `bytes`. A buffer of another version, or no buffer of ours at all, says nothing.
    pub const fn new(bytes: &'f [u8]) -> Self {
        Facts(bytes)
    }

    /// What the buffer says of the whole object.
    pub fn root(self) -> Node<'f> {
        if self.0.first() != Some(&VERSION) {
            return Node::UNKNOWN;
        }
        Node::read(self.0, layout::word(self.0, layout::ROOT).unwrap_or(0))
    }

    /// Whether the buffer is of this version and says anything.
    pub fn is_known(self) -> bool {
        !self.root().is_unknown()
    }
}

/// What the schema says of one place: of the value there (its type) and of the place itself (its
/// default, whether it can change).
#[derive(Clone, Copy, Debug)]
pub struct Node<'f> {
    bytes: &'f [u8],
    at: u32,
    bits: u32,
    default: u32,
    marks: u16,
    guess: Guess,
}

/// The type of a value, as far as the schema fixes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Not said.
    Any,
    /// An object.
    Object,
    /// A list.
    Array,
    /// A string.
    String,
    /// A number without a fraction.
    Integer,
    /// A number.
    Number,
    /// A boolean.
    Boolean,
}

/// How a list is merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    /// As a whole.
    Atomic,
    /// By element.
    Set,
    /// By key, see [`Node::keys`].
    Map,
    /// As a whole, in any order.
    Multiset,
}

/// How a string's text is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// As it stands.
    Plain,
    /// base64.
    Byte,
    /// RFC 3339.
    DateTime,
    /// A Go duration.
    Duration,
}

impl<'f> Node<'f> {
    /// Nothing is known of this place.
    pub const UNKNOWN: Node<'static> =
        Node { bytes: &[], at: 0, bits: 0, default: 0, marks: 0, guess: Guess::Free };

    fn read(bytes: &'f [u8], slot: u32) -> Self {
        let Some((at, bits, default, marks)) = layout::slot(bytes, slot) else {
            return Self::UNKNOWN;
        };
        Node { bytes, at, bits, default, marks, guess: Guess::Free }
    }

    fn guessed(self, guess: Guess) -> Self {
        Node { guess, ..Node::UNKNOWN }
    }

    /// Whether the schema says nothing here.
    pub const fn is_unknown(&self) -> bool {
        self.at == 0
    }

    const fn has(&self, bit: u32) -> bool {
        self.bits & bit != 0
    }

    const fn marked(&self, mark: u16) -> bool {
        self.marks & mark != 0
    }

    /// The type of the value.
    pub const fn kind(&self) -> Type {
        match self.bits & bits::TYPE {
            1 => Type::Object,
            2 => Type::Array,
            3 => Type::String,
            4 => Type::Integer,
            5 => Type::Number,
            6 => Type::Boolean,
            _ => Type::Any,
        }
    }

    /// How the list merges; what the schema does not say is atomic, as in server-side apply.
    pub const fn list(&self) -> List {
        match (self.bits & bits::LIST) >> bits::LIST_SHIFT {
            1 => List::Set,
            2 => List::Map,
            3 => List::Multiset,
            _ => match self.guess {
                Guess::Multiset => List::Multiset,
                _ => List::Atomic,
            },
        }
    }

    /// How the string is read.
    pub const fn format(&self) -> Format {
        match (self.bits & bits::FORMAT) >> bits::FORMAT_SHIFT {
            1 => Format::Byte,
            2 => Format::DateTime,
            3 => Format::Duration,
            _ => match self.guess {
                Guess::Byte => Format::Byte,
                _ => Format::Plain,
            },
        }
    }

    /// Whether the object is merged as a whole.
    pub const fn is_atomic_object(&self) -> bool {
        self.has(bits::ATOMIC_OBJECT)
    }

    /// Whether the value is a quantity.
    pub const fn is_quantity(&self) -> bool {
        self.has(bits::QUANTITY) || matches!(self.guess, Guess::Quantity)
    }

    /// Whether number and string are both right.
    pub const fn is_int_or_string(&self) -> bool {
        self.has(bits::INT_OR_STRING)
    }

    /// Whether the object keeps fields that the schema does not list.
    pub const fn preserves_unknown(&self) -> bool {
        self.has(bits::PRESERVES)
    }

    /// Whether the schema lists all fields that this object can have: others are dropped.
    pub const fn is_closed(&self) -> bool {
        self.has(bits::CLOSED)
    }

    /// Whether any key may stand in this object, all with values of one schema.
    pub const fn is_map(&self) -> bool {
        self.has(bits::HAS_ADDITIONAL)
    }

    /// Whether the place holds `null` as a value of its own.
    pub const fn is_nullable(&self) -> bool {
        self.marked(marks::NULLABLE)
    }

    /// Whether the value cannot change once it is set.
    pub const fn is_immutable(&self) -> bool {
        self.marked(marks::IMMUTABLE)
    }

    /// Whether a zero or empty value here is stored as an absent field.
    pub const fn drops_zero(&self) -> bool {
        self.marked(marks::DROPS_ZERO)
    }

    /// Whether the server, a binder or an admission plugin fills the place when nothing is stated.
    pub const fn is_server_set(&self) -> bool {
        self.marked(marks::SERVER_SETS)
    }

    /// Whether a zero or empty value asks for nothing here, whatever the control plane then puts.
    pub const fn empty_is_unset(&self) -> bool {
        self.marked(marks::EMPTY_UNSET)
    }

    /// Whether a zero or empty value here is replaced by the default.
    pub const fn defaults_zero(&self) -> bool {
        self.marked(marks::ZERO_IS_DEFAULT)
    }

    /// Whether the place is a field of one of Kubernetes' own Go types.
    pub const fn is_go(&self) -> bool {
        self.marked(marks::GO)
    }

    /// The default as JSON text.
    pub fn default_text(&self) -> Option<&'f str> {
        if self.default == 0 { None } else { layout::text(self.bytes, self.default) }
    }

    /// What is known of the member `name`; unknown if the schema does not list it.
    pub fn field(&self, name: &str) -> Node<'f> {
        if self.at == 0 {
            return self.guessed(self.guess.field(name));
        }
        if let Some(slot) = layout::find(self.bytes, self.at, self.bits, name) {
            return Node::read(self.bytes, slot);
        }
        if self.has(bits::HAS_ADDITIONAL) {
            return Node::read(self.bytes, layout::additional(self.bytes, self.at).unwrap_or(0));
        }
        self.guessed(Guess::Free.field(name))
    }

    /// What is known of the list's elements.
    pub fn item(&self) -> Node<'f> {
        if self.at == 0 {
            return self.guessed(self.guess.item());
        }
        match layout::item(self.bytes, self.at, self.bits) {
            Some(slot) => Node::read(self.bytes, slot),
            None => Node::UNKNOWN,
        }
    }

    /// The key fields of a keyed list, in the schema's order.
    pub fn keys(&self) -> Keys<'f> {
        layout::keys(self.bytes, self.at, self.bits)
            .map_or(Keys::NONE, |at| Keys::new(self.bytes, at))
    }

    /// For what is known of a kind without any schema.
    pub(crate) fn of_kind(self, kind: &str) -> Self {
        if self.at == 0 { self.guessed(Guess::of_kind(kind)) } else { self }
    }
}
