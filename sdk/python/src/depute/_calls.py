"""Calls over one gRPC channel: a new proof for each attempt, and a retry where the connection was lost."""

from __future__ import annotations

import asyncio
import random
import uuid
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, AsyncGenerator, AsyncIterator, Protocol

import grpc

from ._contracts import Method
from .errors import DeputeError, error_of

#: Seconds before the first retry. Each further wait is twice as long, up to LONGEST_BACKOFF.
FIRST_BACKOFF = 0.1
LONGEST_BACKOFF = 5.0

#: Timeout of one attempt in seconds. The platform has the same default.
DEFAULT_TIMEOUT = 30.0

#: Seconds for which a call is repeated after the connection was lost.
DEFAULT_RETRY_FOR = 60.0

_MESSAGE_BYTES = 16 * 1024 * 1024

OPTIONS: list[tuple[str, Any]] = [
    # A proof is valid once. A transport that sends a call again would send the used proof.
    ("grpc.enable_retries", 0),
    ("grpc.max_receive_message_length", _MESSAGE_BYTES),
    ("grpc.max_send_message_length", _MESSAGE_BYTES),
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2_000),
]

#: Codes by which gRPC reports a connection that broke, if the platform did not answer itself.
_BROKEN = {
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.UNKNOWN,
    grpc.StatusCode.CANCELLED,
}


class Credentials(Protocol):
    """Makes the headers of each attempt."""

    async def headers(self, path: str, token: str | None) -> dict[str, str]: ...

    def renew(self, error: DeputeError) -> bool:
        """Whether another attempt with new credentials may succeed after this error."""
        ...


def is_lost(error: DeputeError) -> bool:
    """Whether the platform was unreachable or is about to stop, so that the same call may succeed later."""
    if error.is_answered:
        return bool(error.code == grpc.StatusCode.UNAVAILABLE)
    return error.code in _BROKEN


class Backoff:
    """The waits between attempts. The limit of a wait doubles up to `longest`; a wait takes 50 to 100 % of it."""

    def __init__(self, longest: float = LONGEST_BACKOFF) -> None:
        self._next = FIRST_BACKOFF
        self._longest = longest

    def reset(self) -> None:
        self._next = FIRST_BACKOFF

    async def wait(self) -> None:
        # Spread, so that many callers do not return at one time.
        delay = self._next * random.uniform(0.5, 1.0)
        self._next = min(self._next * 2, self._longest)
        await asyncio.sleep(delay)


@dataclass
class Calls:
    """Makes calls over one gRPC channel."""

    channel: grpc.aio.Channel
    credentials: Credentials
    timeout: float = DEFAULT_TIMEOUT
    retry_for: float = DEFAULT_RETRY_FOR

    async def unary(
        self,
        method: Method,
        request: Any,
        *,
        token: str | None = None,
        timeout: float | None = None,
        retry_for: float | None = None,
    ) -> Any:
        """
        Makes a call, and repeats it while the platform is unreachable. The platform recognizes every repeated
        call by its request id or by the state of the changed object.

        :param timeout: seconds of one attempt
        :param retry_for: seconds after which no further attempt begins
        """
        set_request_ids(request)
        clock = asyncio.get_running_loop().time
        until = clock() + (self.retry_for if retry_for is None else retry_for)
        backoff = Backoff()
        renewed = False
        while True:
            try:
                return await self._attempt(method, request, token, timeout)
            except DeputeError as error:
                if not renewed and self.credentials.renew(error):
                    renewed = True
                    continue
                if not is_lost(error) or clock() >= until:
                    raise
            await backoff.wait()

    async def _attempt(self, method: Method, request: Any, token: str | None, timeout: float | None) -> Any:
        headers = await self.credentials.headers(method.path, token)
        call = self.channel.unary_unary(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.response.FromString,
        )
        try:
            return await call(request, timeout=timeout or self.timeout, metadata=tuple(headers.items()))
        except grpc.aio.AioRpcError as error:
            raise error_of(error) from None
        except grpc.aio.UsageError as error:
            raise DeputeError(str(error), grpc.StatusCode.CANCELLED, reason_name="CLOSED") from None

    async def stream(self, method: Method, request: Any, *, token: str | None = None) -> AsyncIterator[Any]:
        """
        Yields the responses of one stream, without a retry. If the platform refuses a lost holder session before
        the first response, opens the stream again with a new session. Raises DeputeError.
        """
        set_request_ids(request)
        has_begun = False
        try:
            async with aclosing(self._open(method, request, token)) as answers:
                async for answer in answers:
                    has_begun = True
                    yield answer
            return
        except DeputeError as error:
            if has_begun or not self.credentials.renew(error):
                raise
        async with aclosing(self._open(method, request, token)) as answers:
            async for answer in answers:
                yield answer

    async def _open(self, method: Method, request: Any, token: str | None) -> AsyncGenerator[Any, None]:
        headers = await self.credentials.headers(method.path, token)
        call = self.channel.unary_stream(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.response.FromString,
        )(request, metadata=tuple(headers.items()))
        try:
            async for answer in call:
                yield answer
        except grpc.aio.AioRpcError as error:
            raise error_of(error) from None
        finally:
            call.cancel()


def new_request_id() -> str:
    """A request id that no other call has."""
    return str(uuid.uuid4())


def set_request_ids(request: Any) -> None:
    """Sets the empty request ids of a request and of nested requests once, so that all attempts have the same ids."""
    fields = request.DESCRIPTOR.fields_by_name
    if "request_id" in fields and request.request_id == "":
        request.request_id = new_request_id()
    if "requests" in fields:
        for one in request.requests:
            set_request_ids(one)
