//! Reading JSON into our own types, by small functions that all of them share.
//!
//! A text is read once into [`Node`]s, and these are taken apart by hand. Serde's derives would compile every type once
//! for each of its own intermediate forms (flattened, tagged, untagged), which is more code than all the rest of the
//! vocabulary; the browser loads that code.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// A type that reads itself from JSON.
pub(crate) trait Json: Sized {
    /// # Errors
    /// The field that does not fit, and why.
    fn read(node: Node) -> Result<Self, Fault>;

    /// What a needed field is when it is not there; none if that is a fault.
    fn absent() -> Option<Self> {
        None
    }

    /// True when `read` would succeed.
    fn fits(node: &Node) -> bool {
        Self::read(node.clone()).is_ok()
    }
}

/// Why a value could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Where, from the outside in, with dots; empty for the whole value.
    path: String,
    reason: Reason,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Reason {
    Missing,
    Twice,
    Misfit(String),
}

impl Fault {
    pub(super) fn missing(key: &str) -> Self {
        Self { path: key.to_owned(), reason: Reason::Missing }
    }

    pub(super) fn twice(key: &str) -> Self {
        Self { path: key.to_owned(), reason: Reason::Twice }
    }

    fn misfit(words: String) -> Self {
        Self { path: String::new(), reason: Reason::Misfit(words) }
    }

    pub(super) fn expected(what: &str, got: &Node) -> Self {
        let got = match got {
            Node::Null => "null",
            Node::Bool(_) => "a boolean",
            Node::Number(number) => return Self::misfit(format!("expected {what}, got the number {number}")),
            Node::Text(_) => "a string",
            Node::List(_) => "a list",
            Node::Object(_) => "an object",
        };
        Self::misfit(format!("expected {what}, got {got}"))
    }

    pub(crate) fn unknown(word: &str, known: &[&str]) -> Self {
        Self::misfit(format!("`{word}` is none of `{}`", known.join("`, `")))
    }

    pub(super) fn within(mut self, outer: &str) -> Self {
        self.path = if self.path.is_empty() { outer.to_owned() } else { format!("{outer}.{}", self.path) };
        self
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.reason {
            Reason::Missing => write!(f, "missing field `{}`", self.path),
            Reason::Twice => write!(f, "duplicate field `{}`", self.path),
            Reason::Misfit(words) if self.path.is_empty() => f.write_str(words),
            Reason::Misfit(words) => write!(f, "field `{}`: {words}", self.path),
        }
    }
}

/// A JSON value as it was read: objects are lists of entries, which cost no hashing and keep a key that stands twice.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Object(Vec<(String, Option<Node>)>),
}

impl From<Node> for Value {
    fn from(node: Node) -> Self {
        match node {
            Node::Null => Self::Null,
            Node::Bool(flag) => Self::Bool(flag),
            Node::Number(number) => Self::Number(number),
            Node::Text(text) => Self::String(text),
            Node::List(items) => Self::Array(items.into_iter().map(Self::from).collect()),
            Node::Object(entries) => Self::Object(object(entries)),
        }
    }
}

impl From<Value> for Node {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(flag) => Self::Bool(flag),
            Value::Number(number) => Self::Number(number),
            Value::String(text) => Self::Text(text),
            Value::Array(items) => Self::List(items.into_iter().map(Self::from).collect()),
            Value::Object(map) => Self::Object(map.into_iter().map(|(key, value)| (key, Some(value.into()))).collect()),
        }
    }
}

/// The entries that nobody has taken.
pub(super) fn object(entries: Vec<(String, Option<Node>)>) -> Map<String, Value> {
    entries.into_iter().filter_map(|(key, node)| node.map(|node| (key, node.into()))).collect()
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Node, E> {
        Ok(Node::Bool(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Node, E> {
        Ok(Node::Number(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Node, E> {
        Ok(Node::Number(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Node, E> {
        Ok(Number::from_f64(number).map_or(Node::Null, Node::Number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Node, E> {
        Ok(Node::Text(text))
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mut object = Vec::with_capacity(12);
        while let Some(key) = entries.next_key()? {
            object.push((key, Some(entries.next_value()?)));
        }
        Ok(Node::Object(object))
    }
}

/// Reads a type of ours from any of serde's formats.
pub(crate) fn from_serde<'de, T: Json, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    T::read(Node::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}

impl Json for Value {
    fn read(node: Node) -> Result<Self, Fault> {
        Ok(node.into())
    }

    fn fits(_: &Node) -> bool {
        true
    }
}

impl Json for String {
    fn read(node: Node) -> Result<Self, Fault> {
        match node {
            Node::Text(text) => Ok(text),
            other => Err(Fault::expected("a string", &other)),
        }
    }

    fn fits(node: &Node) -> bool {
        matches!(node, Node::Text(_))
    }
}

impl Json for bool {
    fn read(node: Node) -> Result<Self, Fault> {
        match node {
            Node::Bool(flag) => Ok(flag),
            other => Err(Fault::expected("a boolean", &other)),
        }
    }
}

impl Json for i64 {
    fn read(node: Node) -> Result<Self, Fault> {
        number(&node, Number::as_i64, "a whole number")
    }
}

impl Json for u64 {
    fn read(node: Node) -> Result<Self, Fault> {
        number(&node, Number::as_u64, "a whole number that is not negative")
    }
}

impl Json for u32 {
    fn read(node: Node) -> Result<Self, Fault> {
        number(&node, |number| number.as_u64()?.try_into().ok(), "a whole number of 32 bits")
    }
}

impl Json for usize {
    fn read(node: Node) -> Result<Self, Fault> {
        number(&node, |number| number.as_u64()?.try_into().ok(), "a whole number that is not negative")
    }
}

impl Json for f64 {
    fn read(node: Node) -> Result<Self, Fault> {
        number(&node, Number::as_f64, "a number")
    }
}

impl<T: Json> Json for Option<T> {
    fn read(node: Node) -> Result<Self, Fault> {
        if node == Node::Null { Ok(None) } else { T::read(node).map(Some) }
    }

    fn absent() -> Option<Self> {
        Some(None)
    }

    fn fits(node: &Node) -> bool {
        *node == Node::Null || T::fits(node)
    }
}

impl<T: Json> Json for Vec<T> {
    fn read(node: Node) -> Result<Self, Fault> {
        let Node::List(items) = node else { return Err(Fault::expected("a list", &node)) };
        let read = |(index, item): (usize, Node)| T::read(item).map_err(|fault| fault.within(&index.to_string()));
        items.into_iter().enumerate().map(read).collect()
    }
}

fn number<T>(node: &Node, take: impl Fn(&Number) -> Option<T>, what: &str) -> Result<T, Fault> {
    match node {
        Node::Number(number) => take(number).ok_or_else(|| Fault::expected(what, node)),
        other => Err(Fault::expected(what, other)),
    }
}
