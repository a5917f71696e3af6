"""Patterns of resources: `match` and `subset` of tokens.md."""

import re

from refusal import Refusal

FORBIDDEN = re.compile(r"[\x00-\x1f\x7f\\]|%(?:2e|2f|5c)", re.IGNORECASE)
ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/]*", re.IGNORECASE)


def _path(text, namespace):
    """(leading, trailing, segments)"""

    def refuse(problem):
        raise Refusal("invalid_resource", problem)

    try:
        units = len(text.encode("utf-16-be")) // 2
    except UnicodeEncodeError:
        refuse("lone surrogate")
    if text == "" or units > 1024 or FORBIDDEN.search(text) or text != text.strip(" "):
        refuse("form")
    origin = None
    if namespace == "web" or ":" in namespace:
        found = ORIGIN.match(text)
        origin = found[0] if found else None
    if origin is not None and origin.endswith("://"):
        refuse("no authority")
    if text == "/":
        return (True, False, ())
    rest = text[len(origin) :] if origin is not None else text
    leading = origin is None and rest.startswith("/")
    parts = rest.split("/")
    if origin is not None or leading:
        parts = parts[1:]
    trailing = rest != "" and rest.endswith("/")
    if trailing:
        parts = parts[:-1]
    if origin is not None:
        parts = [origin, *parts]
    if any(part in ("", ".", "..") for part in parts):
        refuse("segment")
    return (leading, trailing, tuple(parts))


def pattern(text, namespace):
    path = _path(text, namespace)
    if any("*" in part and part not in ("*", "**") for part in path[2]):
        raise Refusal("invalid_resource", "partial wildcard")
    return path


def resource(text, namespace):
    if "*" in text and text != "*":
        raise Refusal("invalid_resource", "wildcard")
    return _path(text, namespace)


def matches(pattern_text, resource_text, namespace):
    one, other = pattern(pattern_text, namespace), resource(resource_text, namespace)
    if pattern_text in ("*", "**"):
        return True
    if resource_text == "*" or one[:2] != other[:2]:
        return False
    places = _closed(one[2], {0})
    for segment in other[2]:
        places = _step(one[2], places, segment)
    return len(one[2]) in places


def _closed(segments, places):
    places = set(places)
    for i, segment in enumerate(segments):
        if i in places and segment == "**":
            places.add(i + 1)
    return frozenset(places)


def _step(segments, places, literal):
    """
    The positions in the pattern after one more segment. The segment None stands for a text that equals no
    literal.
    """
    after = set()
    for place in places:
        if place == len(segments):
            continue
        segment = segments[place]
        if segment == "**":
            after.add(place)
        elif segment == "*" or segment == literal:
            after.add(place + 1)
    return _closed(segments, after)


def is_subset(child, parent):
    if (child["namespace"], child["action"]) != (parent["namespace"], parent["action"]):
        return False
    try:
        outer = pattern(parent["resource"], parent["namespace"])
        inner = pattern(child["resource"], child["namespace"])
    except Refusal:
        return False
    if parent["resource"] in ("*", "**"):
        return True
    if child["resource"] in ("*", "**") or inner[:2] != outer[:2]:
        return False
    may_be_empty = inner[0] and not inner[1]
    seen = set()
    todo = [(0, _closed(outer[2], {0}), False)]
    while todo:
        state = todo.pop()
        if state in seen:
            continue
        seen.add(state)
        at, places, taken = state
        if at == len(inner[2]):
            if (taken or may_be_empty) and len(outer[2]) not in places:
                return False
        elif inner[2][at] == "**":
            todo.append((at + 1, places, taken))
            todo.append((at, _step(outer[2], places, None), True))
        else:
            literal = None if inner[2][at] == "*" else inner[2][at]
            todo.append((at + 1, _step(outer[2], places, literal), True))
    return True
