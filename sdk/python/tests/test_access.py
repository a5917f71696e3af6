"""Tests of a client's credentials and of its trust in servers."""

from __future__ import annotations

import asyncio
import hashlib
import json
import ssl
from pathlib import Path

import pytest
import trustme
from conftest import Proxy, agent_at, platform_at

import depute

SECRET = "secret-of-the-tests"


def test_a_secret_names_its_caller_where_credentials_are_required(tmp_path: Path) -> None:
    file = tmp_path / "credentials"
    digest = hashlib.sha256(SECRET.encode()).hexdigest()
    file.write_text(json.dumps([{"principal": "tester", "sha256": digest}]))
    file.chmod(0o600)

    async def test(url: str) -> None:
        async with depute.connect(url, credentials=SECRET) as client:
            assert (await client.tasks.list_tasks())["tasks"] == []
        for other in ({}, {"credentials": "another-secret"}):
            async with depute.connect(url, **other) as client:
                with pytest.raises(depute.DeputeError) as refused:
                    await client.tasks.list_tasks()
                assert depute.reason_of(refused.value) is depute.Reason.UNAUTHENTICATED
        # A caller with a key needs no entry in the credentials file.
        async with depute.connect(url, keypair=depute.Keypair.generate()) as client:
            assert (await client.tasks.list_tasks())["tasks"] == []

    with platform_at(tmp_path, "--auth", "required", "--credentials-file", str(file)) as url:
        asyncio.run(test(url))


def test_calls_and_streams_work_over_tls_and_a_stranger_s_certificate_is_refused(url: str) -> None:
    authority, stranger = trustme.CA(), trustme.CA()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(server)
    server.set_alpn_protocols(["h2"])

    async def test() -> None:
        async with Proxy(url).serve(server) as proxy:
            async with agent_at(url, proxy.address, tls=authority.cert_pem.bytes()) as agent:
                task = await agent.delegator.delegate(agent.id, "echo", {"text": "a"})
                await task.cancel()
                assert [event.type async for event in task.events()] == ["created", "cancelled"]
            with pytest.raises(depute.DeputeError, match="did not answer"):
                await depute.connect(proxy.address, tls=stranger.cert_pem.bytes(), connect_timeout=1)

    asyncio.run(test())


def test_a_proof_for_another_address_is_refused(url: str) -> None:
    async def test() -> None:
        key = depute.Keypair.generate()
        async with depute.connect(url, keypair=key, public_url="https://elsewhere.example") as client:
            with pytest.raises(depute.DeputeError) as refused:
                await client.tasks.list_tasks()
            assert depute.reason_of(refused.value) is depute.Reason.UNAUTHENTICATED
            assert refused.value.metadata["claim"] == "htu"

    asyncio.run(test())
