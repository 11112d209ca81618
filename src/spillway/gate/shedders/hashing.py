"""64 random bits for every key of an Arrow column, the same on every machine and for ever."""

from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spillway.gate.sampling import PPM, splitmix

Words = npt.NDArray[np.uint64]
Indexes = npt.NDArray[np.int64]

_NULL = 0x5A5A5A5A5A5A5A5A


def key_words(column: Any) -> Words:
    """Integers of any width hash alike, everything else by its text; a null is a key too."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_integer(array.type):
        filled = pc.fill_null(array, 0)
        if pa.types.is_uint64(filled.type):
            words: Words = filled.to_numpy(zero_copy_only=False)
        else:
            whole = filled.cast(pa.int64()).to_numpy(zero_copy_only=False)
            words = whole.astype(np.uint64)
        return splitmix(np.where(_nulls(array), np.uint64(_NULL), words))
    text = array if pa.types.is_binary(array.type) else array.cast(pa.string())
    encoded = pc.dictionary_encode(text, null_encoding="encode")
    table = np.array([_word(key) for key in encoded.dictionary.to_pylist()], dtype=np.uint64)
    words = table[encoded.indices.to_numpy(zero_copy_only=False)]
    return words


def salted(words: Words, *salts: int) -> Words:
    """The words mixed with other numbers, one after the other."""
    for salt in salts:
        word = np.array([salt & (2**64 - 1)], dtype=np.uint64)
        words = splitmix(words ^ splitmix(word))
    return words


def places_ppm(words: Words) -> Indexes:
    """Evenly spread whole numbers from 0 up to a million."""
    return ((words >> np.uint64(32)) * np.uint64(PPM) >> np.uint64(32)).astype(np.int64)


def microseconds(column: Any) -> tuple[Indexes, npt.NDArray[np.bool]]:
    """A timestamp column as microseconds since 1970, and where it is null."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    unit = pa.timestamp("us", tz=getattr(array.type, "tz", None))
    values = pc.fill_null(array.cast(unit).cast(pa.int64()), 0)
    return values.to_numpy(zero_copy_only=False), _nulls(array)


def _nulls(array: Any) -> npt.NDArray[np.bool]:
    nulls: npt.NDArray[np.bool] = array.is_null().to_numpy(zero_copy_only=False)
    return nulls


def _word(key: str | bytes | None) -> int:
    if key is None:
        return _NULL
    content = key if isinstance(key, bytes) else key.encode()
    return int.from_bytes(blake2b(content, digest_size=8).digest(), "little")
