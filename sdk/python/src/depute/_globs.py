"""Resources and patterns of resources. (DelegateOS 10.2)"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_RESOURCE_CHARS = 1024
#: Maximum work of the containment checks of one token, in steps of the automata.
MAX_CONTAINMENT_WORK = 50_000
#: Maximum number of segments in patterns that a quick check can compare. Longer patterns are compared step by
#: step.
_MAX_SEGMENTS_AT_SIGHT = 31

_FORBIDDEN_CHARACTERS = re.compile(r"[\x00-\x1f\x7f\\]")
_FORBIDDEN_ESCAPES = re.compile(r"%(2[eE]|2[fF]|5[cC])")
_ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/]*")


@dataclass(frozen=True)
class Pattern:
    """
    A text cut at its slashes. One leading and one trailing slash are markers: `/a`, `a` and `/a/` are three things.
    """

    leading: bool
    trailing: bool
    segments: tuple[str, ...]
    #: A lone `*` or `**`, which match every resource.
    universal: bool = False


@dataclass
class Work:
    """The remaining steps of containment checks. All checks of one token share this budget."""

    left: int = MAX_CONTAINMENT_WORK


class PatternProblem(ValueError):
    """A text is neither a resource nor a pattern."""


def utf16_length(text: str) -> int:
    """The length in UTF-16 code units, the unit of the limits of texts."""
    return len(text) + sum(char > "\uffff" for char in text)


def is_well_formed(text: str) -> bool:
    """Whether a text has a UTF-8 form."""
    return not any("\ud800" <= char <= "\udfff" for char in text)


def parse_pattern(text: str, namespace: str) -> Pattern:
    """Parses a pattern: `*` is one segment, `**` any number of them. Raises PatternProblem."""
    path = _parse(text, namespace)
    if any("*" in segment and segment not in ("*", "**") for segment in path.segments):
        raise PatternProblem("partial wildcard")
    segments = [
        segment
        for index, segment in enumerate(path.segments)
        if segment != "**" or index == 0 or path.segments[index - 1] != "**"
    ]
    return Pattern(path.leading, path.trailing, tuple(segments), text in ("*", "**"))


def parse_resource(text: str, namespace: str) -> Pattern:
    """Parses a requested resource: a text without wildcard, or a lone `*`. Raises PatternProblem."""
    path = _parse(text, namespace)
    if text != "*" and "*" in text:
        raise PatternProblem("wildcard")
    return path


def _parse(text: str, namespace: str) -> Pattern:
    problem = _problem(text)
    if problem is not None:
        raise PatternProblem(problem)
    has_addresses = namespace == "web" or ":" in namespace
    match = _ORIGIN.match(text) if has_addresses else None
    if match is not None and match[0].endswith("://"):
        raise PatternProblem("no authority")
    parts = text[match.end() if match else 0 :].split("/")
    leading = match is None and parts[0] == ""
    if match is not None:
        # After the origin the text ends or continues with a slash. So the first part is empty, and the origin takes
        # its place.
        parts[0] = match[0]
    elif leading:
        parts.pop(0)
    trailing = len(parts) > 1 and parts[-1] == ""
    if trailing or text == "/":
        parts.pop()
    if "" in parts:
        raise PatternProblem("empty segment")
    if "." in parts or ".." in parts:
        raise PatternProblem("dot segment")
    return Pattern(leading, trailing, tuple(parts))


def _problem(text: str) -> str | None:
    if text == "":
        return "empty"
    if utf16_length(text) > MAX_RESOURCE_CHARS:
        return "too long"
    if not is_well_formed(text):
        return "lone surrogate"
    if _FORBIDDEN_CHARACTERS.search(text):
        return "forbidden character"
    if _FORBIDDEN_ESCAPES.search(text):
        return "forbidden escape"
    if text.startswith(" ") or text.endswith(" "):
        return "space at an end"
    return None


def matches(pattern: Pattern, resource: Pattern) -> bool:
    """Whether a pattern matches a resource."""
    if pattern.universal:
        return True
    # Only a pattern that matches every resource grants a request for every resource.
    if resource.segments == ("*",):
        return False
    if pattern.leading != resource.leading or pattern.trailing != resource.trailing:
        return False
    return _match_segments(pattern.segments, resource.segments)


def _match_segments(pattern: tuple[str, ...], resource: tuple[str, ...]) -> bool:
    """
    Whether a pattern's segments match a resource's segments. At a mismatch the last `**` takes one more
    segment, so the cost is at most the product of the two lengths.
    """
    p = r = resume = 0
    star = -1
    while r < len(resource):
        if p < len(pattern) and pattern[p] == "**":
            star, resume = p, r
            p += 1
        elif p < len(pattern) and pattern[p] in ("*", resource[r]):
            p, r = p + 1, r + 1
        elif star >= 0:
            resume += 1
            p, r = star + 1, resume
        else:
            return False
    while p < len(pattern) and pattern[p] == "**":
        p += 1
    return p == len(pattern)


def contains(parent: Pattern, child: Pattern, work: Work | None = None) -> bool:
    """
    Whether `parent` matches every resource that `child` matches. Both patterns are automata over segments. The walk
    follows each state of the child with the set of states that the parent may be in. An exhausted budget means False.
    """
    work = work or Work()
    if parent.universal:
        return True
    if child.universal:
        return False
    if parent.leading != child.leading or parent.trailing != child.trailing:
        return False
    at_sight = _contains_at_sight(parent, child, work)
    return _walk(parent, child, work) if at_sight is None else at_sight


def _contains_at_sight(parent: Pattern, child: Pattern, work: Work) -> bool | None:
    outer, inner = parent.segments, child.segments
    if max(len(outer), len(inner)) > _MAX_SEGMENTS_AT_SIGHT:
        return None
    if not any(_is_wildcard(segment) for segment in inner):
        work.left -= len(inner) + 1
        return work.left >= 0 and matches(parent, child)
    prefix = len(outer) - 1
    if not outer or outer[prefix] != "**" or any(_is_wildcard(one) for one in outer[:prefix]):
        return None
    work.left -= len(inner) + 1
    if work.left < 0:
        return False
    for index in range(prefix):
        if index >= len(inner):
            return None
        if outer[index] != inner[index]:
            return None if _is_wildcard(inner[index]) else False
    return True


def _is_wildcard(segment: str) -> bool:
    return segment in ("*", "**")


def _walk(parent: Pattern, child: Pattern, work: Work) -> bool:
    literals: dict[str, int] = {}
    stars = globstars = 0
    for index, segment in enumerate(parent.segments):
        bit = 1 << index
        if segment == "*":
            stars |= bit
        elif segment == "**":
            globstars |= bit
        else:
            literals[segment] = literals.get(segment, 0) | bit
    accepting = 1 << len(parent.segments)
    cost = 1 + (len(parent.segments) >> 5)

    def close(states: int) -> int:
        # `**` may match no segment, so the state after it is reached at once. Adjacent `**` are merged before, so one
        # shift is enough.
        return states | ((states & globstars) << 1)

    def step(states: int, segment: str | None) -> int:
        literal = 0 if segment is None else literals.get(segment, 0)
        return close(((states & (stars | literal)) << 1) | (states & globstars))

    # Only the resource "/" has no segments. The child matches it only with a leading slash and no trailing one.
    empty_exists = child.leading and not child.trailing
    seen: set[tuple[int, int, bool]] = set()
    todo = [(0, close(1), False)]
    while todo:
        state = todo.pop()
        if state in seen:
            continue
        seen.add(state)
        work.left -= cost
        if work.left < 0:
            return False
        at, states, consumed = state
        if at == len(child.segments):
            if (consumed or empty_exists) and not states & accepting:
                return False
        elif child.segments[at] == "**":
            todo += [(at + 1, states, consumed), (at, step(states, None), True)]
        else:
            segment = child.segments[at]
            todo.append((at + 1, step(states, None if segment == "*" else segment), True))
    return True
