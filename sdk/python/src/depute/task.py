"""The handle of a task."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, AsyncIterator, Mapping

from . import _contracts
from ._calls import Backoff, is_lost
from .errors import DeputeError, TaskEnded
from .values import Json, from_message

if TYPE_CHECKING:
    from .client import Client

_SERVICE = "depute.tasks.v1.TaskService"

#: Maximum seconds that one call waits at the platform for the end of a task.
_WAIT = 50.0

#: Statuses after which no event follows.
TERMINAL = frozenset({"completed", "rejected", "failed", "cancelled", "expired", "revoked"})


@dataclass(frozen=True)
class Event:
    """One event of a task's log."""

    #: The place in the log, from 1, without gaps.
    sequence: int
    time: datetime
    #: `created`, `accepted`, `started`, `progress`, `partial`, `completed`, `failed`, ...
    type: str
    #: The task's status after the event.
    status: str
    previous_status: str
    #: The fields of the event's message in depute/tasks/v1/task_event.proto.
    data: dict[str, Any] = field(default_factory=dict)

    @property
    def is_terminal(self) -> bool:
        """Whether the task has ended."""
        return self.status in TERMINAL


@dataclass(frozen=True)
class Result:
    """The result of a completed task."""

    output: Json
    #: A shorter form of the output; None where the worker gave none.
    compact: Json = None
    #: The output in a line of text; None where the worker gave none.
    minimal: str | None = None
    #: `tokens_used` and `cost_microcents`.
    usage: dict[str, int] = field(default_factory=dict)
    #: `method`, `passed`, `score`, `details` of the contract's check; None without a contract.
    verification: dict[str, Any] | None = None
    #: The worker's attestation; empty without one.
    attestation_id: str = ""
    task: dict[str, Any] = field(default_factory=dict, repr=False)


class Task:
    """The delegator's handle of a task. Every call may be repeated."""

    def __init__(self, client: Client, task_id: str) -> None:
        self._client = client
        self.id = task_id

    def __repr__(self) -> str:
        return f"Task({self.id!r})"

    async def get(self) -> dict[str, Any]:
        """The present state of the task."""
        task: dict[str, Any] = (await self._call("GetTask"))["task"]
        return task

    async def events(self, after: int = 0) -> AsyncIterator[Event]:
        """
        Yields the events after a position in the log, to the end of the task. A dropped stream is resumed after
        the last event, so each event comes once, in order.

        :raises DeputeError: the platform refused the stream, or stayed unreachable for the client's `retry_for`
        """
        calls = self._client._calls
        method = _contracts.method(f"{_SERVICE}/WatchTask")
        clock = asyncio.get_running_loop().time
        backoff = Backoff(longest=2.0)
        heard = clock()
        while True:
            request = method.request(task_id=self.id, after_sequence=after)
            try:
                async for answer in calls.stream(method, request):
                    heard = clock()
                    backoff.reset()
                    if not answer.HasField("task_event"):
                        continue
                    event = _event(answer.task_event)
                    if event.sequence <= after:
                        continue
                    after = event.sequence
                    yield event
                    # The consumer may have needed a long time. So the silence is measured from now on.
                    heard = clock()
                    if event.is_terminal:
                        return
            except DeputeError as error:
                if not is_lost(error) or clock() - heard > calls.retry_for:
                    raise
            await backoff.wait()

    async def result(self, timeout: float | None = None) -> Result:
        """
        Waits for the end of the task.

        :param timeout: seconds; None waits as long as the task's own limits allow
        :raises TaskEnded: the task ended without a result
        :raises asyncio.TimeoutError: the time has passed; the task goes on
        """
        return await asyncio.wait_for(self._result(), timeout)

    async def _result(self) -> Result:
        while True:
            answer = await self._call("WaitTask", timeout=_WAIT, call_timeout=_WAIT + 10)
            task = answer["task"]
            if task["status"] in TERMINAL:
                return result_of(task)

    async def cancel(self, reason: str = "", *, grace: timedelta | float | None = None) -> dict[str, Any]:
        """
        Cancels the task at once or, with `grace`, after a time in which the worker may end its work. A repeated
        call changes nothing.

        :returns: the task
        """
        task: dict[str, Any] = (await self._call("CancelTask", reason=reason, grace=grace))["task"]
        return task

    async def suspend(self, reason: str = "") -> dict[str, Any]:
        """Asks the worker to save a checkpoint and to release the task. The task is suspended after the release."""
        task: dict[str, Any] = (await self._call("SuspendTask", reason=reason))["task"]
        return task

    async def resume(
        self, *, budget: Mapping[str, Any] | None = None, spend: Mapping[str, int] | None = None
    ) -> dict[str, Any]:
        """Returns a suspended task to the queue. Its next worker receives the checkpoint."""
        task: dict[str, Any] = (await self._call("ResumeTask", budget=budget, spend=spend))["task"]
        return task

    async def provide_input(self, value: Json) -> dict[str, Any]:
        """Answers the worker's question."""
        task: dict[str, Any] = (await self._call("ProvideInput", input=value))["task"]
        return task

    async def move_deadline(self, expire_time: datetime) -> dict[str, Any]:
        """Changes the deadline of the task."""
        answer = await self._call("MoveTaskDeadline", expire_time=expire_time)
        task: dict[str, Any] = answer["task"]
        return task

    async def _call(
        self, method: str, *, call_timeout: float | None = None, **request: Any
    ) -> dict[str, Any]:
        return await self._client.call(
            f"{_SERVICE}/{method}", {"task_id": self.id, **request}, timeout=call_timeout
        )


def draft_of(**fields: Any) -> dict[str, Any]:
    """The fields of a draft that are set."""
    return {name: value for name, value in fields.items() if value not in (None, "", 0, [])}


def result_of(task: dict[str, Any]) -> Result:
    """The result of a task that has ended. Raises TaskEnded for any other end than completion."""
    if task["status"] != "completed":
        failure = task.get("failure", {})
        raise TaskEnded(
            task["id"], task["status"], failure.get("reason", ""), failure.get("message", ""), task
        )
    output = task.get("output", {})
    return Result(
        output=output.get("full"),
        compact=output.get("compact"),
        minimal=output.get("minimal"),
        usage=task.get("usage", {}),
        verification=task.get("verification"),
        attestation_id=task["attestation_id"],
        task=task,
    )


def _event(message: Any) -> Event:
    value = from_message(message)
    kind = message.WhichOneof("payload") or "unknown"
    data = value.get(kind, {})
    for more in ("verification", "attestation_id"):
        if value.get(more) and more not in data:
            data[more] = value[more]
    return Event(
        value["sequence"],
        value["event_time"],
        kind,
        value["status"],
        value["previous_status"],
        data,
    )
