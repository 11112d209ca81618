//! The native reader of Kafka: from the client library's queue straight into Arrow columns.

mod avro;
mod client;
mod columns;
mod decoder;
mod form;
mod json;
mod reader;
mod text;

use pyo3::panic::PanicException;
use pyo3::prelude::*;

/// Counts up with every change of what Python calls here: another number is another program.
const INTERFACE: u32 = 2;

#[pymodule]
fn spillway_native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("INTERFACE", INTERFACE)?;
    module.add("Panic", module.py().get_type::<PanicException>())?;
    module.add_class::<form::Form>()?;
    module.add_class::<reader::Consumer>()?;
    module.add_class::<reader::Piece>()
}
