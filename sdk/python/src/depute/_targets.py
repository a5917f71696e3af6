"""Addresses in holder proofs. (RFC 9449 section 4.3, RFC 3986 section 6.2)"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

_HTTP = re.compile(r"[hH][tT][tT][pP][sS]?://[\x21-\x7e]+\Z")
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_UNRESERVED = re.compile(r"[A-Za-z0-9\-._~]")
_DEFAULT_PORTS = {"http": 80, "https": 443}


def proof_target(public_url: str, path: str) -> str:
    """The claim `htu` of a request: the platform's public address and the path, without query and fragment."""
    return public_url.rstrip("/") + re.split(r"[?#]", path, maxsplit=1)[0]


def is_same_target(one: str, other: str) -> bool:
    """Whether two addresses are the same target, even if they are spelled differently."""
    first = _normalize(one)
    return first is not None and first == _normalize(other)


def _normalize(address: str) -> str | None:
    if not _HTTP.match(address) or "\\" in address:
        return None
    try:
        url = urlsplit(address)
        port = url.port
    except ValueError:
        return None
    if "@" in url.netloc or not url.hostname:
        return None
    host = f"[{url.hostname}]" if ":" in url.hostname else url.hostname
    origin = f"{url.scheme}://{host}"
    if port is not None and port != _DEFAULT_PORTS[url.scheme]:
        origin += f":{port}"
    return origin + _without_dots(_ESCAPE.sub(_normalize_escape, url.path))


def _normalize_escape(match: re.Match[str]) -> str:
    character = chr(int(match[0][1:], 16))
    return character if _UNRESERVED.match(character) else match[0].upper()


def _without_dots(path: str) -> str:
    """RFC 3986 section 5.2.4."""
    kept: list[str] = []
    parts = path.split("/")[1:]
    for index, part in enumerate(parts):
        if part == "..":
            kept = kept[:-1]
        elif part != ".":
            kept.append(part)
            continue
        if index == len(parts) - 1:
            kept.append("")
    return "/" + "/".join(kept)
