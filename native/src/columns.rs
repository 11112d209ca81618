//! Arrow columns that grow value by value.

use crate::text::{Cursor, Quoted};
use arrow_array::ArrayRef;
use arrow_array::builder::{
    ArrayBuilder, BooleanBuilder, Float32Builder, Float64Builder, Int8Builder, Int16Builder,
    Int32Builder, Int64Builder, StringBuilder,
};

/// What the reference makes of a field; times and dates are whole numbers here, typed in Python.
#[derive(Clone, Copy)]
pub enum Kind {
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    Float,
    Double,
    Text,
    Date,
    Instant,   // UTC where no zone is named
    WallClock, // no zone
}

impl Kind {
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "bool" => Self::Bool,
            "int8" => Self::Int8,
            "int16" => Self::Int16,
            "int32" => Self::Int32,
            "int64" => Self::Int64,
            "float" => Self::Float,
            "double" => Self::Double,
            "string" => Self::Text,
            "date32[day]" => Self::Date,
            "timestamp[us, tz=UTC]" => Self::Instant,
            "timestamp[us]" => Self::WallClock,
            _ => return None,
        })
    }
}

/// One value of a record, until the record has turned out to be sound.
#[derive(Clone, Copy)]
pub enum Value<'a> {
    Null,
    Bool(bool),
    Whole(i64),
    Float(f32),
    Double(f64),
    Text(Quoted<'a>),
}

impl<'a> Value<'a> {
    /// None: not sure.
    pub fn read(kind: Kind, from: &mut Cursor<'a>) -> Option<Self> {
        from.blanks();
        if from.peek()? == b'n' {
            return from.word(b"null").map(|()| Self::Null);
        }
        Some(match kind {
            Kind::Bool if from.peek()? == b't' => from.word(b"true").map(|()| Self::Bool(true))?,
            Kind::Bool => from.word(b"false").map(|()| Self::Bool(false))?,
            Kind::Int8 => Self::Whole(whole(from)?.try_into().map(|n: i8| n.into()).ok()?),
            Kind::Int16 => Self::Whole(whole(from)?.try_into().map(|n: i16| n.into()).ok()?),
            Kind::Int32 => Self::Whole(whole(from)?.try_into().map(|n: i32| n.into()).ok()?),
            Kind::Int64 => Self::Whole(whole(from)?),
            Kind::Float => {
                Self::Float(from.number()?.0.parse().ok().filter(|x: &f32| x.is_finite())?)
            }
            Kind::Double => {
                Self::Double(from.number()?.0.parse().ok().filter(|x: &f64| x.is_finite())?)
            }
            Kind::Text => Self::Text(from.string()?),
            Kind::Date => Self::Whole(day(from.string()?.plain()?.as_bytes())?),
            Kind::Instant => Self::Whole(instant(from.string()?.plain()?.as_bytes(), true)?),
            Kind::WallClock => Self::Whole(instant(from.string()?.plain()?.as_bytes(), false)?),
        })
    }
}

pub enum Column {
    Bool(BooleanBuilder),
    Int8(Int8Builder),
    Int16(Int16Builder),
    Int32(Int32Builder),
    Int64(Int64Builder),
    Float(Float32Builder),
    Double(Float64Builder),
    Text(StringBuilder),
}

impl Column {
    pub fn of(kind: Kind) -> Self {
        match kind {
            Kind::Bool => Self::Bool(BooleanBuilder::new()),
            Kind::Int8 => Self::Int8(Int8Builder::new()),
            Kind::Int16 => Self::Int16(Int16Builder::new()),
            Kind::Int32 | Kind::Date => Self::Int32(Int32Builder::new()),
            Kind::Int64 | Kind::Instant | Kind::WallClock => Self::Int64(Int64Builder::new()),
            Kind::Float => Self::Float(Float32Builder::new()),
            Kind::Double => Self::Double(Float64Builder::new()),
            Kind::Text => Self::Text(StringBuilder::new()),
        }
    }

    /// `text` is what a text value means, where it is not simply what stands there.
    pub fn add(&mut self, value: Value, text: Option<&str>) {
        match (self, value) {
            (Self::Bool(column), Value::Bool(given)) => column.append_value(given),
            (Self::Int8(column), Value::Whole(given)) => column.append_value(given as i8),
            (Self::Int16(column), Value::Whole(given)) => column.append_value(given as i16),
            (Self::Int32(column), Value::Whole(given)) => column.append_value(given as i32),
            (Self::Int64(column), Value::Whole(given)) => column.append_value(given),
            (Self::Float(column), Value::Float(given)) => column.append_value(given),
            (Self::Double(column), Value::Double(given)) => column.append_value(given),
            (Self::Text(column), Value::Text(_)) => column.append_option(text),
            (Self::Bool(column), _) => column.append_null(),
            (Self::Int8(column), _) => column.append_null(),
            (Self::Int16(column), _) => column.append_null(),
            (Self::Int32(column), _) => column.append_null(),
            (Self::Int64(column), _) => column.append_null(),
            (Self::Float(column), _) => column.append_null(),
            (Self::Double(column), _) => column.append_null(),
            (Self::Text(column), _) => column.append_null(),
        }
    }

    pub fn finish(&mut self) -> ArrayRef {
        let built: &mut dyn ArrayBuilder = match self {
            Self::Bool(column) => column,
            Self::Int8(column) => column,
            Self::Int16(column) => column,
            Self::Int32(column) => column,
            Self::Int64(column) => column,
            Self::Float(column) => column,
            Self::Double(column) => column,
            Self::Text(column) => column,
        };
        built.finish()
    }
}

fn whole(from: &mut Cursor) -> Option<i64> {
    match from.number()? {
        ("-0", _) | (_, false) => None,
        (text, true) => text.parse().ok(),
    }
}

/// Days since 1970 of YYYY-MM-DD.
fn day(text: &[u8]) -> Option<i64> {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = *text else { return None };
    let (year, month) = (digits(&[y1, y2, y3, y4])?, digits(&[m1, m2])?);
    let date = digits(&[d1, d2])?;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 => 28 + i64::from(leap),
        _ => return None,
    };
    if !(1900..2200).contains(&year) || !(1..=length).contains(&date) {
        return None;
    }
    // Years begin in March: the day that may be missing is then the last one.
    let (years, months) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let before = years * 365 + years / 4 - years / 100 + years / 400;
    Some(before + (153 * months + 2) / 5 + date - 1 - 719_468)
}

/// Microseconds since 1970 of YYYY-MM-DD, a T or a blank, HH:MM:SS, up to six decimals, and where
/// `zoned` Z, +HH:MM, -HH:MM or nothing.
fn instant(text: &[u8], zoned: bool) -> Option<i64> {
    let days = day(text.get(..10)?)?;
    let [b'T' | b' ', h1, h2, b':', m1, m2, b':', s1, s2, ref rest @ ..] = text[10..] else {
        return None;
    };
    let (hours, minutes) = (digits(&[h1, h2])?, digits(&[m1, m2])?);
    let seconds = digits(&[s1, s2])?;
    if hours > 23 || minutes > 59 || seconds > 59 {
        return None;
    }
    let (fraction_us, rest) = match rest {
        [b'.', rest @ ..] => fraction(rest)?,
        _ => (0, rest),
    };
    let ahead_minutes = match *rest {
        [] => 0,
        [b'Z'] if zoned => 0,
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] if zoned => {
            let (hours, minutes) = (digits(&[h1, h2])?, digits(&[m1, m2])?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            let ahead = hours * 60 + minutes;
            if sign == b'+' { ahead } else { -ahead }
        }
        _ => return None,
    };
    let all_seconds = days * 86_400 + hours * 3600 + (minutes - ahead_minutes) * 60 + seconds;
    Some(all_seconds * 1_000_000 + fraction_us)
}

/// Microseconds of one to six decimals, and what comes behind them.
fn fraction(text: &[u8]) -> Option<(i64, &[u8])> {
    let length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !(1..=6).contains(&length) {
        return None;
    }
    let scale = 10_i64.pow(6 - length as u32);
    Some((digits(&text[..length])? * scale, &text[length..]))
}

fn digits(text: &[u8]) -> Option<i64> {
    text.iter()
        .try_fold(0, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0')))
}
