//! Pieces of a partition, each as Arrow columns.

use crate::client::{Client, Message};
use crate::decoder::Decoder;
use crate::form::{Form, Made};

use arrow_array::builder::BinaryBuilder;
use arrow_array::ffi::to_ffi;
use arrow_array::{Array, ArrayRef, Int32Array, Int64Array, StructArray};
use arrow_schema::ArrowError;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};
use std::sync::{Arc, Mutex};

const PIECE_BYTES: usize = 32 << 20; // of keys and values, and the last record that goes beyond
const AT_ONCE: usize = 1024;
const SLICE_MS: i32 = 20; // near the end of a log fewer messages than asked for may ever come
const END_OF_PARTITION: i32 = -191;
const NO_SUCH_OFFSET: [i32; 2] = [-140, 1];

#[pyclass]
pub struct Consumer {
    client: Mutex<Client>,
}

#[pymethods]
impl Consumer {
    #[new]
    fn new(py: Python, beside: &str, config: Vec<(String, String)>) -> PyResult<Self> {
        let made = py.detach(|| Client::new(beside, &config)).map_err(PyValueError::new_err)?;
        Ok(Self { client: Mutex::new(made) })
    }

    fn assign(&self, py: Python, topic: &str, partition: i32, offset: i64) -> PyResult<()> {
        py.detach(|| self.client.lock().unwrap().assign(topic, partition, offset))
            .map_err(PyRuntimeError::new_err)
    }

    fn unassign(&self, py: Python) -> PyResult<()> {
        py.detach(|| self.client.lock().unwrap().unassign()).map_err(PyRuntimeError::new_err)
    }

    fn ends(
        &self,
        py: Python,
        topic: &str,
        partition: i32,
        timeout_ms: i32,
    ) -> PyResult<(i64, i64)> {
        py.detach(|| self.client.lock().unwrap().ends(topic, partition, timeout_ms))
            .map_err(PyRuntimeError::new_err)
    }

    /// Records of a range [following, stop): the wanted offsets, or all of them.
    #[pyo3(signature = (form, range, wanted, most, timeout_ms))]
    fn piece(
        &self,
        py: Python,
        form: &Form,
        range: (i64, i64),
        wanted: Option<PyBuffer<i64>>,
        most: usize,
        timeout_ms: i32,
    ) -> PyResult<Piece> {
        // The array belongs to the caller, who does not write to it while we read.
        let wanted = wanted.as_ref().map(|buffer| unsafe {
            std::slice::from_raw_parts(buffer.buf_ptr() as *const i64, buffer.item_count())
        });
        let task = Task { following: range.0, stop: range.1, wanted, most, timeout_ms };
        Ok(py.detach(|| task.piece(&self.client.lock().unwrap(), &form.made)))
    }
}

struct Task<'a> {
    following: i64,
    stop: i64,
    wanted: Option<&'a [i64]>,
    most: usize,
    timeout_ms: i32,
}

impl Task<'_> {
    fn piece(&self, client: &Client, made: &Made) -> Piece {
        let mut piece = match made {
            Made::Columns { fields, written } => {
                let mut decoder = Decoder::new(fields, written);
                let mut piece = self.fetched(client, |piece, message| {
                    let value = message.value();
                    let mut room = Vec::with_capacity(fields.len());
                    match value {
                        Some(record) if decoder.add(record, &mut room) => {
                            piece.row(message.offset(), message.timestamp());
                        }
                        _ => piece.doubt(message.offset(), message.timestamp().1, value),
                    }
                });
                piece.close(decoder.finish());
                piece
            }
            Made::Raw { key, value } => {
                let (mut keys, mut values) = (BinaryBuilder::new(), BinaryBuilder::new());
                let mut piece = self.fetched(client, |piece, message| {
                    piece.row(message.offset(), message.timestamp());
                    keys.append_option(message.key().filter(|_| *key));
                    values.append_option(message.value().filter(|_| *value));
                });
                piece.close(vec![Arc::new(keys.finish()), Arc::new(values.finish())]);
                piece
            }
        };
        piece.complaint = client.complaint().or(piece.complaint);
        piece
    }

    /// Goes through the messages until there are enough, or no more for now.
    fn fetched(&self, client: &Client, mut add: impl FnMut(&mut Piece, &Message)) -> Piece {
        let mut piece = Piece { following: self.following, ..Piece::default() };
        let (mut seen, mut bytes, mut left_ms) = (0, 0, self.timeout_ms);
        let mut place = self
            .wanted
            .map_or(0, |wanted| wanted.partition_point(|&offset| offset < self.following));
        while seen < self.most && bytes < PIECE_BYTES && piece.following < self.stop {
            let asked = (self.stop - piece.following).min((self.most - seen) as i64) as usize;
            let asked = asked.min(AT_ONCE);
            let messages = client.consume(asked, SLICE_MS);
            for message in messages.iter() {
                let offset = message.offset();
                match message.error() {
                    0 if offset < piece.following => continue,
                    0 | END_OF_PARTITION if offset >= self.stop => piece.ended = true,
                    0 => {
                        piece.following = offset + 1;
                        seen += 1;
                        let is_wanted = self.wanted.is_none_or(|wanted| {
                            place += wanted[place..].iter().take_while(|&&at| at < offset).count();
                            wanted.get(place) == Some(&offset)
                        });
                        if is_wanted {
                            bytes += message.key().map_or(0, <[u8]>::len);
                            bytes += message.value().map_or(0, <[u8]>::len);
                            piece.reached = Some(offset + 1);
                            add(&mut piece, &message);
                        }
                    }
                    END_OF_PARTITION => (),
                    code if NO_SUCH_OFFSET.contains(&code) => piece.astray = true,
                    code => piece.complaint = Some(said(&message, || client.meaning(code))),
                }
                if piece.ended || piece.astray {
                    return piece;
                }
            }
            if messages.len() < asked {
                left_ms -= SLICE_MS;
                if seen > 0 || left_ms <= 0 {
                    break;
                }
            }
        }
        piece
    }
}

/// An error's text stands where a record has its value; without one, the meaning of its number.
fn said(message: &Message, meaning: impl Fn() -> String) -> String {
    message.value().map_or_else(meaning, |text| String::from_utf8_lossy(text).into_owned())
}

/// What one call brought. Its rows go to Arrow as one struct: the columns of the form, then offset,
/// arrival in milliseconds and the time stamp's kind.
#[pyclass]
#[derive(Default)]
pub struct Piece {
    #[pyo3(get)]
    following: i64,
    #[pyo3(get)]
    reached: Option<i64>, // behind the last wanted record
    #[pyo3(get)]
    ended: bool,
    #[pyo3(get)]
    astray: bool, // the log has no such offset
    #[pyo3(get)]
    complaint: Option<String>,
    offsets: Vec<i64>,
    arrivals_ms: Vec<i64>,
    kinds: Vec<i32>,
    columns: Vec<ArrayRef>,
    doubtful: Vec<(i64, i64, Option<Vec<u8>>)>,
}

impl Piece {
    pub fn row(&mut self, offset: i64, (kind, arrival_ms): (i32, i64)) {
        self.offsets.push(offset);
        self.arrivals_ms.push(arrival_ms);
        self.kinds.push(kind);
    }

    /// A record that only the reference can judge.
    pub fn doubt(&mut self, offset: i64, arrival_ms: i64, value: Option<&[u8]>) {
        self.doubtful.push((offset, arrival_ms, value.map(<[u8]>::to_vec)));
    }

    pub fn close(&mut self, mut columns: Vec<ArrayRef>) {
        columns.push(Arc::new(Int64Array::from(std::mem::take(&mut self.offsets))));
        columns.push(Arc::new(Int64Array::from(std::mem::take(&mut self.arrivals_ms))));
        columns.push(Arc::new(Int32Array::from(std::mem::take(&mut self.kinds))));
        self.columns = columns;
    }
}

#[pymethods]
impl Piece {
    /// (offset, arrival in milliseconds, value) of those that the reference has to judge.
    #[getter]
    fn doubtful<'py>(&self, py: Python<'py>) -> Vec<(i64, i64, Option<Bound<'py, PyBytes>>)> {
        let found = self.doubtful.iter();
        found
            .map(|(offset, ms, value)| (*offset, *ms, value.as_ref().map(|v| PyBytes::new(py, v))))
            .collect()
    }

    /// Arrow's C data interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        let _ = requested_schema; // ours is the only one
        let refused = |error: ArrowError| PyRuntimeError::new_err(error.to_string());
        let names: Vec<String> = (0..self.columns.len()).map(|place| place.to_string()).collect();
        let named: Vec<(&str, ArrayRef)> =
            names.iter().map(String::as_str).zip(self.columns.iter().cloned()).collect();
        let rows = StructArray::try_from(named).map_err(refused)?;
        let (array, schema) = to_ffi(&rows.to_data()).map_err(refused)?;
        Ok((
            PyCapsule::new_with_value(py, schema, c"arrow_schema")?,
            PyCapsule::new_with_value(py, array, c"arrow_array")?,
        ))
    }
}
