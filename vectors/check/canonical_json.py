"""Canonical JSON and version hashes, from canonical-json.md."""

import hashlib
import json
import re
from decimal import Decimal

from refusal import Refusal

MAX_DEPTH = 64


def parse(text):
    """Parses a JSON text strictly. Integers become doubles."""

    def members(pairs):
        value = dict(pairs)
        if len(value) != len(pairs):
            raise Refusal("no_canonical_form", "repeated member")
        return value

    def no_constant(name):
        raise Refusal("no_canonical_form", name)

    try:
        return json.loads(
            text, object_pairs_hook=members, parse_constant=no_constant, parse_int=float
        )
    except (ValueError, RecursionError) as error:
        raise Refusal("no_canonical_form", str(error)) from error


def canonical(value, max_depth=MAX_DEPTH):
    """The canonical text of a parsed value."""
    return _write(value, 0, max_depth)


def canonical_bytes(value):
    return canonical(value).encode("utf-8")


def _write(value, depth, max_depth):
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, (int, float)):
        return number(float(value))
    if depth >= max_depth:
        raise Refusal("no_canonical_form", "too deep")
    if isinstance(value, list):
        return "[" + ",".join(_write(item, depth + 1, max_depth) for item in value) + "]"
    names = sorted(value, key=_utf16)
    return "{" + ",".join(f"{_text(n)}:{_write(value[n], depth + 1, max_depth)}" for n in names) + "}"


def _utf16(text):
    _well_formed(text)
    return text.encode("utf-16-be")


def _well_formed(text):
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise Refusal("no_canonical_form", "lone surrogate") from error


ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _text(text):
    _well_formed(text)
    return '"' + re.sub(r'[\x00-\x1f"\\]', lambda m: ESCAPES.get(m[0], f"\\u{ord(m[0]):04x}"), text) + '"'


def number(value):
    """A double as ECMAScript writes it."""
    if value != value or value in (float("inf"), float("-inf")):
        raise Refusal("no_canonical_form", "not finite")
    if value == 0:
        return "0"
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    text = "".join(map(str, digits)).rstrip("0")
    e = len(digits) + exponent
    n = len(text)
    if n <= e <= 21:
        out = text + "0" * (e - n)
    elif 0 < e <= 21:
        out = f"{text[:e]}.{text[e:]}"
    elif -6 < e <= 0:
        out = "0." + "0" * -e + text
    else:
        mark = "+" if e > 0 else "-"
        point = f".{text[1:]}" if n > 1 else ""
        out = f"{text[0]}{point}e{mark}{abs(e - 1)}"
    return ("-" if sign else "") + out


def check_canonicalize(case):
    text = canonical(parse(case["json"]))
    utf8 = text.encode("utf-8")
    return {
        "canonical": text,
        "utf8Hex": utf8.hex(),
        "sha256Hex": hashlib.sha256(utf8).hexdigest(),
        "blake2b256Hex": hashlib.blake2b(utf8, digest_size=32).hexdigest(),
    }


def check_version_hash(case):
    value = {"input": case["input"], "output": case["output"]}
    digest = hashlib.sha256(canonical_bytes(value)).hexdigest()
    return {"digestHex": digest, "hash8": digest[:8], "hash16": digest[:16]}


def check_names_version(case):
    digits = case["hash"].lower()
    names = re.fullmatch("[0-9a-f]{8,64}", digits) is not None and case["digestHex"].startswith(digits)
    return {"names": names}


OPERATIONS = {
    "canonicalize": check_canonicalize,
    "version-hash": check_version_hash,
    "names-version": check_names_version,
}
