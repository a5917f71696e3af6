"""Canonical JSON (RFC 8785), and strict reading of JSON."""

from __future__ import annotations

import hashlib
import json
import math
import re
from decimal import Decimal
from typing import Any, Mapping

#: Deepest nesting of a value with a canonical form; a scalar has depth 0.
MAX_DEPTH = 64

#: Limits of a text that parse_strict_json accepts.
MAX_READ_DEPTH = 100
MAX_READ_VALUES = 50_000

_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
}
_ESCAPES.update({chr(code): f"\\u{code:04x}" for code in range(32) if chr(code) not in _ESCAPES})
_TABLE = str.maketrans(_ESCAPES)


class CanonicalError(ValueError):
    """A value has no canonical form. `path` is the place of the fault, as `a.b[0]`; empty for the whole value."""

    def __init__(self, problem: str, path: str) -> None:
        super().__init__(f"{path}: {problem}" if path else problem)
        self.path = path


def canonical_json(value: Any, max_depth: int = MAX_DEPTH) -> str:
    """The RFC 8785 text of a JSON value. Raises CanonicalError for every other value."""
    parts: list[str] = []
    _write(value, parts, "", 0, max_depth)
    return "".join(parts)


def canonical_bytes(value: Any, max_depth: int = MAX_DEPTH) -> bytes:
    """The UTF-8 form of canonical_json: the bytes that are hashed and signed."""
    return canonical_json(value, max_depth).encode()


def blake2b_256(data: bytes, key: bytes = b"") -> bytes:
    """BLAKE2b with 32 bytes of output. With a key, the keyed form."""
    return hashlib.blake2b(data, digest_size=32, key=key).digest()


def version_digest(input_schema: Any, output_schema: Any) -> str:
    """SHA-256 of the canonical `{input, output}` of a capability, in hexadecimal. (NEKTE 1)"""
    return hashlib.sha256(canonical_bytes({"input": input_schema, "output": output_schema})).hexdigest()


def version_hash(input_schema: Any, output_schema: Any, length: int = 8) -> str:
    """
    A capability's version hash: the first `length` digits of version_digest. NEKTE's texts use 8 or 16
    digits.
    """
    return version_digest(input_schema, output_schema)[:length]


def is_of_version(hash: str, digest: str) -> bool:
    """Whether a hash is the first 8 to 64 hexadecimal digits of this digest, in lower or upper case."""
    return re.fullmatch(r"[0-9A-Fa-f]{8,64}", hash) is not None and digest.startswith(hash.lower())


def _write(value: Any, parts: list[str], path: str, depth: int, max_depth: int) -> None:
    if value is None or isinstance(value, bool):
        parts.append("null" if value is None else "true" if value else "false")
    elif isinstance(value, str):
        parts.append(_text(value, path))
    elif isinstance(value, (int, float)):
        parts.append(_number(value, path))
    elif isinstance(value, (list, tuple)):
        if depth >= max_depth:
            raise CanonicalError(f"nested deeper than {max_depth}", path)
        parts.append("[")
        for index, member in enumerate(value):
            if index > 0:
                parts.append(",")
            _write(member, parts, f"{path}[{index}]", depth + 1, max_depth)
        parts.append("]")
    elif isinstance(value, Mapping):
        if depth >= max_depth:
            raise CanonicalError(f"nested deeper than {max_depth}", path)
        parts.append("{")
        for index, key in enumerate(sorted(value, key=lambda name: _sort_key(name, path))):
            if index > 0:
                parts.append(",")
            inner = f"{path}.{key}" if path else key
            parts += [_text(key, inner), ":"]
            _write(value[key], parts, inner, depth + 1, max_depth)
        parts.append("}")
    else:
        raise CanonicalError(f"{type(value).__name__} is not a JSON value", path)


def _sort_key(name: object, path: str) -> bytes:
    """The key that sorts the names of members: canonical JSON orders them by UTF-16 code units."""
    if not isinstance(name, str):
        raise CanonicalError("names of members are text", path)
    return name.encode("utf-16-be", "surrogatepass")


def _text(value: str, path: str) -> str:
    if any("\ud800" <= char <= "\udfff" for char in value):
        raise CanonicalError("a lone surrogate has no UTF-8 form", path)
    return f'"{value.translate(_TABLE)}"'


def _number(value: int | float, path: str) -> str:
    try:
        number = float(value)
    except OverflowError:
        raise CanonicalError("not a JSON number", path) from None
    if not math.isfinite(number):
        raise CanonicalError(f"{number} is not a JSON number", path)
    text = number_text(number)
    if isinstance(value, int) and int(number) != value and text != str(value):
        raise CanonicalError("an integer that JSON readers round", path)
    return text


def number_text(number: float) -> str:
    """A number as ECMAScript writes it (Number::toString)."""
    if number == 0:
        return "0"
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    text = "".join(map(str, digits))
    # The decimal point stands after this many digits.
    point = len(text) + int(exponent)
    minus = "-" if sign else ""
    if len(text) <= point <= 21:
        return f"{minus}{text}{'0' * (point - len(text))}"
    if 0 < point <= 21:
        return f"{minus}{text[:point]}.{text[point:]}"
    if -6 < point <= 0:
        return f"{minus}0.{'0' * -point}{text}"
    power = point - 1
    mantissa = text if len(text) == 1 else f"{text[0]}.{text[1:]}"
    return f"{minus}{mantissa}e{'+' if power > 0 else '-'}{abs(power)}"


def parse_strict_json(text: str) -> Any:
    """
    Parses a JSON text that is signed, hashed or stored. Raises ValueError for invalid JSON, a name that
    occurs twice in one object, and a text beyond the limits. Numbers are read as doubles, as ECMAScript reads
    them.
    """
    _check_limits(text)
    return json.loads(
        text,
        object_pairs_hook=_unique,
        parse_int=_read_integer,
        parse_constant=_refuse_constant,
    )


def parse_lax_json(text: str) -> Any:
    """
    Parses JSON as ECMAScript's JSON.parse does: of two members with the same name, the later counts. Raises
    ValueError.
    """
    return json.loads(text, parse_int=_read_integer, parse_constant=_refuse_constant)


def _read_integer(text: str) -> int | float:
    number = float(text)
    if not math.isfinite(number) or (number == 0 and text.startswith("-")):
        return number
    # Beyond 2^53 the value is that of the nearest double, not that of the digits.
    return int(number)


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a member stands twice in one object")
    return value


def _check_limits(text: str) -> None:
    depth = values = 0
    in_text = bare = False
    at = 0
    while at < len(text):
        char = text[at]
        if in_text:
            if char == "\\":
                at += 1
            elif char == '"':
                in_text = False
        elif char == '"':
            in_text, values, bare = True, values + 1, False
        elif char in "{[":
            depth, values, bare = depth + 1, values + 1, False
            if depth > MAX_READ_DEPTH:
                raise ValueError(f"nested deeper than {MAX_READ_DEPTH} levels")
        elif char in "}]":
            depth, bare = depth - 1, False
        elif char in " \t\r\n,:":
            bare = False
        elif not bare:
            bare, values = True, values + 1
        if values > MAX_READ_VALUES:
            raise ValueError(f"more than {MAX_READ_VALUES} values and names")
        at += 1
