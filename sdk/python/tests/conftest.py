"""A real platform for the tests, and connections that can be cut."""

from __future__ import annotations

import asyncio
import re
import ssl
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import depute

ROOT = Path(__file__).resolve().parents[3]

#: Maximum seconds until the platform serves requests.
START = 60

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


@pytest.fixture(scope="session")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a platform that is started for the tests."""
    with platform_at(tmp_path_factory.mktemp("platform")) as address:
        yield address


@contextmanager
def platform_at(folder: Path, *settings: str) -> Iterator[str]:
    """Starts a platform whose data folder is below `folder`."""
    flags = ["--data-dir", str(folder / "data"), "--gateway-port", "0", "--log-level", "warn", *settings]
    node = ROOT / "node_modules" / ".bin" / "node"
    log = folder / "log"
    with log.open("wb") as out:
        platform = subprocess.Popen(
            [node, "cli/src/main.ts", "start", *flags], cwd=ROOT, stdout=out, stderr=out
        )
    try:
        yield wait_for_address(platform, log)
    finally:
        platform.terminate()
        platform.wait(30)


def wait_for_address(platform: subprocess.Popen[bytes], log: Path) -> str:
    until = time.monotonic() + START
    while time.monotonic() < until and platform.poll() is None:
        match = re.search(r"Depute is up at (\S+)", log.read_text())
        if match:
            return match[1]
        time.sleep(0.1)
    raise RuntimeError(f"the platform did not start:\n{log.read_text()}")


@dataclass
class Agent:
    """A registered agent, and the connections of its delegator and its worker."""

    id: str
    key: depute.Keypair
    worker: depute.Client
    delegator: depute.Client


@asynccontextmanager
async def agent_at(url: str, target: str | None = None, **options: Any) -> AsyncIterator[Agent]:
    """
    An agent with the capability `echo`. `target` is the address of the connections if it is not the
    platform's own.
    """
    key, other = depute.Keypair.generate(), depute.Keypair.generate()
    name = f"py-{re.sub('[^A-Za-z0-9]', '', key.principal)[:12]}"
    options = {"public_url": url, **options}
    async with (
        depute.connect(target or url, keypair=key, **options) as worker,
        depute.connect(target or url, keypair=other, **options) as delegator,
    ):
        echo = {"id": "echo", "cat": "test", "desc": "Returns its input.", "input": TEXT, "output": True}
        await worker.register(name, capabilities=[echo], description="For tests.")
        yield Agent(name, key, worker, delegator)


@dataclass
class Proxy:
    """Forwards TCP connections to the platform, and cuts them on demand."""

    target: str
    address: str = ""
    cuts: int = 0
    #: Whether new connections are refused.
    is_down: bool = False
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)

    @asynccontextmanager
    async def serve(self, tls: ssl.SSLContext | None = None) -> AsyncIterator[Proxy]:
        server = await asyncio.start_server(self._forward, "127.0.0.1", 0, ssl=tls)
        port = server.sockets[0].getsockname()[1]
        self.address = f"https://localhost:{port}" if tls else f"http://127.0.0.1:{port}"
        try:
            yield self
        finally:
            server.close()
            self.cut()

    def cut(self) -> None:
        """Aborts all connections, without a regular close."""
        self.cuts += 1
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_down:
            writer.transport.abort()
            return
        host, port = self.target.removeprefix("http://").split(":")
        there_reader, there_writer = await asyncio.open_connection(host, int(port))
        self._writers |= {writer, there_writer}
        await asyncio.gather(pump(reader, there_writer), pump(there_reader, writer))


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.transport.abort()
