"""The errors that calls raise."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping

import grpc
from google.protobuf.message import DecodeError

from . import _contracts
from ._gen.reasons import Reason

__all__ = ["DeputeError", "FieldViolation", "Reason", "TaskEnded", "reason_of"]

#: The domain of the platform's reasons in google.rpc.ErrorInfo.
DOMAIN = "depute.dev"

_DETAILS = "grpc-status-details-bin"


@dataclass(frozen=True)
class FieldViolation:
    """One wrong field of a request, as a path such as `draft.input`."""

    field: str
    description: str


class DeputeError(Exception):
    """The platform refused a call, or did not answer it."""

    def __init__(
        self,
        message: str,
        code: grpc.StatusCode,
        *,
        reason_name: str = "",
        metadata: Mapping[str, str] | None = None,
        violations: tuple[FieldViolation, ...] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        #: The word of the platform's reason; empty where the platform did not answer.
        self.reason_name = reason_name
        #: Facts of the reason, e.g. `denial` for TOKEN_DENIED.
        self.metadata: Mapping[str, str] = dict(metadata or {})
        self.violations = violations

    @property
    def reason(self) -> Reason | None:
        """The reason; None without one, or for a reason that this version of the package does not know."""
        return Reason.__members__.get(self.reason_name)

    @property
    def is_answered(self) -> bool:
        """Whether the platform itself refused the call. A retry of the same call then gets the same refusal."""
        return self.reason_name != ""

    def __str__(self) -> str:
        facts = [f"{one.field}: {one.description}" for one in self.violations]
        more = "".join(f"; {fact}" for fact in facts if fact not in self.message)
        return f"{self.reason_name or self.code.name}: {self.message}{more}"


@dataclass(eq=False)
class TaskEnded(Exception):
    """A task ended without a result: failed, rejected, cancelled, expired or revoked."""

    task_id: str
    #: `failed`, `rejected`, `cancelled`, `expired` or `revoked`.
    status: str
    #: The upper-case reason of the failure; empty for a cancelled task.
    reason_name: str = ""
    message: str = ""
    task: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def reason(self) -> Reason | None:
        """The reason, if the platform defines it. reason_name also contains a worker's own reason."""
        return Reason.__members__.get(self.reason_name)

    def __str__(self) -> str:
        why = ": ".join(part for part in (self.reason_name, self.message) if part)
        return f"task {self.task_id} is {self.status}{f' ({why})' if why else ''}"


def reason_of(error: BaseException) -> Reason | None:
    """The platform's reason of an error; None for every other error."""
    if isinstance(error, (DeputeError, TaskEnded)):
        return error.reason
    if isinstance(error, grpc.aio.AioRpcError):
        return error_of(error).reason
    return None


def error_of(error: grpc.aio.AioRpcError) -> DeputeError:
    """Converts a gRPC error to a DeputeError."""
    reason_name = ""
    metadata: dict[str, str] = {}
    violations: list[FieldViolation] = []
    for detail in _details(error):
        name = detail.type_url.rpartition("/")[2]
        if name == "google.rpc.ErrorInfo":
            info: Any = _contracts.message_type(name).FromString(detail.value)
            if info.domain == DOMAIN:
                reason_name, metadata = info.reason, dict(info.metadata)
        elif name == "google.rpc.BadRequest":
            request: Any = _contracts.message_type(name).FromString(detail.value)
            violations += [FieldViolation(one.field, one.description) for one in request.field_violations]
    return DeputeError(
        error.details() or "no answer",
        error.code(),
        reason_name=reason_name,
        metadata=metadata,
        violations=tuple(violations),
    )


def _details(error: grpc.aio.AioRpcError) -> list[Any]:
    for key, value in error.trailing_metadata() or ():
        if key == _DETAILS and isinstance(value, bytes):
            try:
                return list(_contracts.message_type("google.rpc.Status").FromString(value).details)
            except DecodeError:
                return []
    return []
