//! The values of a JSON object, each at its column's place. None: not sure.

use crate::columns::Value;
use crate::decoder::Field;
use crate::text::Cursor;

pub fn read<'v>(
    record: &'v [u8],
    fields: &[Field],
    values: &mut [Option<Value<'v>>],
) -> Option<()> {
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
        match place_of(name, fields, likely) {
            None => cursor.skip()?,
            Some(place) if values[place].is_some() => return None, // named twice
            Some(place) => {
                values[place] = Some(Value::read(fields[place].kind, &mut cursor)?);
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

fn place_of(name: &str, fields: &[Field], likely: usize) -> Option<usize> {
    match fields.get(likely) {
        Some(field) if field.name == name => Some(likely),
        _ => fields.iter().position(|field| field.name == name),
    }
}
