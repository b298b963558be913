//! Wire types as tables: a type, and beside every field the key that it has in JSON.
//!
//! [`record!`] makes a struct, [`tagged!`] an enum told apart by a key, [`words!`] an enum of plain words. A field is
//! - `needed`: its absence is a fault (an `Option` is then none);
//! - `default`: its absence is the type's default;
//! - `optional`: as `default`, and left out of the JSON when it is none, empty or false;
//! - `text`, `texts`, `some_texts`, `yes`: arguments of a tool as models write them (see [`Fields`]).
//!
//! Keys that a struct does not know are ignored, or kept in their order if its table ends with `..extra`.

use serde::ser::SerializeMap;
use serde_json::{Map, Value};

use super::json::{Fault, Json, Node, object};

/// A type whose JSON is an object.
pub(crate) trait Record: Sized {
    /// Takes the fields that it knows.
    fn read_fields(fields: &mut Fields) -> Result<Self, Fault>;

    /// True when `read_fields` would succeed.
    fn fit(fields: &Fields) -> bool;

    fn write_fields<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error>;
}

/// An enum whose variants are told apart by a key, wherever that key stands.
pub(crate) trait Tagged: Sized {
    const TAGS: &'static [&'static str];

    fn tag(&self) -> &'static str;

    /// Takes the fields of the variant that `tag` names.
    fn read_as(tag: &str, fields: &mut Fields) -> Result<Self, Fault>;

    /// True when `read_as` would succeed.
    fn fit_as(tag: &str, fields: &Fields) -> bool;

    /// The variant's fields, without the tag.
    fn write_variant<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error>;
}

/// The fields of an object, to be taken one by one.
pub(crate) struct Fields(Vec<(String, Option<Node>)>);

impl Fields {
    pub(crate) fn none() -> Self {
        Self(Vec::new())
    }

    /// # Errors
    /// When `node` is no object.
    pub(crate) fn of(node: Node) -> Result<Self, Fault> {
        match node {
            Node::Object(entries) => Ok(Self(entries)),
            other => Err(Fault::expected("an object", &other)),
        }
    }

    pub(crate) fn needed<T: Json>(&mut self, key: &str) -> Result<T, Fault> {
        match self.take(key)? {
            Some(node) => T::read(node).map_err(|fault| fault.within(key)),
            None => T::absent().ok_or_else(|| Fault::missing(key)),
        }
    }

    pub(crate) fn default<T: Json + Default>(&mut self, key: &str) -> Result<T, Fault> {
        match self.take(key)? {
            Some(node) => T::read(node).map_err(|fault| fault.within(key)),
            None => Ok(T::default()),
        }
    }

    pub(crate) fn optional<T: Json + Default>(&mut self, key: &str) -> Result<T, Fault> {
        self.default(key)
    }

    /// A needed text, or a scalar as JavaScript would print it. Models write `"options": [3, 4]`; a tool's coercion makes
    /// texts of them, and whoever reads the raw arguments has to see the same texts. `null` is the empty text.
    pub(crate) fn text(&mut self, key: &str) -> Result<String, Fault> {
        match self.take(key)? {
            Some(node) => coerced(node).map_err(|fault| fault.within(key)),
            None => Err(Fault::missing(key)),
        }
    }

    /// A needed list of such texts.
    pub(crate) fn texts(&mut self, key: &str) -> Result<Vec<String>, Fault> {
        let texts = match self.take(key)? {
            Some(Node::List(items)) => items.into_iter().map(coerced).collect(),
            Some(other) => Err(Fault::expected("a list", &other)),
            None => return Err(Fault::missing(key)),
        };
        texts.map_err(|fault| fault.within(key))
    }

    /// A list of such texts, empty when it is not there.
    pub(crate) fn some_texts(&mut self, key: &str) -> Result<Vec<String>, Fault> {
        if self.get(key).is_some() { self.texts(key) } else { Ok(Vec::new()) }
    }

    /// A flag that is true when it is not there.
    pub(crate) fn yes(&mut self, key: &str) -> Result<bool, Fault> {
        if self.get(key).is_some() { self.needed(key) } else { Ok(true) }
    }

    /// What nobody has taken, in its order.
    pub(crate) fn rest(&mut self) -> Map<String, Value> {
        object(std::mem::take(&mut self.0))
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.0.iter().find(|(known, _)| known == key).and_then(|(_, node)| node.as_ref())
    }

    /// True when the field under `key` can be read, or may be absent and is.
    pub(crate) fn fits<T: Json>(&self, key: &str, presence: Presence) -> bool {
        match self.get(key) {
            Some(node) => T::fits(node),
            None => presence == Presence::Free || T::absent().is_some(),
        }
    }

    fn take(&mut self, key: &str) -> Result<Option<Node>, Fault> {
        let mut found = self.0.iter_mut().filter(|(known, _)| known == key);
        let node = found.next().and_then(|(_, node)| node.take());
        if found.next().is_some() { Err(Fault::twice(key)) } else { Ok(node) }
    }
}

/// Whether a field has to be there.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Presence {
    Needed,
    Free,
}

/// What an optional field is when it says nothing.
pub(crate) trait Empty {
    fn is_empty(&self) -> bool;
}

impl<T> Empty for Option<T> {
    fn is_empty(&self) -> bool {
        self.is_none()
    }
}

impl<T> Empty for Vec<T> {
    fn is_empty(&self) -> bool {
        self.is_empty()
    }
}

impl Empty for bool {
    fn is_empty(&self) -> bool {
        !self
    }
}

/// A struct; see the module's words.
macro_rules! record {
    ($(#[$meta:meta])* pub struct $name:ident {
        $($(#[$field_meta:meta])* pub $field:ident: $type:ty = $kind:ident $key:literal,)*
        $(..$rest:ident)?
    }) => {
        $(#[$meta])*
        pub struct $name {
            $($(#[$field_meta])* pub $field: $type,)*
            $(
                /// Fields that this version does not know, in their order.
                pub $rest: ::serde_json::Map<String, ::serde_json::Value>,
            )?
        }

        impl $crate::app::native::record::Record for $name {
            fn read_fields(
                fields: &mut $crate::app::native::record::Fields,
            ) -> Result<Self, $crate::app::native::json::Fault> {
                Ok(Self { $($field: fields.$kind($key)?,)* $($rest: fields.rest())? })
            }

            fn fit(fields: &$crate::app::native::record::Fields) -> bool {
                $(fields.fits::<$type>($key, $crate::app::native::record::presence!($kind)))&&*
            }

            fn write_fields<M: ::serde::ser::SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
                $($crate::app::native::record::put!(map, $kind, $key, &self.$field);)*
                $($crate::app::native::record::put_all(map, &self.$rest)?;)?
                Ok(())
            }
        }

        $crate::app::native::record::on_the_wire!($name);
    };
}

/// An enum whose variants are told apart by a key. With `by KEY` that key stands among the variant's own fields.
macro_rules! tagged {
    ($(#[$meta:meta])* pub enum $name:ident $(by $by:literal)? {
        $($(#[$variant_meta:meta])* $tag:literal => $variant:ident
            $({ $($(#[$field_meta:meta])* $field:ident: $type:ty = $kind:ident $key:literal,)* })?
            $(($inner:ident: $inner_type:ty))?,)*
    }) => {
        $(#[$meta])*
        pub enum $name {
            $($(#[$variant_meta])* $variant
                $({ $($(#[$field_meta])* $field: $type,)* })?
                $(($inner_type))?,)*
        }

        impl $crate::app::native::record::Tagged for $name {
            const TAGS: &'static [&'static str] = &[$($tag),*];

            fn tag(&self) -> &'static str {
                match self { $(Self::$variant { .. } => $tag,)* }
            }

            #[allow(unused_variables)]
            fn read_as(
                tag: &str,
                fields: &mut $crate::app::native::record::Fields,
            ) -> Result<Self, $crate::app::native::json::Fault> {
                match tag {
                    $($tag => Ok(Self::$variant
                        $({ $($field: fields.$kind($key)?,)* })?
                        $((<$inner_type as $crate::app::native::record::Record>::read_fields(fields)?))?),)*
                    other => Err($crate::app::native::json::Fault::unknown(other, Self::TAGS)),
                }
            }

            #[allow(unused_variables)]
            fn fit_as(tag: &str, fields: &$crate::app::native::record::Fields) -> bool {
                match tag {
                    $($tag => true
                        $($(&& fields.fits::<$type>($key, $crate::app::native::record::presence!($kind)))*)?
                        $(&& <$inner_type as $crate::app::native::record::Record>::fit(fields))?,)*
                    _ => false,
                }
            }

            #[allow(unused_variables)]
            fn write_variant<M: ::serde::ser::SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
                match self {
                    $(Self::$variant $({ $($field),* })? $(($inner))? => {
                        $($($crate::app::native::record::put!(map, $kind, $key, $field);)*)?
                        $(<$inner_type as $crate::app::native::record::Record>::write_fields($inner, map)?;)?
                        Ok(())
                    })*
                }
            }
        }

        $(
            impl $crate::app::native::record::Record for $name {
                fn read_fields(
                    fields: &mut $crate::app::native::record::Fields,
                ) -> Result<Self, $crate::app::native::json::Fault> {
                    let tag: String = fields.needed($by)?;
                    <Self as $crate::app::native::record::Tagged>::read_as(&tag, fields)
                }

                fn fit(fields: &$crate::app::native::record::Fields) -> bool {
                    match fields.get($by) {
                        Some($crate::app::native::json::Node::Text(tag)) => {
                            <Self as $crate::app::native::record::Tagged>::fit_as(tag, fields)
                        }
                        _ => false,
                    }
                }

                fn write_fields<M: ::serde::ser::SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
                    map.serialize_entry($by, $crate::app::native::record::Tagged::tag(self))?;
                    $crate::app::native::record::Tagged::write_variant(self, map)
                }
            }

            $crate::app::native::record::on_the_wire!($name);
        )?
    };
}

/// An enum of plain words.
macro_rules! words {
    ($(#[$meta:meta])* pub enum $name:ident {
        $($(#[$variant_meta:meta])* $variant:ident = $word:literal,)*
    }) => {
        $(#[$meta])*
        pub enum $name {
            $($(#[$variant_meta])* $variant,)*
        }

        impl $name {
            /// The word that stands for it in JSON.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }

        impl $crate::app::native::json::Json for $name {
            fn read(node: $crate::app::native::json::Node) -> Result<Self, $crate::app::native::json::Fault> {
                let word = <String as $crate::app::native::json::Json>::read(node)?;
                match word.as_str() {
                    $($word => Ok(Self::$variant),)*
                    other => Err($crate::app::native::json::Fault::unknown(other, &[$($word),*])),
                }
            }
        }

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.word())
            }
        }

        $crate::app::native::record::from_the_wire!($name);
    };
}

/// Serde's two traits for a [`Record`].
macro_rules! on_the_wire {
    ($name:ty) => {
        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $crate::app::native::record::write(self, serializer)
            }
        }

        $crate::app::native::record::from_the_wire!($name);
    };
}

/// Serde's reading trait for a [`Json`] type.
macro_rules! from_the_wire {
    ($name:ty) => {
        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::app::native::json::from_serde(deserializer)
            }
        }
    };
}

macro_rules! presence {
    (needed) => {
        $crate::app::native::record::Presence::Needed
    };
    ($other:ident) => {
        $crate::app::native::record::Presence::Free
    };
}

macro_rules! put {
    ($map:ident, optional, $key:literal, $value:expr) => {
        if !$crate::app::native::record::Empty::is_empty($value) {
            ::serde::ser::SerializeMap::serialize_entry($map, $key, $value)?;
        }
    };
    ($map:ident, $other:ident, $key:literal, $value:expr) => {
        ::serde::ser::SerializeMap::serialize_entry($map, $key, $value)?
    };
}

pub(crate) use {from_the_wire, on_the_wire, presence, put, record, tagged, words};

/// Writes a record as one object.
pub(crate) fn write<T: Record, S: serde::Serializer>(record: &T, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    record.write_fields(&mut map)?;
    map.end()
}

pub(crate) fn put_all<M: SerializeMap>(map: &mut M, fields: &Map<String, Value>) -> Result<(), M::Error> {
    fields.iter().try_for_each(|(key, value)| map.serialize_entry(key, value))
}

impl<T: Record> Json for T {
    fn read(node: Node) -> Result<Self, Fault> {
        T::read_fields(&mut Fields::of(node)?)
    }
}

impl<T: Record> Record for Box<T> {
    fn read_fields(fields: &mut Fields) -> Result<Self, Fault> {
        T::read_fields(fields).map(Self::new)
    }

    fn fit(fields: &Fields) -> bool {
        T::fit(fields)
    }

    fn write_fields<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        T::write_fields(self, map)
    }
}

fn coerced(node: Node) -> Result<String, Fault> {
    match node {
        Node::Text(text) => Ok(text),
        Node::Null => Ok(String::new()),
        Node::Bool(flag) => Ok(flag.to_string()),
        Node::Number(number) => Ok(match number.as_f64() {
            Some(float) if !number.is_i64() && !number.is_u64() => float.to_string(),
            _ => number.to_string(),
        }),
        Node::List(_) | Node::Object(_) => Err(Fault::expected("a text", &node)),
    }
}
