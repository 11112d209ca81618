//! Records to columns. Only what is beyond doubt becomes a row here: the rest is handed back, and
//! the reference alone judges it.

use crate::avro::{self, Part};
use crate::columns::{Column, Kind, Value};
use crate::json;
use crate::text::Quoted;
use arrow_array::ArrayRef;
use std::collections::HashMap;

#[derive(Clone)]
pub struct Field {
    pub name: String,
    pub kind: Kind,
    pub required: bool,
}

/// What the bytes of a record are.
pub enum Written {
    Json,
    Avro(HashMap<u32, Vec<Part>>), // by the number of the writer's schema
}

pub struct Decoder<'a> {
    fields: &'a [Field],
    written: &'a Written,
    columns: Vec<Column>,
    meant: String, // an escaped text, as it is meant
}

impl<'a> Decoder<'a> {
    pub fn new(fields: &'a [Field], written: &'a Written) -> Self {
        let columns = fields.iter().map(|field| Column::of(field.kind)).collect();
        Self { fields, written, columns, meant: String::new() }
    }

    /// Whether the record became a row.
    pub fn add<'v>(&mut self, record: &'v [u8], values: &mut Vec<Option<Value<'v>>>) -> bool
    where
        'a: 'v,
    {
        values.clear();
        values.resize(self.fields.len(), None);
        let read = match self.written {
            Written::Json => json::read(record, self.fields, values),
            Written::Avro(plans) => {
                avro::read(record, |id| plans.get(&id).map(Vec::as_slice), values)
            }
        };
        let sound = read.is_some() && self.is_valid(values);
        if sound {
            for (place, value) in values.iter().enumerate() {
                self.put(place, value.unwrap_or(Value::Null));
            }
        }
        sound
    }

    pub fn finish(&mut self) -> Vec<ArrayRef> {
        self.columns.iter_mut().map(Column::finish).collect()
    }

    /// Texts and required fields are judged once the rest is known to be sound.
    fn is_valid(&mut self, values: &[Option<Value>]) -> bool {
        self.fields.iter().zip(values).all(|(field, value)| match value {
            None | Some(Value::Null) => !field.required,
            Some(Value::Text(text)) => meaning(text, &mut self.meant).is_some(),
            Some(_) => true,
        })
    }

    fn put(&mut self, place: usize, value: Value) {
        match value {
            Value::Text(text) => {
                let meant = meaning(&text, &mut self.meant);
                self.columns[place].add(value, meant);
            }
            _ => self.columns[place].add(value, None),
        }
    }
}

fn meaning<'a>(text: &Quoted<'a>, room: &'a mut String) -> Option<&'a str> {
    if !text.escaped {
        return text.plain();
    }
    room.clear();
    text.unescape(room)?;
    Some(room)
}
