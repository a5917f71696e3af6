"""The platform's contracts, in a descriptor pool of this package."""

from __future__ import annotations

import json
from functools import lru_cache
from importlib import resources
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message


def _read(name: str) -> bytes:
    return (resources.files("depute") / "_gen" / name).read_bytes()


def _load() -> Any:
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(_read("contracts.binpb")).file:
        pool.AddSerializedFile(file.SerializeToString())
    return pool


_POOL = _load()

#: The names of members and enum values in the JSON documents of the protocol families; see generate.py.
WIRE: dict[str, Any] = json.loads(_read("wire.json"))

_INLINE = frozenset(WIRE["inline"])


@lru_cache(maxsize=None)
def message_type(name: str) -> Any:
    """The class of a message, by its full name."""
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(name))


def class_of(descriptor: Any) -> Any:
    """The class of a descriptor's messages."""
    return message_type(descriptor.full_name)


def new(name: str) -> Message:
    """An empty message."""
    message: Message = message_type(name)()
    return message


def is_inline(descriptor: Any) -> bool:
    """Whether a document contains the value of the message's only field in place of the message."""
    return descriptor.full_name in _INLINE


class Method:
    """One RPC of a service."""

    __slots__ = ("path", "request", "response", "streams", "input", "creates")

    def __init__(self, descriptor: Any) -> None:
        service = descriptor.containing_service
        #: The path of the HTTP request, which holder proofs name.
        self.path = f"/{service.full_name}/{descriptor.name}"
        self.input = descriptor.input_type
        self.request = class_of(descriptor.input_type)
        self.response = class_of(descriptor.output_type)
        self.streams = bool(descriptor.server_streaming)


@lru_cache(maxsize=None)
def method(name: str) -> Method:
    """A method, by `package.Service/Method`. Raises KeyError for an unknown one."""
    return Method(_POOL.FindMethodByName(name.replace("/", ".")))


@lru_cache(maxsize=None)
def method_names(service: str) -> frozenset[str]:
    """The names of a service's methods."""
    return frozenset(_POOL.FindServiceByName(service).methods_by_name)
