"""JSON values to Arrow rows by schema. Whether a record is malformed depends on it alone.

Each value is wrapped as {"v": value} on a line of its own and the whole block is parsed at once.
Nothing inside a value can join two lines into one row, so as many rows as values means that they
belong together one by one. A block that fails is taken apart until the malformed records stand
alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from json import loads

import pyarrow as pa
from pyarrow import json

from spillway.errors import SpillwayError

_ROW = "v"


@dataclass(frozen=True, kw_only=True)
class Decoded:
    """Rows of the good values, and what is wrong with the others, by index."""

    rows: pa.Table
    good: list[int]
    bad: dict[int, str]


class JsonDecoder:
    """Fields that the schema does not name are ignored; missing ones are null.

    Types are strict: a number is not read from a string, nor a whole number from 1.5. Timestamps
    are ISO 8601 (UTC where no zone is named), dates are YYYY-MM-DD.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        fields = [pa.field(field.name, _parsed_type(field)) for field in schema]
        self._parse_options = json.ParseOptions(
            explicit_schema=pa.schema([(_ROW, pa.struct(fields))]),
            unexpected_field_behavior="ignore",
            newlines_in_values=True,
        )
        self._python_types = {
            field.name: kinds for field in schema if (kinds := _python_types(field.type))
        }
        self._required = [field.name for field in schema if not field.nullable]

    def decode(self, values: Sequence[bytes | None]) -> Decoded:
        tables: list[pa.Table] = []
        good: list[int] = []
        bad: dict[int, str] = {}
        blocks = [list(range(len(values)))] if values else []
        while blocks:
            block = blocks.pop()
            try:
                tables.append(self._block([values[index] for index in block]))
                good += block
            except (pa.ArrowException, _MalformedBlockError) as error:
                if len(block) == 1:
                    bad[block[0]] = str(error).splitlines()[0]
                else:
                    blocks += self._apart(block, values)
        rows = pa.concat_tables(tables) if tables else self.schema.empty_table()
        if bad:
            order = sorted(range(len(good)), key=good.__getitem__)
            rows = rows.take(pa.array(order, pa.int64()))
        return Decoded(rows=rows, good=sorted(good), bad=dict(sorted(bad.items())))

    def _apart(self, block: list[int], values: Sequence[bytes | None]) -> list[list[int]]:
        """Smaller blocks: suspects alone and the rest together, or halves when none is suspect.

        A call of the parser costs as much as a hundred records, so a quick look finds most of the
        malformed ones. It only suspects: the parser alone judges.
        """
        suspects = [index for index in block if self._suspect(values[index])]
        if suspects:
            rest = sorted(set(block) - set(suspects))
            return [[index] for index in suspects] + ([rest] if rest else [])
        middle = len(block) // 2
        return [block[middle:], block[:middle]]

    def _suspect(self, value: bytes | None) -> bool:
        try:
            record = loads(value or b"")
            return any(
                type(record[name]) not in kinds
                for name, kinds in self._python_types.items()
                if record.get(name) is not None
            )
        except (ValueError, AttributeError, RecursionError):
            return True

    def _block(self, values: Sequence[bytes | None]) -> pa.Table:
        if None in values:
            raise _MalformedBlockError("the record has no value")
        text = b'{"v":' + b'}\n{"v":'.join(values) + b"}\n"  # type: ignore[arg-type]
        options = json.ReadOptions(use_threads=False, block_size=len(text) + 1)
        parsed = json.read_json(
            pa.BufferReader(text), read_options=options, parse_options=self._parse_options
        )
        if parsed.num_rows != len(values):
            raise _MalformedBlockError("the value is not one JSON object")
        rows = parsed.column(_ROW).combine_chunks()
        if rows.null_count:
            raise _MalformedBlockError("the value is null")
        rows.validate(full=True)  # text that is not UTF-8
        table = pa.table(rows.flatten(), names=self.schema.names).cast(self._nullable)
        for name in self._required:
            if table.column(name).null_count:
                raise _MalformedBlockError(f"field '{name}' is missing")
        return table.cast(self.schema)

    @property
    def _nullable(self) -> pa.Schema:
        return pa.schema([(field.name, field.type) for field in self.schema])


class _MalformedBlockError(Exception):
    pass


def _python_types(kind: pa.DataType) -> tuple[type, ...]:
    """What the quick look expects for a column; nothing means that it does not look."""
    if pa.types.is_boolean(kind):
        return (bool,)
    if pa.types.is_integer(kind):
        return (int,)
    if pa.types.is_floating(kind):
        return (int, float)
    if pa.types.is_string(kind) or pa.types.is_timestamp(kind):
        return (str,)
    return ()


def _parsed_type(field: pa.Field) -> pa.DataType:
    """What the parser makes of a field before it is cast to the wanted type."""
    if pa.types.is_date(field.type):
        return pa.string()
    if pa.types.is_binary(field.type):
        raise SpillwayError(
            f"column '{field.name}' is binary: JSON holds text, so ask for a string,"
            " or for the raw bytes with option 'decode' = 'raw'"
        )
    return field.type
