//! A configuration, read strictly: keys that nobody knows, and values of another shape, are errors
//! that name the place.

use super::Effect;
use crate::{Object, Path, Step, Value};

/// What is wrong with a configuration, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bad {
    /// Where in the configuration.
    pub path: Path,
    /// What is wrong there and what to write instead.
    pub message: String,
}

impl Bad {
    /// At this place, this.
    pub fn new(path: Path, message: impl Into<String>) -> Self {
        Self { path, message: message.into() }
    }
}

impl core::fmt::Display for Bad {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let at = if self.path.is_root() { "its top" } else { "" };
        write!(f, "the configuration at {at}{}: {}", self.path, self.message)
    }
}

/// One object of a configuration, whose keys are all known. A key with `null` counts as absent.
#[derive(Clone, Debug)]
pub struct Keys<'v, 'a> {
    object: Option<&'v Object<'a>>,
    path: Path,
}

impl<'v, 'a> Keys<'v, 'a> {
    /// The configuration itself; `null` is one that states nothing.
    ///
    /// # Errors
    /// It is no object, or has a key that is none of `known`.
    pub fn of(configuration: &'v Value<'a>, known: &[&str]) -> Result<Self, Bad> {
        Self::at(configuration, Path::root(), known)
    }

    fn at(value: &'v Value<'a>, path: Path, known: &[&str]) -> Result<Self, Bad> {
        let object = match value {
            Value::Null => None,
            Value::Object(object) => Some(object),
            other => return Err(Bad::new(path, shape("an object", other))),
        };
        for (name, _) in object.into_iter().flat_map(Object::iter) {
            if !known.contains(&name) {
                return Err(Bad::new(
                    path,
                    format!("there is no key {name:?}; there are {}", known.join(", ")),
                ));
            }
        }
        Ok(Self { object, path })
    }

    /// The path of one of its keys.
    pub fn path(&self, key: &str) -> Path {
        self.path.join(Step::Field(key.to_owned()))
    }

    fn get(&self, key: &str) -> Option<&'v Value<'a>> {
        self.object?.get(key).filter(|value| !value.is_null())
    }

    /// A key that has to be there.
    ///
    /// # Errors
    /// It is absent.
    pub fn required<T>(&self, key: &str, value: Option<T>) -> Result<T, Bad> {
        value.ok_or_else(|| Bad::new(self.path.clone(), format!("{key} has to be stated")))
    }

    /// A text.
    ///
    /// # Errors
    /// The value is something else.
    pub fn text(&self, key: &str) -> Result<Option<&'v str>, Bad> {
        let text = |value: &'v Value<'a>| {
            value.as_str().ok_or_else(|| Bad::new(self.path(key), shape("a text", value)))
        };
        self.get(key).map(text).transpose()
    }

    /// True or false.
    ///
    /// # Errors
    /// The value is something else.
    pub fn flag(&self, key: &str) -> Result<Option<bool>, Bad> {
        let flag = |value: &'v Value<'a>| {
            value.as_bool().ok_or_else(|| Bad::new(self.path(key), shape("true or false", value)))
        };
        self.get(key).map(flag).transpose()
    }

    /// A whole number that is not negative.
    ///
    /// # Errors
    /// The value is something else.
    pub fn number(&self, key: &str) -> Result<Option<u64>, Bad> {
        let number = |value: &'v Value<'a>| {
            value.as_u64().ok_or_else(|| Bad::new(self.path(key), shape("a whole number", value)))
        };
        self.get(key).map(number).transpose()
    }

    /// One of these words, by its position among them.
    ///
    /// # Errors
    /// The value is none of them.
    pub fn word(&self, key: &str, words: &[&str]) -> Result<Option<usize>, Bad> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        match words.iter().position(|word| *word == text) {
            Some(position) => Ok(Some(position)),
            None => {
                Err(Bad::new(self.path(key), format!("{text:?} is none of {}", words.join(", "))))
            }
        }
    }

    /// What a rule does: `deny`, `warn` or `allow`.
    ///
    /// # Errors
    /// The value is none of them.
    pub fn effect(&self, key: &str) -> Result<Option<Effect>, Bad> {
        let word = self.word(key, &["deny", "warn", "allow"])?;
        Ok(word.map(|word| [Effect::Deny, Effect::Warn, Effect::Allow][word]))
    }

    /// A list of texts.
    ///
    /// # Errors
    /// The value is no list, or has something else in it.
    pub fn texts(&self, key: &str) -> Result<Option<Vec<&'v str>>, Bad> {
        let Some(items) = self.items(key)? else { return Ok(None) };
        let text = |(index, value): (usize, &'v Value<'a>)| {
            let path = self.path(key).join(Step::Index(index));
            value.as_str().ok_or_else(|| Bad::new(path, shape("a text", value)))
        };
        items.iter().enumerate().map(text).collect::<Result<_, _>>().map(Some)
    }

    /// An object within, with these keys.
    ///
    /// # Errors
    /// The value is something else, or has another key.
    pub fn keys(&self, key: &str, known: &[&str]) -> Result<Option<Keys<'v, 'a>>, Bad> {
        self.get(key).map(|value| Keys::at(value, self.path(key), known)).transpose()
    }

    /// A list of objects within, each with these keys.
    ///
    /// # Errors
    /// The value is something else, or an element has another key.
    pub fn list(&self, key: &str, known: &[&str]) -> Result<Option<Vec<Keys<'v, 'a>>>, Bad> {
        let Some(items) = self.items(key)? else { return Ok(None) };
        let keys = |(index, value)| Keys::at(value, self.path(key).join(Step::Index(index)), known);
        items.iter().enumerate().map(keys).collect::<Result<_, _>>().map(Some)
    }

    fn items(&self, key: &str) -> Result<Option<&'v [Value<'a>]>, Bad> {
        let items = |value: &'v Value<'a>| {
            value.as_array().ok_or_else(|| Bad::new(self.path(key), shape("a list", value)))
        };
        self.get(key).map(items).transpose()
    }
}

fn shape(wanted: &str, found: &Value<'_>) -> String {
    format!("{wanted} is wanted, and this is of type {}", found.type_name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let check = |text: &str, told: &str| {
            let value = json::parse(text.as_bytes()).unwrap();
            let read = || -> Result<(), Bad> {
                let keys = Keys::of(&value, &["level", "list", "on"])?;
                keys.word("level", &["low", "high"])?;
                keys.flag("on")?;
                for inner in keys.list("list", &["names"])?.unwrap_or_default() {
                    inner.required("names", inner.texts("names")?)?;
                }
                Ok(())
            };
            assert_eq!(read().map_err(|bad| bad.to_string()).err().unwrap_or_default(), told);
        };
        check("null", "");
        check(r#"{"level":null,"list":[{"names":["a"]}],"on":true}"#, "");
        check("[]", "the configuration at its top: an object is wanted, and this is of type array");
        check(
            r#"{"levle":1}"#,
            "the configuration at its top: there is no key \"levle\"; there are level, list, on",
        );
        check(r#"{"level":"mid"}"#, "the configuration at /level: \"mid\" is none of low, high");
        check(
            r#"{"list":[{"names":["a",1]}]}"#,
            "the configuration at /list/0/names/1: a text is wanted, and this is of type number",
        );
        check(r#"{"list":[{}]}"#, "the configuration at /list/0: names has to be stated");
        check(
            r#"{"on":"yes"}"#,
            "the configuration at /on: true or false is wanted, and this is of type string",
        );
    }
}
