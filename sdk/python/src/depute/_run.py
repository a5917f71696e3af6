"""Runs one assignment: starts the task, extends the lease, and reports the outcome of the work."""

from __future__ import annotations

import asyncio
import enum
import time
from typing import Any, Awaitable

import grpc

from . import _contracts
from ._calls import Backoff, Calls, is_lost, new_request_id
from .errors import DeputeError, Reason
from .keys import Keypair
from .objects import sign_attestation
from .values import Absent, Json, fill, from_message, plain_value
from .work import Desk, Handler, Interrupted, Output, QuestionKind, Work, WorkFailure, WorkSuspension

_SERVICE = "depute.tasks.v1.WorkerService"
_ATTEST = "depute.verifier.v1.AttestationService/RecordAttestation"

#: Seconds between heartbeats, for an assignment without an interval.
_DEFAULT_BEAT = 10.0
#: Maximum seconds that the server may hold a heartbeat.
_LONGEST_BEAT = 20.0
#: Seconds before the first heartbeat. Shorter work needs no heartbeat.
_FIRST_BEAT = 0.05
#: Seconds that an open heartbeat may take after the work is done.
_LAST_BEAT = 1.0

#: Seconds before a pending review is checked again. Each further wait is twice as long, up to
#: _LONGEST_REVIEW.
_FIRST_REVIEW = 0.5
_LONGEST_REVIEW = 60.0

#: Codes of errors that end the lease: another worker has the task, the task has ended, or the work is not allowed.
_ENDS_LEASE = {
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.PERMISSION_DENIED,
}

_RUNNING = 3
_STOP, _SUSPEND, _CANCEL = 2, 3, 4


class Stop(enum.Enum):
    """The reasons for cancelling running work."""

    #: The lease is lost, or the task has ended: the platform accepts no further calls.
    LOST = "lost"
    #: The delegator cancels the task with a grace period. The worker then releases the task.
    CALLED_OFF = "called off"
    #: The worker stops, and releases the task to the queue.
    RELEASED = "released"


class Run(Desk):
    """Runs one assignment."""

    def __init__(
        self, calls: Calls, handler: Handler, assignment: Any, attester: Keypair | None = None
    ) -> None:
        self._calls = calls
        self._attester = attester
        self._handler = handler
        self._assignment = assignment
        self._lease = assignment.lease
        self._answers: list[Json] = [plain_value(one) for one in assignment.provided_inputs]
        #: The work has a reference to this list, so messages are only added.
        self._messages: list[dict[str, Any]] = [from_message(one.message) for one in assignment.provided_messages]
        if assignment.HasField("message"):
            self._messages.insert(0, from_message(assignment.message))
        self._answered = asyncio.Event()
        self._interrupting = asyncio.Event()
        self._stopped: Stop | None = None
        self._over = asyncio.Event()
        self._main: asyncio.Task[None] | None = None
        #: Start of the latest heartbeat that was answered, by the loop's clock.
        self._held_since = 0.0

    def stop(self, why: Stop) -> None:
        """Cancels the work. Only the reason of the first call counts."""
        if self._stopped is not None or self._over.is_set():
            return
        self._stopped = why
        if self._main is not None:
            self._main.cancel()

    async def carry_out(self) -> None:
        """Runs the assignment to its end. Raises DeputeError if the platform did not accept the report of the end."""
        if self._stopped is not None:
            await self._call("ReleaseAssignment")
            return
        self._main = asyncio.create_task(self._work())
        self._held_since = asyncio.get_running_loop().time()
        beat = asyncio.gather(self._beat(), self._watch_lease())
        try:
            await asyncio.shield(self._main)
        except asyncio.CancelledError:
            if self._stopped is None:
                # The worker's own task is cancelled, and no drain was requested.
                self._main.cancel()
                raise
            if self._stopped is not Stop.LOST:
                await self._call("ReleaseAssignment")
        except Interrupted:
            await self._persistently("SuspendAssignment")
        except WorkSuspension as suspension:
            more = {} if isinstance(suspension.checkpoint, Absent) else {"checkpoint": suspension.checkpoint}
            await self._persistently("SuspendAssignment", reason=str(suspension)[:1000], **more)
        except DeputeError as error:
            if self._stopped is not Stop.LOST:
                await self._fail(error)
        except Exception as error:
            await self._fail(error)
        finally:
            self._over.set()
            await self._finish(beat)

    async def _finish(self, beat: asyncio.Future[Any]) -> None:
        # The server answers an open heartbeat when the task ends, so the heartbeat normally ends by itself.
        await asyncio.wait([beat], timeout=_LAST_BEAT)
        beat.cancel()
        await asyncio.gather(beat, return_exceptions=True)

    async def _fail(self, error: Exception) -> None:
        known = isinstance(error, WorkFailure)
        failure = {
            "reason": error.reason if isinstance(error, WorkFailure) else "WORKER_ERROR",
            "message": (str(error) or type(error).__name__)[:2000],
            "retryable": error.retryable if isinstance(error, WorkFailure) else not known,
        }
        await self._persistently("FailAssignment", failure=failure)

    async def _work(self) -> None:
        if self._assignment.task.status != _RUNNING:
            await self._persistently("StartAssignment")
        began = time.monotonic()
        work = self._context()
        result = await self._handler(work)
        # Work that ignored its cancellation has no result.
        self._check()
        output = result if isinstance(result, Output) else Output(result)
        if self._attester is not None and work.task["contract_id"] and not output.attestation_id:
            duration_ms = int(1000 * (time.monotonic() - began))
            output.attestation_id = await self._attest(self._attester, work, output, duration_ms)
        await self._complete(output)

    async def _attest(self, attester: Keypair, work: Work, output: Output, duration_ms: int) -> str:
        """Signs and records an attestation that the work produced the output."""
        attestation = sign_attestation(
            attester,
            task=work.task,
            output=output.output,
            cost_microcents=output.cost_microcents,
            duration_ms=duration_ms,
        )
        method = _contracts.method(_ATTEST)
        request = method.request()
        fill(request, {"attestation": attestation})
        backoff = Backoff()
        while True:
            try:
                await self._calls.unary(method, request)
                return str(attestation["id"])
            except DeputeError as error:
                if not is_lost(error):
                    raise
            await backoff.wait()

    def _context(self) -> Work:
        assignment = self._assignment
        task = from_message(assignment.task)
        return Work(
            input=plain_value(assignment.task.input),
            task=task,
            message=from_message(assignment.message) if assignment.HasField("message") else None,
            messages=self._messages,
            token=assignment.worker_token,
            saved=plain_value(assignment.checkpoint),
            contexts=[from_message(one) for one in assignment.contexts],
            answers=list(self._answers),
            interrupting=self._interrupting,
            _desk=self,
        )

    async def _complete(self, result: Output) -> None:
        output: dict[str, Any] = {"full": result.output, "minimal": result.minimal}
        if not isinstance(result.compact, Absent):
            output["compact"] = result.compact
        usage = {"tokens_used": result.tokens_used, "cost_microcents": result.cost_microcents}
        wait = _FIRST_REVIEW
        while True:
            try:
                await self._persistently(
                    "CompleteAssignment",
                    output=output,
                    usage=usage,
                    attestation_id=result.attestation_id,
                    delivery=result.delivery,
                )
                return
            except DeputeError as error:
                if error.reason != Reason.REVIEW_PENDING:
                    raise
            # The heartbeat extends the lease during the review.
            await asyncio.sleep(wait)
            wait = min(wait * 2, _LONGEST_REVIEW)

    # The methods that the agent's work function calls while it runs.

    async def progress(self, processed: int, total: int, message: str) -> None:
        self._check()
        progress = {"processed": processed, "total": total, "message": message}
        await self._persistently("ReportProgress", progress=progress, request_id=new_request_id())

    async def partial(self, output: Json, level: str) -> None:
        self._check()
        await self._persistently(
            "ReportPartial", output=output, resolved_level=level, request_id=new_request_id()
        )

    async def checkpoint(self, state: Json) -> None:
        # Released work may still save a checkpoint for the next attempt.
        if self._stopped in (Stop.RELEASED, Stop.CALLED_OFF):
            await self._call("SaveCheckpoint", checkpoint=state)
            return
        self._check()
        await self._persistently("SaveCheckpoint", checkpoint=state)
        if self._interrupting.is_set():
            raise Interrupted

    async def ask(self, prompt: str, details: Json | Absent, kind: QuestionKind) -> Json:
        self._check()
        seen = len(self._answers)
        question: dict[str, Any] = {"prompt": prompt, "kind": kind}
        if not isinstance(details, Absent):
            question["details"] = details
        await self._persistently("RequestInput", question=question)
        while len(self._answers) == seen:
            self._answered.clear()
            await self._answered.wait()
        return self._answers[seen]

    def _check(self) -> None:
        if self._stopped is not None:
            raise asyncio.CancelledError

    # The calls that this run makes while it holds the lease.

    async def _persistently(self, method: str, **fields: Any) -> Any:
        """Makes a call, and repeats it while the platform is unreachable. A lost lease ends the repetition."""
        backoff = Backoff()
        while True:
            try:
                return await self._call(method, **fields)
            except DeputeError as error:
                if not is_lost(error) or self._stopped is Stop.LOST:
                    raise
            await backoff.wait()

    async def _call(self, name: str, timeout: float | None = None, **fields: Any) -> Any:
        method = _contracts.method(f"{_SERVICE}/{name}")
        request = method.request(lease=self._lease)
        fill(request, fields)
        try:
            answer = await self._calls.unary(method, request, timeout=timeout)
        except DeputeError as error:
            if error.code in _ENDS_LEASE:
                self.stop(Stop.LOST)
            raise
        self._heed(getattr(answer, "directive", 0))
        return answer

    def _heed(self, directive: int) -> None:
        if directive == _STOP:
            self.stop(Stop.LOST)
        elif directive == _CANCEL:
            self.stop(Stop.CALLED_OFF)
        elif directive == _SUSPEND:
            self._interrupting.set()

    # The heartbeat.

    async def _beat(self) -> None:
        """
        Extends the lease until the work is over. The server answers each heartbeat when it has an event for the
        worker, at the latest after the interval.
        """
        interval = self._assignment.heartbeat_interval
        beat = (
            interval.seconds + interval.nanos / 1e9 if self._assignment.HasField("heartbeat_interval") else 0
        )
        beat = min(beat or _DEFAULT_BEAT, _LONGEST_BEAT)
        clock = asyncio.get_running_loop().time
        await self._pause(min(_FIRST_BEAT, beat, self._lease_left() / 2))
        backoff = Backoff(longest=min(beat, 2.0))
        while not self._over.is_set() and self._stopped is not Stop.LOST:
            since = clock()
            seen = len(self._answers)
            try:
                answer = await self._call(
                    "HeartbeatAssignment", timeout=beat + 10, inputs_seen=seen, wait=beat
                )
            except DeputeError:
                await self._either(backoff.wait())
                continue
            backoff.reset()
            self._held_since = since
            if answer.provided_inputs and seen == len(self._answers):
                self._messages += [from_message(one.message) for one in answer.provided_messages]
                self._answers += [plain_value(one) for one in answer.provided_inputs]
                self._answered.set()
                continue
            # The server answers every heartbeat at once while a directive is open. So the worker waits until the next
            # heartbeat is due.
            await self._pause(beat - (clock() - since))

    async def _watch_lease(self) -> None:
        """
        Cancels the work if no heartbeat was answered for the duration of a lease, because another worker may then
        have the task. The local clock only measures durations.
        """
        limit = self._assignment.task.limits.heartbeat
        lease = limit.seconds + limit.nanos / 1e9
        if lease <= 0:
            return
        clock = asyncio.get_running_loop().time
        while not self._over.is_set() and self._stopped is None:
            left = self._held_since + lease - clock()
            if left <= 0:
                self.stop(Stop.LOST)
            await self._pause(left)

    def _lease_left(self) -> float:
        if not self._assignment.HasField("lease_expire_time"):
            return float("inf")
        end = self._assignment.lease_expire_time
        return max(0.0, float(end.seconds + end.nanos / 1e9) - time.time())

    async def _pause(self, seconds: float) -> None:
        if seconds > 0:
            await self._either(asyncio.sleep(seconds))

    async def _either(self, wait: Awaitable[None]) -> None:
        """Waits until `wait` is done, or the run is over."""
        tasks = [asyncio.ensure_future(wait), asyncio.ensure_future(self._over.wait())]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for one in tasks:
            one.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
