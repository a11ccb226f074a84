"""The part of CBOR (RFC 8949) that plan files use: maps with text keys, arrays, text, integers,
true and false, all of definite length."""

from __future__ import annotations

from typing import Any

from .._errors import InvalidPlanError

_MAX_DEPTH = 32


def is_json(data: bytes) -> bool:
    """Whether a plan's file is JSON, and no CBOR: as the library's reader finds out."""
    return data.lstrip(b" \t\r\n").startswith(b"{")


def decode(data: bytes) -> Any:
    """The value that the data are, all of them. InvalidPlanError says where they are not."""
    try:
        value, end = _item(data, 0, 0)
    except (IndexError, UnicodeDecodeError) as error:
        raise InvalidPlanError(f"the plan is cut off or no CBOR ({error})") from None
    if end != len(data):
        raise InvalidPlanError(f"the plan ends at byte {end}, its file has {len(data)}")
    return value


def _item(data: bytes, at: int, depth: int) -> tuple[Any, int]:
    if depth > _MAX_DEPTH:
        raise InvalidPlanError(f"byte {at} of the plan: nested too deeply")
    major, number, after = _head(data, at)
    if major == 0:
        return number, after
    if major == 1:
        return -1 - number, after
    if major == 3:
        if after + number > len(data):
            raise IndexError(f"text at byte {at}")
        return data[after:after + number].decode(), after + number
    if major == 4:
        elements = []
        for _ in range(number):
            element, after = _item(data, after, depth + 1)
            elements.append(element)
        return elements, after
    if major == 5:
        members = {}
        for _ in range(number):
            key, after = _item(data, after, depth + 1)
            members[key], after = _item(data, after, depth + 1)
        return members, after
    if major == 7 and number in (20, 21):
        return number == 21, after
    raise InvalidPlanError(f"byte {at} of the plan is of a kind that plans do not use")


def _head(data: bytes, at: int) -> tuple[int, int, int]:
    major, short = data[at] >> 5, data[at] & 31
    if short < 24:
        return major, short, at + 1
    size = {24: 1, 25: 2, 26: 4, 27: 8}.get(short)
    if size is None:
        raise InvalidPlanError(f"byte {at} of the plan is of a kind that plans do not use")
    if at + 1 + size > len(data):
        raise IndexError(f"number at byte {at}")
    return major, int.from_bytes(data[at + 1:at + 1 + size], "big"), at + 1 + size


def encode(value: Any) -> bytes:
    """The shortest encoding, members in their order."""
    out = bytearray()
    _append(out, value)
    return bytes(out)


def _append(out: bytearray, value: Any) -> None:
    if isinstance(value, bool):
        out.append(0xF5 if value else 0xF4)
    elif isinstance(value, int):
        _append_head(out, 0 if value >= 0 else 1, value if value >= 0 else -1 - value)
    elif isinstance(value, str):
        text = value.encode()
        _append_head(out, 3, len(text))
        out += text
    elif isinstance(value, list):
        _append_head(out, 4, len(value))
        for element in value:
            _append(out, element)
    else:
        _append_head(out, 5, len(value))
        for key, member in value.items():
            _append(out, key)
            _append(out, member)


def _append_head(out: bytearray, major: int, number: int) -> None:
    if number < 24:
        out.append(major << 5 | number)
        return
    for short, size in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if number < 1 << 8 * size:
            out.append(major << 5 | short)
            out += number.to_bytes(size, "big")
            return
    raise ValueError(f"{number} does not fit 64 bits")
