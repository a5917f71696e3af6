"""A worker: takes the assignments of an agent, and runs a handler for each."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import uuid
from typing import Any, Callable, Sequence

from . import _contracts
from ._calls import Backoff
from ._run import Run, Stop
from .client import Client
from .errors import DeputeError
from .work import Handler

_SERVICE = "depute.tasks.v1.WorkerService"

#: Seconds for an orderly end of the stream of assignments.
_LEAVE = 2.0
#: Seconds for which the worker waits for work that suppresses its cancellation.
_ABANDON = 10.0

#: Heartbeats of the agent at the registry in the duration of its lease, so that one lost call does not end the lease.
_BEATS_PER_LEASE = 3
#: Maximum seconds between two heartbeats of the agent.
_AGENT_BEAT = 10.0

_log = logging.getLogger("depute.worker")


class Worker:
    """
    Runs a handler for each assignment of an agent:

        async def handle(work: depute.Work) -> depute.Json:
            return {"length": len(work.input)}

        async with depute.Worker(client, "summarizer", handle, capacity=4) as worker:
            await worker.run()

    The client's keypair has to be the agent's principal. At the end of the block, or by close, the worker takes no new
    work, waits for running work, and returns the rest to the queue.
    """

    def __init__(
        self,
        client: Client,
        agent_id: str,
        handle: Handler,
        *,
        capacity: int = 1,
        name: str | None = None,
        capabilities: Sequence[str] = (),
        grace: float = 10.0,
        agent_heartbeat: bool = True,
        attest: bool = True,
        on_error: Callable[[Exception], None] | None = None,
    ) -> None:
        """
        :param capacity: maximum number of concurrent assignments, 1 to 1,000
        :param name: a name of this process, for people
        :param capabilities: take only work of these capabilities
        :param grace: seconds for which running work may continue when the worker stops
        :param agent_heartbeat: extend the agent's lease at the registry as well
        :param attest: sign and record an attestation of each result under a contract, with the client's key
        :param on_error: receives errors after which the worker tries again, and errors of calls that report the
            end of work
        """
        self._client = client
        self._agent_id = agent_id
        self._handle = handle
        self._capacity = capacity
        self._name = name or f"{socket.gethostname()} {os.getpid()}"
        self._capabilities = list(capabilities)
        self._grace = grace
        self._agent_heartbeat = agent_heartbeat
        self._attester = client.keypair if attest else None
        self._on_error = on_error or (lambda error: _log.warning("%s", error))
        self._runs: dict[asyncio.Task[None], Run] = {}
        self._stream_id = ""
        self._leaving = asyncio.Event()
        self._ended = asyncio.Event()
        self._closing = False
        self._loop: asyncio.Task[None] | None = None
        self._beat: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to take work, in the background."""
        if self._loop is None:
            self._loop = asyncio.create_task(self._take())
            if self._agent_heartbeat:
                self._beat = asyncio.create_task(self._keep_agent())

    async def run(self, *, signals: bool = True) -> None:
        """
        Takes work until close is called, the process receives SIGTERM or SIGINT, or the calling task is cancelled. The
        worker then drains.

        :param signals: handle these signals, where this is the main thread
        """
        self.start()
        handled = self._handle_signals() if signals else []
        try:
            await self._leaving.wait()
            await self.close()
        except asyncio.CancelledError:
            await self.close()
            raise
        finally:
            for number in handled:
                asyncio.get_running_loop().remove_signal_handler(number)

    def _handle_signals(self) -> list[int]:
        handled = []
        for number in (signal.SIGTERM, signal.SIGINT):
            # Windows, and other threads than the main one, have no signal handlers.
            with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):
                asyncio.get_running_loop().add_signal_handler(number, self._leaving.set)
                handled.append(int(number))
        return handled

    async def close(self, grace: float | None = None) -> None:
        """Takes no new work, waits at most `grace` seconds for running work, and returns the rest to the queue."""
        if self._loop is None:
            return
        self._leaving.set()
        if self._closing:
            await self._ended.wait()
            return
        self._closing = True
        await self._leave()
        if self._runs:
            await asyncio.wait(set(self._runs), timeout=self._grace if grace is None else grace)
        for run in list(self._runs.values()):
            run.stop(Stop.RELEASED)
        if self._runs:
            # Work that suppresses its cancellation must not keep the process alive.
            await asyncio.wait(set(self._runs), timeout=_ABANDON)
        if self._beat is not None:
            self._beat.cancel()
            await asyncio.gather(self._beat, return_exceptions=True)
        self._ended.set()

    async def __aenter__(self) -> Worker:
        self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _leave(self) -> None:
        """Ends the stream in an orderly way if possible, so that no assignment in transit is lost."""
        assert self._loop is not None
        method = _contracts.method(f"{_SERVICE}/EndAssignments")
        until = asyncio.get_running_loop().time() + _LEAVE
        while not self._loop.done() and asyncio.get_running_loop().time() < until:
            if self._stream_id != "":
                # A stream that is still opening cannot be ended yet.
                request = method.request(agent_id=self._agent_id, stream_id=self._stream_id)
                try:
                    await self._client._calls.unary(method, request, timeout=_LEAVE, retry_for=0)
                except DeputeError:
                    break
            await asyncio.wait([self._loop], timeout=0.1)
        self._loop.cancel()
        await asyncio.gather(self._loop, return_exceptions=True)

    async def _take(self) -> None:
        """The stream of assignments. The worker opens the stream again whenever it ends."""
        backoff = Backoff()
        while not self._leaving.is_set():
            try:
                await self._follow(backoff.reset)
            except DeputeError as error:
                if not self._leaving.is_set():
                    self._client._calls.credentials.renew(error)
                    self._on_error(error)
            finally:
                self._stream_id = ""
            if self._leaving.is_set():
                return
            waiting = asyncio.create_task(self._leaving.wait())
            pause = asyncio.create_task(backoff.wait())
            await asyncio.wait([waiting, pause], return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            pause.cancel()

    async def _follow(self, on_work: Callable[[], None]) -> None:
        method = _contracts.method(f"{_SERVICE}/WatchAssignments")
        self._stream_id = str(uuid.uuid4())
        request = method.request(
            agent_id=self._agent_id,
            worker=self._name,
            capacity=self._capacity,
            capability_ids=self._capabilities,
            begin=True,
            stream_id=self._stream_id,
        )
        async for answer in self._client._calls.stream(method, request):
            on_work()
            if answer.HasField("assignment") and answer.assignment.HasField("lease"):
                self._begin(answer.assignment)

    def _begin(self, assignment: Any) -> None:
        run = Run(self._client._calls, self._handle, assignment, self._attester)
        if self._leaving.is_set():
            # Work that arrives while the worker stops is returned at once.
            run.stop(Stop.RELEASED)
        task = asyncio.create_task(self._carry_out(run))
        self._runs[task] = run
        task.add_done_callback(lambda done: self._runs.pop(done, None))

    async def _carry_out(self, run: Run) -> None:
        try:
            await run.carry_out()
        except DeputeError as error:
            self._on_error(error)

    async def _keep_agent(self) -> None:
        wait = _AGENT_BEAT
        while True:
            try:
                answer = await self._client.call(
                    "depute.registry.v1.AgentService/HeartbeatAgent",
                    {"agent_id": self._agent_id},
                    retry_for=0,
                )
                lease = answer["agent"].get("lease_duration")
                wait = min(_AGENT_BEAT, lease.total_seconds() / _BEATS_PER_LEASE) if lease else _AGENT_BEAT
            except DeputeError as error:
                self._on_error(error)
            await asyncio.sleep(wait)
