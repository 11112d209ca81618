//! Avro's binary form, by the schema that its writer had. Python says what becomes of each field;
//! here its bytes are read, or stepped over. As with JSON: what is not sure is left to the reference.

use crate::columns::Value;
use crate::text::Quoted;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

const MAGIC: u8 = 0; // of the Confluent wire format; a schema's number follows in four bytes
const LONGEST_VARINT: u32 = 63; // bits before the last byte

/// What stands in the bytes.
pub enum Shape {
    Null,
    Bool,
    Int,
    Long,
    Float,
    Double,
    Text,
    Bytes,
    Fixed(usize),
    Enum(Vec<String>),
    Record(Vec<Shape>),
    Array(Box<Shape>),
    Map(Box<Shape>),
    Union(Vec<Shape>),
}

/// A field of the record. `place`: its column; whole numbers are multiplied by `scale`.
pub struct Part {
    shape: Shape,
    place: Option<usize>,
    scale: i64,
    widens: bool, // a float that becomes a double
}

impl Part {
    /// From (shape, place, scale, widens).
    pub fn of(given: (Bound<PyAny>, Option<usize>, i64, bool)) -> PyResult<Self> {
        let (shape, place, scale, widens) = given;
        Ok(Self { shape: Shape::of(&shape)?, place, scale, widens })
    }

    fn read<'v>(&'v self, from: &mut Bytes<'v>) -> Option<Value<'v>> {
        Some(match self.shape.read(from)? {
            Value::Whole(whole) => Value::Whole(whole.checked_mul(self.scale)?),
            Value::Float(float) if self.widens => Value::Double(float.into()),
            other => other,
        })
    }
}

impl Shape {
    /// From ("long",), ("array", items), ("union", branch, branch, ...), ("enum", symbol, ...).
    fn of(given: &Bound<PyAny>) -> PyResult<Self> {
        let given = given.cast::<PyTuple>()?;
        let name: String = given.get_item(0)?.extract()?;
        let inner = || given.iter().skip(1).map(|one| Self::of(&one)).collect::<PyResult<Vec<_>>>();
        let one = || Ok::<_, PyErr>(Box::new(Self::of(&given.get_item(1)?)?));
        Ok(match name.as_str() {
            "null" => Self::Null,
            "boolean" => Self::Bool,
            "int" => Self::Int,
            "long" => Self::Long,
            "float" => Self::Float,
            "double" => Self::Double,
            "string" => Self::Text,
            "bytes" => Self::Bytes,
            "fixed" => Self::Fixed(given.get_item(1)?.extract()?),
            "enum" => Self::Enum(
                given.iter().skip(1).map(|symbol| symbol.extract()).collect::<PyResult<_>>()?,
            ),
            "record" => Self::Record(inner()?),
            "array" => Self::Array(one()?),
            "map" => Self::Map(one()?),
            "union" => Self::Union(inner()?),
            _ => return Err(PyValueError::new_err(format!("{name} is no type of Avro"))),
        })
    }

    fn read<'v>(&'v self, from: &mut Bytes<'v>) -> Option<Value<'v>> {
        Some(match self {
            Self::Null => Value::Null,
            Self::Bool => match from.take(1)? {
                [0] => Value::Bool(false),
                [1] => Value::Bool(true),
                _ => return None,
            },
            Self::Int => Value::Whole(i32::try_from(from.long()?).ok()?.into()),
            Self::Long => Value::Whole(from.long()?),
            Self::Float => Value::Float(f32::from_le_bytes(from.take(4)?.try_into().ok()?)),
            Self::Double => Value::Double(f64::from_le_bytes(from.take(8)?.try_into().ok()?)),
            Self::Text => text(from.counted()?)?,
            Self::Enum(symbols) => text(from.one_of(symbols)?.as_bytes())?,
            Self::Union(branches) => from.one_of(branches)?.read(from)?,
            _ => {
                self.skip(from)?;
                Value::Null
            }
        })
    }

    fn skip<'v>(&'v self, from: &mut Bytes<'v>) -> Option<()> {
        match self {
            Self::Bytes => drop(from.counted()?),
            Self::Fixed(length) => drop(from.take(*length)?),
            Self::Record(fields) => {
                for field in fields {
                    field.skip(from)?;
                }
            }
            Self::Union(branches) => from.one_of(branches)?.skip(from)?,
            Self::Array(items) => from.blocks(|from| items.skip(from))?,
            Self::Map(values) => from.blocks(|from| {
                text(from.counted()?)?;
                values.skip(from)
            })?,
            _ => drop(self.read(from)?),
        }
        Some(())
    }
}

/// The values of a record, each at its column's place. None: not sure.
pub fn read<'v>(
    record: &'v [u8],
    plan_of: impl Fn(u32) -> Option<&'v [Part]>,
    values: &mut [Option<Value<'v>>],
) -> Option<()> {
    let mut from = Bytes { rest: record };
    let [MAGIC, number @ ..] = from.take(5)? else { return None };
    for part in plan_of(u32::from_be_bytes(number.try_into().ok()?))? {
        match part.place {
            Some(place) => values[place] = Some(part.read(&mut from)?),
            None => part.shape.skip(&mut from)?,
        }
    }
    from.rest.is_empty().then_some(())
}

struct Bytes<'v> {
    rest: &'v [u8],
}

impl<'v> Bytes<'v> {
    fn take(&mut self, length: usize) -> Option<&'v [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    fn long(&mut self) -> Option<i64> {
        let (mut found, mut shift) = (0_u64, 0);
        loop {
            let (&byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            if shift == LONGEST_VARINT && byte > 1 {
                return None;
            }
            found |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some((found >> 1) as i64 ^ -((found & 1) as i64));
            }
            shift += 7;
        }
    }

    fn counted(&mut self) -> Option<&'v [u8]> {
        let length = self.long()?.try_into().ok()?;
        self.take(length)
    }

    fn one_of<'s, T>(&mut self, known: &'s [T]) -> Option<&'s T> {
        known.get(usize::try_from(self.long()?).ok()?)
    }

    /// Items of an array or a map. Those of a block that says its size are left to the reference.
    fn blocks(&mut self, mut item: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        loop {
            match self.long()? {
                0 => return Some(()),
                count @ 1.. => {
                    for _ in 0..count {
                        item(self)?;
                    }
                }
                _ => return None,
            }
        }
    }
}

fn text(inside: &[u8]) -> Option<Value<'_>> {
    str::from_utf8(inside).ok()?;
    Some(Value::Text(Quoted { inside, escaped: false }))
}
