"""Element types: occlDataType_t, and what numpy, ml_dtypes and torch call them."""

from __future__ import annotations

from typing import Any

from ._errors import InvalidArgumentError

# name: (occlDataType_t, bytes)
DTYPES: dict[str, tuple[int, int]] = {
    "uint8": (0, 1), "int32": (1, 4), "int64": (2, 8), "float16": (3, 2), "bfloat16": (4, 2),
    "float32": (5, 4), "float64": (6, 8), "float8_e4m3fn": (7, 1), "float8_e5m2": (8, 1),
    "int8": (9, 1), "uint32": (10, 4), "uint64": (11, 8),
}
NAMES = {code: name for name, (code, _) in DTYPES.items()}
SIZES = {code: size for code, size in DTYPES.values()}
FLOATS = {"float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"}
# Moved and compared as bytes; a sum would be no truth value.
BOOL = "bool"
_SYNONYMS = {"float": "float32", "double": "float64", "half": "float16",
             "float8_e4m3": "float8_e4m3fn"}


def dtype_name(dtype: Any) -> str:
    """The name of a numpy, ml_dtypes or torch type, or of one by its name."""
    if isinstance(dtype, str):
        name = dtype
    elif type(dtype).__module__.partition(".")[0] == "torch":
        name = str(dtype).removeprefix("torch.")
    else:
        import numpy

        try:
            described = numpy.dtype(dtype)
        except TypeError as error:
            raise TypeError(f"'{dtype}' is no element type: {error}") from None
        if not described.isnative:
            raise InvalidArgumentError(f"elements are {described.str}, in the other byte order: "
                                       "array.astype(array.dtype.newbyteorder('=')) mends it")
        name = described.name
    name = _SYNONYMS.get(name, name)
    if name not in DTYPES and name != BOOL:
        raise InvalidArgumentError(f"OCCL has no element type '{name}'; it has {', '.join(DTYPES)}"
                                   " and bool")
    return name


def code_of(name: str) -> int:
    """occlDataType_t of a name, also of bool."""
    return DTYPES["uint8" if name == BOOL else name][0]


def numpy_dtype(name: str) -> Any:
    """The numpy type of a name; those of 8 and 16 bits that numpy lacks are of ml_dtypes."""
    import numpy

    if name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        try:
            import ml_dtypes
        except ImportError:
            raise InvalidArgumentError(f"numpy has no {name}: pip install ml_dtypes, or use a "
                                       "torch tensor") from None
        return numpy.dtype(getattr(ml_dtypes, name))
    return numpy.dtype(name)
