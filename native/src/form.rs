//! What is to become of records, said once for a read.

use crate::avro::Part;
use crate::columns::Kind;
use crate::decoder::{Decoder, Field, Written};
use crate::reader::Piece;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::collections::HashMap;

#[pyclass(frozen)]
pub struct Form {
    pub made: Made,
}

pub enum Made {
    Columns { fields: Vec<Field>, written: Written },
    Raw { key: bool, value: bool },
}

type GivenField = (String, String, bool);
type GivenPart<'py> = (Bound<'py, PyAny>, Option<usize>, i64, bool);

#[pymethods]
impl Form {
    /// Fields are (name, Arrow's name of the type, whether it may not be missing).
    #[staticmethod]
    fn json(fields: Vec<GivenField>) -> PyResult<Self> {
        Ok(Self { made: Made::Columns { fields: known(fields)?, written: Written::Json } })
    }

    /// For each writer's schema, by its number, what becomes of the fields, one after the other.
    #[staticmethod]
    fn avro(fields: Vec<GivenField>, plans: HashMap<u32, Vec<GivenPart>>) -> PyResult<Self> {
        let fields = known(fields)?;
        let mut made = HashMap::new();
        for (number, parts) in plans {
            if parts.iter().any(|part| part.1.is_some_and(|place| place >= fields.len())) {
                return Err(PyValueError::new_err("a part is of no field"));
            }
            made.insert(number, parts.into_iter().map(Part::of).collect::<PyResult<_>>()?);
        }
        Ok(Self { made: Made::Columns { fields, written: Written::Avro(made) } })
    }

    #[staticmethod]
    fn raw(key: bool, value: bool) -> Self {
        Self { made: Made::Raw { key, value } }
    }

    /// The decoder alone: values as if they stood at offsets 0, 1, ...
    fn decoded(&self, values: Vec<Option<Vec<u8>>>) -> PyResult<Piece> {
        let Made::Columns { fields, written } = &self.made else {
            return Err(PyValueError::new_err("raw records are not decoded"));
        };
        let mut decoder = Decoder::new(fields, written);
        let mut piece = Piece::default();
        let mut room = Vec::new();
        for (offset, value) in values.iter().enumerate() {
            match value {
                Some(record) if decoder.add(record, &mut room) => piece.row(offset as i64, (0, 0)),
                _ => piece.doubt(offset as i64, 0, value.as_deref()),
            }
        }
        piece.close(decoder.finish());
        Ok(piece)
    }
}

fn known(fields: Vec<GivenField>) -> PyResult<Vec<Field>> {
    let known = fields.into_iter().map(|(name, kind, required)| {
        let kind =
            Kind::named(&kind).ok_or_else(|| PyValueError::new_err(format!("{name} is {kind}")))?;
        Ok(Field { name, kind, required })
    });
    known.collect()
}
