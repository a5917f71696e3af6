"""Credentials that identify the caller, for each attempt of a call."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc

from . import _contracts
from ._calls import Calls
from .errors import DeputeError, Reason
from .keys import Keypair
from .proofs import holder_headers
from .sessions import CallerSession, SessionRequest

_OPEN = "depute.tokens.v1.HolderSessionService/OpenHolderSession"
_ISSUER = "depute.tokens.v1.TokenService/GetIssuer"


class Open:
    """No credentials: for a platform that serves only callers on the same machine."""

    async def headers(self, path: str, token: str | None) -> dict[str, str]:
        return {}

    def renew(self, error: DeputeError) -> bool:
        return False


class Secret(Open):
    """Credentials that consist of a secret that the platform knows."""

    def __init__(self, secret: str) -> None:
        self._secret = secret

    async def headers(self, path: str, token: str | None) -> dict[str, str]:
        return {"authorization": f"Bearer {self._secret}"}


class Proofs(Open):
    """Credentials that consist of a key. Each attempt carries a new holder proof."""

    def __init__(self, keypair: Keypair, public_url: str) -> None:
        self._keypair = keypair
        self._public_url = public_url

    async def headers(self, path: str, token: str | None) -> dict[str, str]:
        return holder_headers(self._keypair, self._public_url, path, token=token)


class Sessions(Proofs):
    """
    Credentials that consist of a key, with holder sessions. Each token has its own session, and each attempt
    carries an authentication code.
    """

    def __init__(self, keypair: Keypair, public_url: str, calls: Calls) -> None:
        super().__init__(keypair, public_url)
        # The calls that open a session carry their own proof.
        self._calls = Calls(calls.channel, Open(), calls.timeout, calls.retry_for)
        self._sessions: dict[str | None, CallerSession] = {}
        self._opening = asyncio.Lock()

    async def headers(self, path: str, token: str | None) -> dict[str, str]:
        async with self._opening:
            session = self._sessions.get(token)
            if session is None or session.is_expiring():
                session = await self._open(token)
                self._sessions[token] = session
        proof = session.prove(htm="POST", htu=f"{self._public_url}{path}")
        return {"dpop": proof} if token is None else {"dpop": proof, "authorization": f"DPoP {token}"}

    def renew(self, error: DeputeError) -> bool:
        """
        Whether the call may succeed with a new session. After a denial, drops all sessions, because a restart of the
        platform may have lost them.
        """
        is_denied = error.reason in (Reason.UNAUTHENTICATED, Reason.TOKEN_DENIED)
        if is_denied and self._sessions:
            self._sessions.clear()
            return True
        return False

    async def _open(self, token: str | None) -> CallerSession:
        issuer = _contracts.method(_ISSUER)
        verifier = (await self._calls.unary(issuer, issuer.request())).principal
        method = _contracts.method(_OPEN)
        asked = SessionRequest(
            self._keypair,
            audience=self._public_url,
            htm="POST",
            htu=f"{self._public_url}{method.path}",
            token=token,
        )
        request: Any = method.request(proof=asked.proof, audience=self._public_url)
        if token is not None:
            request.token.token = token
            request.token.format = "delegateos-sjt-v1"
        # A proof opens one session, so this attempt is not repeated.
        answer = await self._calls.unary(method, request, retry_for=0)
        if answer.WhichOneof("result") != "grant":
            raise DeputeError(
                f"the platform opened no holder session: {answer.denial.detail}",
                grpc.StatusCode.UNAUTHENTICATED,
                reason_name="UNAUTHENTICATED",
            )
        return asked.accept_message(answer.grant, verifier=verifier)
