//! What is to become of records, said once for a read.

use crate::columns::Kind;
use crate::json::{Decoder, Field};
use crate::reader::Piece;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

#[pyclass(frozen)]
pub struct Form {
    pub made: Made,
}

pub enum Made {
    Columns(Vec<Field>),
    Raw { key: bool, value: bool },
}

#[pymethods]
impl Form {
    /// Fields are (name, Arrow's name of the type, whether it may not be missing).
    #[staticmethod]
    fn json(fields: Vec<(String, String, bool)>) -> PyResult<Self> {
        let fields = fields.into_iter().map(|(name, kind, required)| {
            let kind = Kind::named(&kind)
                .ok_or_else(|| PyValueError::new_err(format!("{name} is {kind}")))?;
            Ok(Field { name, kind, required })
        });
        Ok(Self { made: Made::Columns(fields.collect::<PyResult<_>>()?) })
    }

    #[staticmethod]
    fn raw(key: bool, value: bool) -> Self {
        Self { made: Made::Raw { key, value } }
    }

    /// The JSON decoder alone: values as if they stood at offsets 0, 1, ...
    fn decoded(&self, values: Vec<Option<Vec<u8>>>) -> PyResult<Piece> {
        let Made::Columns(fields) = &self.made else {
            return Err(PyValueError::new_err("raw records are not decoded"));
        };
        let mut decoder = Decoder::new(fields);
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
