//! JSON records to columns. Only what is beyond doubt becomes a row here: the rest is handed back,
//! and the reference alone judges it.

use crate::columns::{Column, Kind, Value};
use crate::text::{Cursor, Quoted};
use arrow_array::ArrayRef;

#[derive(Clone)]
pub struct Field {
    pub name: String,
    pub kind: Kind,
    pub required: bool,
}

pub struct Decoder<'a> {
    fields: &'a [Field],
    columns: Vec<Column>,
    meant: String, // an escaped text, as it is meant
}

impl<'a> Decoder<'a> {
    pub fn new(fields: &'a [Field]) -> Self {
        let columns = fields.iter().map(|field| Column::of(field.kind)).collect();
        Self { fields, columns, meant: String::new() }
    }

    /// Whether the record became a row.
    pub fn add<'v>(&mut self, record: &'v [u8], values: &mut Vec<Option<Value<'v>>>) -> bool {
        values.clear();
        values.resize(self.fields.len(), None);
        let sound = self.read(record, values).is_some() && self.is_valid(values);
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

    fn read<'v>(&self, record: &'v [u8], values: &mut [Option<Value<'v>>]) -> Option<()> {
        let mut cursor = Cursor::new(record);
        let mut likely = 0; // records of a topic name their fields in the same order
        cursor.expect(b'{')?;
        cursor.blanks();
        if cursor.peek()? == b'}' {
            cursor.expect(b'}')?;
            return cursor.end();
        }
        loop {
            cursor.blanks();
            let name = cursor.string()?.plain()?;
            cursor.expect(b':')?;
            match self.place_of(name, likely) {
                None => cursor.skip()?,
                Some(place) if values[place].is_some() => return None, // named twice
                Some(place) => {
                    values[place] = Some(Value::read(self.fields[place].kind, &mut cursor)?);
                    likely = place + 1;
                }
            }
            match cursor.next()? {
                b',' => (),
                b'}' => return cursor.end(),
                _ => return None,
            }
        }
    }

    fn place_of(&self, name: &str, likely: usize) -> Option<usize> {
        match self.fields.get(likely) {
            Some(field) if field.name == name => Some(likely),
            _ => self.fields.iter().position(|field| field.name == name),
        }
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
