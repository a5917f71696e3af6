"""The types that the handler of a worker receives, returns and raises."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, Awaitable, Callable, Literal, Mapping, Union

from .values import ABSENT, Absent, Json

#: The kind of answer that a question asks for.
QuestionKind = Literal["input", "authorization"]


@dataclass
class Output:
    """A handler's output with additional members. A handler may also return only the output."""

    output: Json
    #: A shorter form of the output.
    compact: Json | Absent = ABSENT
    #: The output in a line of text.
    minimal: str | None = None
    tokens_used: int = 0
    #: 1 USD is 100,000,000 microcents.
    cost_microcents: int = 0
    #: The worker's recorded attestation of the output.
    attestation_id: str = ""
    #: Evidence and usage, for a task that carries out an execution: depute.tasks.v1.TaskDelivery.
    delivery: Mapping[str, Any] | None = None


class WorkFailure(Exception):
    """Fails an attempt with a reason of upper-case letters. Every other exception is a retryable WORKER_ERROR."""

    def __init__(self, reason: str, message: str = "", *, retryable: bool = False) -> None:
        super().__init__(message or reason)
        self.reason = reason
        self.retryable = retryable


class WorkSuspension(Exception):
    """Suspends the task until its delegator resumes it. Raised by work that cannot continue now."""

    def __init__(self, reason: str, checkpoint: Json | Absent = ABSENT) -> None:
        super().__init__(reason)
        self.checkpoint = checkpoint


class Interrupted(BaseException):
    """Raised by Work.checkpoint if the delegator requested an interruption. Handlers must not catch this exception."""


@dataclass(eq=False)
class Work:
    """
    One assignment. Its calls raise asyncio.CancelledError after the task was cancelled or the lease was lost; the
    handler's task is cancelled then.
    """

    #: The input, None where the delegator gave none.
    input: Json
    #: The task, with the fields of depute.tasks.v1.Task.
    task: dict[str, Any]
    #: The A2A message that began the task, with the fields of lf.a2a.v1.Message; None for a task that began otherwise.
    message: dict[str, Any] | None
    #: All A2A messages of the task, in order: the message that began it, and the messages that answered
    #: questions. After `ask`, the last message is the one with the answer, unless the delegator answered without
    #: A2A.
    messages: list[dict[str, Any]]
    #: The token to work under; empty where the delegator gave none.
    token: str
    #: The last checkpoint of an earlier attempt; None without one.
    saved: Json
    #: The shared contexts of the task, with their data.
    contexts: list[dict[str, Any]]
    #: The delegator's answers to questions of earlier attempts.
    answers: list[Json]
    #: Set when the delegator asks for an interruption; the next checkpoint interrupts the work.
    interrupting: asyncio.Event = field(repr=False)
    _desk: Desk = field(repr=False)

    @property
    def task_id(self) -> str:
        """The task's id."""
        return str(self.task["id"])

    async def progress(self, processed: int, total: int = 0, message: str = "") -> None:
        """Reports the progress of the work."""
        await self._desk.progress(processed, total, message)

    async def partial(self, output: Json, level: str = "compact") -> None:
        """Reports a preliminary result, of level `minimal`, `compact` or `full`."""
        await self._desk.partial(output, level)

    async def checkpoint(self, state: Json) -> None:
        """
        Saves the state from which another attempt can continue. Raises Interrupted if the delegator asked for an
        interruption. The method also works in the cleanup of cancelled work, as long as the lease lasts.
        """
        await self._desk.checkpoint(state)

    async def ask(
        self, prompt: str, details: Json | Absent = ABSENT, kind: QuestionKind = "input"
    ) -> Json:
        """
        Asks the delegator a question, and waits for the answer. A question of kind "authorization" asks for an
        authorization, and A2A clients see it as TASK_STATE_AUTH_REQUIRED (A2A 7.6). The work decides whether the
        answer authorizes it.
        """
        return await self._desk.ask(prompt, details, kind)


class Desk:
    """The methods of running work that call the platform."""

    async def progress(self, processed: int, total: int, message: str) -> None:
        raise NotImplementedError

    async def partial(self, output: Json, level: str) -> None:
        raise NotImplementedError

    async def checkpoint(self, state: Json) -> None:
        raise NotImplementedError

    async def ask(self, prompt: str, details: Json | Absent, kind: QuestionKind) -> Json:
        raise NotImplementedError


#: The function that does the work: a coroutine function from Work to an output.
Handler = Callable[[Work], Awaitable[Union[Json, Output]]]

__all__ = [
    "Handler",
    "Interrupted",
    "Output",
    "QuestionKind",
    "Work",
    "WorkFailure",
    "WorkSuspension",
]
