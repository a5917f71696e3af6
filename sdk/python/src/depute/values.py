"""Plain Python values in place of protobuf messages.

Messages of the platform are dicts with the field names of the contract (`task_id`). Documents of the
protocol families have the member names of the protocols' specifications (`contractId`). A time is a
`datetime`, a duration a `timedelta`, an enum value its word in lower case (`running`), a JSON value the
value itself.
"""

from __future__ import annotations

import base64
import json
import math
import re
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from typing import Any, Mapping, Tuple, Union

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from . import _contracts

#: A JSON value: None, bool, int, float, str, list, or dict with names as keys.
Json = Union[None, bool, int, float, str, "list[Json]", "dict[str, Json]"]


#: The objects that contain a value, the innermost first.
Scope = Tuple[Mapping[str, Any], ...]


class Absent:
    """The type of ABSENT. ABSENT means that there is no value, where None would mean the JSON value null."""


ABSENT = Absent()

#: Integers up to this size are the same in every JSON reader.
MAX_SAFE_INTEGER = 2**53 - 1

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_INTEGERS = {
    FieldDescriptor.CPPTYPE_INT32,
    FieldDescriptor.CPPTYPE_INT64,
    FieldDescriptor.CPPTYPE_UINT32,
    FieldDescriptor.CPPTYPE_UINT64,
}
_FLOATS = {FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT}


class ValueProblem(ValueError):
    """A value does not fit its field. The text names the field."""


def to_message(name: str, value: Mapping[str, Any]) -> Message:
    """The message of a dict. Raises ValueProblem for an unknown member or a value of a wrong kind."""
    message = _contracts.new(name)
    fill(message, value)
    return message


def fill(message: Any, value: Any, path: str = "", scope: Scope = ()) -> None:
    """
    Sets the fields of an empty message from a plain value.

    :param scope: the objects that contain the value, the innermost first; one of them may contain a tag
    """
    descriptor = message.DESCRIPTOR
    special = _SPECIAL_IN.get(descriptor.full_name)
    if special is not None:
        special(message, value, path)
        return
    if isinstance(value, Message):
        message.MergeFromString(value.SerializeToString())
        return
    if _contracts.is_inline(descriptor) and not _names_its_field(descriptor, value):
        _set_one_of(message, list(descriptor.fields), value, path, scope)
        return
    if not isinstance(value, Mapping):
        raise ValueProblem(f"{path or descriptor.name}: give a dict, not {type(value).__name__}")
    members = _members(descriptor)
    extra = _extra_field(descriptor)
    scope = (value, *scope)
    value = _fill_tagged(message, value, path, scope)
    for key, member in value.items():
        fields = members.get(key)
        if fields is None and extra is not None:
            _fill_struct(getattr(message, extra), {key: member}, path)
            continue
        if fields is None:
            raise ValueProblem(f"{_join(path, str(key))}: {descriptor.full_name} has no such field")
        # In a field of JSON values None is the JSON null. In every other field it means that the member is absent.
        if member is None and not _is_value(fields[0]):
            continue
        _set_one_of(message, fields, member, _join(path, key), scope)


def _fill_tagged(message: Any, value: Mapping[str, Any], path: str, scope: Scope) -> Mapping[str, Any]:
    """Sets the oneofs whose member a tag selects. Returns the members of the value that are left."""
    descriptor = message.DESCRIPTOR
    for oneof in descriptor.oneofs:
        tag = _contracts.WIRE["tags"].get(oneof.full_name)
        if tag is None:
            continue
        word = next((one[tag["tag"]] for one in scope if tag["tag"] in one), None)
        for field in oneof.fields:
            if _option(field).get("word") != word:
                continue
            tagged = {one.name for one in oneof.fields}
            own = {name for name, fields in _members(descriptor).items() if fields[0].name not in tagged}
            merged = {name: one for name, one in value.items() if name not in own and name != tag["tag"]}
            _set(message, field, merged, path, scope)
            return {name: one for name, one in value.items() if name in own}
    return value


def _option(field: Any) -> dict[str, Any]:
    """The options that determine a field's form in JSON documents; see generate.py."""
    option: dict[str, Any] = _contracts.WIRE["fields"].get(field.full_name, {})
    return option


@lru_cache(maxsize=None)
def _extra_field(descriptor: Any) -> str | None:
    """The name of the field that collects unknown members; None if the message has no such field."""
    return next((field.name for field in descriptor.fields if _option(field).get("extra_members")), None)


def _is_value(field: Any) -> bool:
    message = field.message_type
    return message is not None and bool(message.full_name == "google.protobuf.Value")


def _names_its_field(descriptor: Any, value: Any) -> bool:
    return isinstance(value, Mapping) and any(key in descriptor.fields_by_name for key in value)


def _set_one_of(message: Any, fields: list[Any], value: Any, path: str, scope: Scope) -> None:
    """Sets one of several fields that share a member name. The kind of the value selects the field."""
    for field in fields[:-1]:
        try:
            _set(message, field, value, path, scope)
            return
        except (ValueProblem, TypeError, ValueError):
            message.ClearField(field.name)
    _set(message, fields[-1], value, path, scope)


@lru_cache(maxsize=None)
def _members(descriptor: Any) -> dict[str, list[Any]]:
    by_name: dict[str, list[Any]] = {}
    for field in descriptor.fields:
        wire = _option(field).get("name")
        for name in dict.fromkeys(filter(None, (wire, field.name, field.json_name))):
            by_name.setdefault(name, []).append(field)
    return by_name


def _is_repeated(field: Any) -> bool:
    label = getattr(field, "is_repeated", None)
    return bool(label) if label is not None else field.label == FieldDescriptor.LABEL_REPEATED


def _is_map(field: Any) -> bool:
    return bool(field.message_type is not None and field.message_type.GetOptions().map_entry)


def _set(message: Any, field: Any, value: Any, path: str, scope: Scope) -> None:
    if _is_map(field):
        entries = getattr(message, field.name)
        value_field = field.message_type.fields_by_name["value"]
        for key, member in value.items():
            if value_field.message_type is not None:
                fill(entries[key], member, _join(path, key), scope)
            else:
                entries[key] = _scalar(value_field, member, _join(path, key))
    elif _is_repeated(field):
        if isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__iter__"):
            raise ValueProblem(f"{path}: give a list, not {type(value).__name__}")
        items = getattr(message, field.name)
        for index, member in enumerate(value):
            if field.message_type is not None:
                fill(items.add(), member, f"{path}[{index}]", scope)
            else:
                items.append(_scalar(field, member, f"{path}[{index}]"))
    elif field.message_type is not None:
        child = getattr(message, field.name)
        child.SetInParent()
        fill(child, value, path, scope)
    else:
        setattr(message, field.name, _scalar(field, value, path))


def _scalar(field: Any, value: Any, path: str) -> Any:
    kind = field.cpp_type
    if kind == FieldDescriptor.CPPTYPE_ENUM:
        return _enum_number(field.enum_type, value, path)
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        if isinstance(value, bool):
            return value
        raise ValueProblem(f"{path}: give a bool, not {type(value).__name__}")
    if kind in _INTEGERS:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value != int(value):
            raise ValueProblem(f"{path}: give an integer")
        return int(value)
    if kind in _FLOATS:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueProblem(f"{path}: give a number")
        return float(value)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return _bytes(field, value, path)
    if not isinstance(value, str):
        raise ValueProblem(f"{path}: give a str, not {type(value).__name__}")
    return value


def _bytes(field: Any, value: Any, path: str) -> bytes:
    if _option(field).get("json"):
        return json_text(value, path).encode()
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    if isinstance(value, str):
        try:
            return base64.b64decode(value.replace("-", "+").replace("_", "/") + "=" * (-len(value) % 4))
        except ValueError:
            pass
    raise ValueProblem(f"{path}: give bytes, or their base64 form as a str")


def _prefix(enum: Any) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", enum.name).upper() + "_"


@lru_cache(maxsize=None)
def _words(enum: Any) -> tuple[dict[str, int], dict[int, str]]:
    """The number of an enum value by each accepted spelling, and by number the spelling that is written."""
    numbers: dict[str, int] = {}
    words: dict[int, str] = {}
    file = _contracts.WIRE["files"].get(enum.file.name, {})
    for value in enum.values:
        short = value.name.removeprefix(_prefix(enum))
        word = _contracts.WIRE["words"].get(f"{enum.full_name}.{value.name}")
        word = word or (short if file.get("upper") else short.lower())
        for name in (value.name, short, short.lower(), word):
            numbers.setdefault(name, value.number)
        words.setdefault(value.number, word)
    return numbers, words


def _enum_number(enum: Any, value: Any, path: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    number = _words(enum)[0].get(value) if isinstance(value, str) else None
    if number is None:
        known = ", ".join(word for key, word in sorted(_words(enum)[1].items()) if key != 0)
        raise ValueProblem(f"{path}: give one of {known}")
    return number


def check_json(value: Any, path: str = "", depth: int = 0) -> None:
    """Raises ValueProblem unless the value is JSON that every reader reads in the same way."""
    if value is None or isinstance(value, (bool, str)):
        if isinstance(value, str) and any("\ud800" <= char <= "\udfff" for char in value):
            raise ValueProblem(f"{path}: a lone surrogate has no UTF-8 form")
    elif isinstance(value, int):
        if abs(value) > MAX_SAFE_INTEGER:
            raise ValueProblem(f"{path}: an integer beyond 2^53-1 loses digits in JSON; give a str")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise ValueProblem(f"{path}: {value} is not a JSON number")
    elif depth > 100:
        raise ValueProblem(f"{path}: nested deeper than 100 levels")
    elif isinstance(value, (list, tuple)):
        for index, member in enumerate(value):
            check_json(member, f"{path}[{index}]", depth + 1)
    elif isinstance(value, Mapping):
        for key, member in value.items():
            if not isinstance(key, str):
                raise ValueProblem(f"{path}: names of members are str, not {type(key).__name__}")
            check_json(member, _join(path, key), depth + 1)
    else:
        raise ValueProblem(f"{path}: {type(value).__name__} is not a JSON value")


def json_text(value: Any, path: str = "") -> str:
    """JSON text of a value that check_json accepts."""
    check_json(value, path)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _fill_value(message: Any, value: Any, path: str) -> None:
    check_json(value, path)
    _put_value(message, value)


def _put_value(message: Any, value: Any) -> None:
    if value is None:
        message.null_value = 0
    elif isinstance(value, bool):
        message.bool_value = value
    elif isinstance(value, (int, float)):
        message.number_value = value
    elif isinstance(value, str):
        message.string_value = value
    elif isinstance(value, (list, tuple)):
        message.list_value.SetInParent()
        for member in value:
            _put_value(message.list_value.values.add(), member)
    else:
        message.struct_value.SetInParent()
        _put_struct(message.struct_value, value)


def _put_struct(message: Any, value: Mapping[str, Any]) -> None:
    for key, member in value.items():
        _put_value(message.fields[key], member)


def _fill_struct(message: Any, value: Any, path: str) -> None:
    if not isinstance(value, Mapping):
        raise ValueProblem(f"{path}: give a dict, not {type(value).__name__}")
    check_json(value, path)
    _put_struct(message, value)


def _fill_list(message: Any, value: Any, path: str) -> None:
    check_json(value, path)
    for member in value:
        _put_value(message.values.add(), member)


def _fill_time(message: Any, value: Any, path: str) -> None:
    if isinstance(value, str):
        value = datetime.fromisoformat(re.sub(r"Z$", "+00:00", value))
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise ValueProblem(f"{path}: give a datetime with a time zone")
    elapsed = value - _EPOCH
    message.seconds = elapsed.days * 86_400 + elapsed.seconds
    message.nanos = elapsed.microseconds * 1000


def _fill_duration(message: Any, value: Any, path: str) -> None:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = timedelta(seconds=value)
    if not isinstance(value, timedelta):
        raise ValueProblem(f"{path}: give a timedelta, or a number of seconds")
    micros = value // timedelta(microseconds=1)
    sign = -1 if micros < 0 else 1
    message.seconds = sign * (abs(micros) // 1_000_000)
    message.nanos = sign * (abs(micros) % 1_000_000) * 1000


_SPECIAL_IN = {
    "google.protobuf.Value": _fill_value,
    "google.protobuf.Struct": _fill_struct,
    "google.protobuf.ListValue": _fill_list,
    "google.protobuf.Timestamp": _fill_time,
    "google.protobuf.Duration": _fill_duration,
}


def from_message(message: Any) -> Any:
    """The plain value of a message. Absent fields with presence are left out; all other fields are always included."""
    descriptor = message.DESCRIPTOR
    special = _SPECIAL_OUT.get(descriptor.full_name)
    if special is not None:
        return special(message)
    is_document = descriptor.file.name in _contracts.WIRE["files"]
    value: dict[str, Any] = {}
    for field in descriptor.fields:
        if field.has_presence and not message.HasField(field.name):
            continue
        member = _plain(field, getattr(message, field.name))
        option = _option(field)
        if _contracts.is_inline(descriptor):
            return member
        if option.get("omit_empty") and not member:
            continue
        if option.get("extra_members"):
            value = {**member, **value}
        elif "word" in option:
            tag = _contracts.WIRE["tags"][field.containing_oneof.full_name]
            value.update(member)
            if not tag["inherited"]:
                value[tag["tag"]] = option["word"]
        else:
            value[option["name"] if is_document else field.name] = member
    return value


def _plain(field: Any, value: Any) -> Any:
    if _is_map(field):
        value_field = field.message_type.fields_by_name["value"]
        return {key: _plain_one(value_field, value[key]) for key in value}
    if _is_repeated(field):
        return [_plain_one(field, member) for member in value]
    return _plain_one(field, value)


def _plain_one(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        return from_message(value)
    if field.enum_type is not None:
        return _words(field.enum_type)[1].get(value, value)
    if field.type == FieldDescriptor.TYPE_BYTES and _contracts.WIRE["fields"].get(field.full_name, {}).get(
        "json"
    ):
        return json.loads(value)
    return value


def plain_value(message: Any) -> Json:
    """The JSON value of a google.protobuf.Value. A whole number is an int: JSON does not distinguish 1 from 1.0."""
    kind = message.WhichOneof("kind")
    if kind == "struct_value":
        return _plain_struct(message.struct_value)
    if kind == "list_value":
        return _plain_list(message.list_value)
    if kind == "number_value":
        number: float = message.number_value
        return int(number) if number.is_integer() and abs(number) <= MAX_SAFE_INTEGER else number
    if kind in ("bool_value", "string_value"):
        member: Json = getattr(message, kind)
        return member
    return None


def _plain_struct(message: Any) -> Json:
    return {key: plain_value(message.fields[key]) for key in message.fields}


def _plain_list(message: Any) -> Json:
    return [plain_value(member) for member in message.values]


def _plain_time(message: Any) -> datetime:
    return _EPOCH + timedelta(seconds=message.seconds, microseconds=message.nanos // 1000)


def _plain_duration(message: Any) -> timedelta:
    return timedelta(seconds=message.seconds, microseconds=message.nanos / 1000)


_SPECIAL_OUT: dict[str, Any] = {
    "google.protobuf.Value": plain_value,
    "google.protobuf.Struct": _plain_struct,
    "google.protobuf.ListValue": _plain_list,
    "google.protobuf.Timestamp": _plain_time,
    "google.protobuf.Duration": _plain_duration,
}


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
