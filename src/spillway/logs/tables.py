"""Files as Arrow tables, loaded once per process."""

from functools import lru_cache
from pathlib import Path

import pyarrow as pa

from spillway.errors import SpillwayError


@lru_cache(maxsize=4)
def load_table(
    path: str, version: tuple[int, int], needed: str, schema: pa.Schema | None
) -> pa.Table:
    """All rows of a CSV, Parquet or npy file. `version` makes a changed file a new entry."""
    try:
        table = _read(Path(path), needed, schema)
    except (pa.ArrowException, ValueError, OSError, EOFError) as error:
        raise SpillwayError(f"{path} cannot be read: {str(error).splitlines()[0]}") from error
    if needed not in table.column_names:
        names = ", ".join(table.column_names)
        raise SpillwayError(f"{path} has no column '{needed}': it has {names}; see option 'time'")
    if table.num_rows == 0:
        raise SpillwayError(f"{path} is empty: a replay needs at least one row")
    return table.combine_chunks()


def _read(path: Path, needed: str, schema: pa.Schema | None) -> pa.Table:
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        return pq.read_table(path, memory_map=True)
    if path.suffix == ".csv" or path.name.endswith(".csv.gz"):
        return _read_csv(path, schema)
    if path.suffix == ".npy":
        import numpy as np

        return pa.table({needed: np.load(path, mmap_mode="r").ravel()})
    raise SpillwayError(f"{path} is of an unknown kind: it must be .csv, .csv.gz, .parquet or .npy")


def _read_csv(path: Path, schema: pa.Schema | None) -> pa.Table:
    from pyarrow import csv

    if path.stat().st_size == 0:
        return pa.table({})
    types = {field.name: field.type for field in schema} if schema is not None else {}
    return csv.read_csv(path, convert_options=csv.ConvertOptions(column_types=types))
