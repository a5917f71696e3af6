"""The connection to a platform."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from types import TracebackType
from typing import Any, AsyncIterator, Awaitable, Generator, Mapping, Sequence, Union
from urllib.parse import urlsplit

import grpc

from . import _contracts, _credentials
from ._calls import DEFAULT_RETRY_FOR, DEFAULT_TIMEOUT, OPTIONS, Calls
from .errors import DeputeError
from .keys import Keypair
from .objects import sign_contract, sign_revocation
from .task import Task, draft_of
from .tokens import Token
from .values import ABSENT, Absent, Json, from_message, to_message

#: TLS: True for the system's authorities, PEM bytes of other authorities, or credentials of grpc.
Tls = Union[bool, bytes, grpc.ChannelCredentials]

#: Maximum seconds until the first connection is open.
CONNECT_TIMEOUT = 10.0

#: The methods that a token authorizes. All other methods only need to know the caller.
_WITH_TOKEN = frozenset(
    {
        "/depute.tasks.v1.TaskService/CreateTask",
        "/depute.tasks.v1.TaskService/BatchCreateTasks",
        "/depute.tasks.v1.TaskService/DelegateTask",
        "/depute.tasks.v1.ExecutionService/RequestExecution",
    }
)

_ANY_VALUE = {"input": True, "output": True}

_SERVICES = {
    "agents": "depute.registry.v1.AgentService",
    "authorities": "depute.registry.v1.AuthorityService",
    "discovery": "depute.registry.v1.DiscoveryService",
    "organizations": "depute.registry.v1.OrganizationService",
    "policy": "depute.registry.v1.PolicyService",
    "offers": "depute.registry.v1.OfferService",
    "proposals": "depute.registry.v1.ProposalService",
    "trust": "depute.registry.v1.TrustService",
    "tasks": "depute.tasks.v1.TaskService",
    "workers": "depute.tasks.v1.WorkerService",
    "contexts": "depute.tasks.v1.ContextService",
    "artifacts": "depute.tasks.v1.ArtifactService",
    "asp_sessions": "depute.tasks.v1.SessionService",
    "messages": "depute.tasks.v1.MessageService",
    "executions": "depute.tasks.v1.ExecutionService",
    "tokens": "depute.tokens.v1.TokenService",
    "revocations": "depute.tokens.v1.RevocationService",
    "audit": "depute.tokens.v1.AuditService",
    "spend": "depute.tokens.v1.SpendService",
    "delegations": "depute.tokens.v1.DelegationService",
    "kept_keys": "depute.tokens.v1.KeyService",
    "root_keys": "depute.tokens.v1.RootKeyService",
    "proof_sessions": "depute.tokens.v1.HolderSessionService",
    "contracts": "depute.verifier.v1.ContractService",
    "verification": "depute.verifier.v1.VerificationService",
    "attestations": "depute.verifier.v1.AttestationService",
    "log": "depute.verifier.v1.LogService",
    "reviews": "depute.verifier.v1.ReviewService",
    "results": "depute.verifier.v1.ResultService",
    "witness": "depute.verifier.v1.WitnessService",
    "delegateos": "depute.gateway.v1.DelegateosService",
}


class Service:
    """
    One service of the platform. Call its methods by their names in snake case, with the fields of the
    request: `await client.agents.get_agent(agent_id="summarizer")`. The response is a dict. A method that
    streams returns an asynchronous iterator of dicts.
    """

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._name = name

    def __getattr__(self, name: str) -> Any:
        words = "".join(word.capitalize() for word in name.split("_"))
        if words not in _contracts.method_names(self._name):
            raise AttributeError(f"{self._name} has no method {words}")
        full_name = f"{self._name}/{words}"
        if _contracts.method(full_name).streams:
            return lambda **request: self._client.stream(full_name, request)
        return lambda **request: self._client.call(full_name, request)


class Client:
    """A connection to a platform. Create it with connect."""

    agents: Service
    authorities: Service
    discovery: Service
    organizations: Service
    policy: Service
    offers: Service
    proposals: Service
    trust: Service
    tasks: Service
    workers: Service
    contexts: Service
    artifacts: Service
    asp_sessions: Service
    messages: Service
    executions: Service
    tokens: Service
    revocations: Service
    audit: Service
    spend: Service
    delegations: Service
    kept_keys: Service
    proof_sessions: Service
    contracts: Service
    verification: Service
    attestations: Service
    log: Service
    reviews: Service
    results: Service
    witness: Service
    delegateos: Service

    def __init__(self, calls: Calls, keypair: Keypair | None, token: str | None) -> None:
        self._calls = calls
        self.keypair = keypair
        #: The token under which tasks are created.
        self.token = token
        for attribute, name in _SERVICES.items():
            setattr(self, attribute, Service(self, name))

    async def call(
        self,
        method: str,
        request: Mapping[str, Any] | None = None,
        *,
        token: str | None = None,
        timeout: float | None = None,
        retry_for: float | None = None,
    ) -> dict[str, Any]:
        """
        Makes a unary call, by `package.Service/Method`, with the fields of its request. An empty `request_id` is set.

        :param token: the token to present; by default the client's own where a token authorizes the call
        :raises DeputeError: the platform refused the call, or did not answer it in `retry_for` seconds
        """
        known = _contracts.method(method)
        message = to_message(known.input.full_name, request or {})
        answer = await self._calls.unary(
            known,
            message,
            token=token or self._token_for(known),
            timeout=timeout,
            retry_for=retry_for,
        )
        value: dict[str, Any] = from_message(answer)
        return value

    async def stream(
        self, method: str, request: Mapping[str, Any] | None = None, *, token: str | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        """
        Yields the responses of one streaming call. A broken stream is not resumed; only Task.events resumes its
        stream.
        """
        known = _contracts.method(method)
        message = to_message(known.input.full_name, request or {})
        async for answer in self._calls.stream(known, message, token=token or self._token_for(known)):
            yield from_message(answer)

    def _token_for(self, method: _contracts.Method) -> str | None:
        return self.token if method.path in _WITH_TOKEN else None

    async def delegate(
        self,
        agent: str,
        capability: str = "",
        input: Json | Absent = ABSENT,
        *,
        description: str = "",
        token: Token | str | None = None,
        worker_token: Token | str | None = None,
        contract_id: str = "",
        external_id: str = "",
        priority: int = 0,
        parent: Task | str = "",
        max_tokens: int | None = None,
        detail_level: str = "compact",
        spend: Mapping[str, int] | None = None,
        limits: Mapping[str, timedelta | float] | None = None,
        retry: Mapping[str, Any] | None = None,
        context_ids: Sequence[str] = (),
        **more: Any,
    ) -> Task:
        """
        Creates a task for an agent.

        :param agent: the agent's id; may be empty if the capability determines the agent
        :param capability: the id of the requested capability; empty for free work, which only `description` describes
        :param input: a JSON value
        :param token: the token to delegate under, by default the client's
        :param worker_token: the token that the agent works under, already attenuated for the agent
        :param max_tokens: the token budget of the result, with `detail_level`
        :param spend: `max_tokens` and `max_cost_microcents` of the work and all work below it
        :param limits: `total`, `queue`, `attempt`, `heartbeat` as timedelta or seconds
        :param more: further fields of depute.tasks.v1.TaskDraft
        :raises DeputeError: the platform refused the task
        """
        draft = draft_of(
            agent_id=agent,
            capability_id=capability,
            description=description,
            worker_token=None if worker_token is None else str(worker_token),
            contract_id=contract_id,
            external_id=external_id,
            priority=priority,
            parent_task_id=parent.id if isinstance(parent, Task) else parent,
            spend=spend,
            limits=limits,
            retry=retry,
            context_ids=list(context_ids),
            **more,
        )
        if not isinstance(input, Absent):
            draft["input"] = input
        if max_tokens is not None:
            draft["budget"] = {"max_tokens": max_tokens, "detail_level": detail_level}
        answer = await self.call(
            "depute.tasks.v1.TaskService/CreateTask",
            {"draft": draft},
            token=None if token is None else str(token),
        )
        return Task(self, answer["task"]["id"])

    async def register(
        self, agent_id: str, *, capabilities: Sequence[Mapping[str, Any]] = (), **agent: Any
    ) -> dict[str, Any]:
        """
        Registers an agent under this client's key, and publishes the agent's capabilities.

        :param capabilities: documents of NEKTE: `id`, `cat`, `desc`, `cost`, `input` and `output` (JSON Schemas;
            any value by default)
        :param agent: further fields of depute.registry.v1.Agent, such as `display_name`, `description`, `version`
        :returns: the agent
        """
        principal = self.keypair.principal if self.keypair else ""
        described = {"id": agent_id, "principal": principal, "lease_duration": 30, **agent}
        answer = await self.call("depute.registry.v1.AgentService/RegisterAgent", {"agent": described})
        if capabilities:
            await self.call(
                "depute.registry.v1.AgentService/PublishCapabilities",
                {"agent_id": agent_id, "capabilities": [{**_ANY_VALUE, **one} for one in capabilities]},
            )
        registered: dict[str, Any] = answer["agent"]
        return registered

    async def create_contract(
        self, title: str, verification: Mapping[str, Any], *, max_budget_microcents: int, **more: Any
    ) -> dict[str, Any]:
        """Signs a contract with this client's key and records the contract. See sign_contract."""
        contract = sign_contract(
            self._key(),
            title=title,
            verification=verification,
            max_budget_microcents=max_budget_microcents,
            **more,
        )
        await self.call("depute.verifier.v1.ContractService/CreateContract", {"contract": contract})
        return contract

    async def mint(
        self,
        delegatee: str,
        capabilities: Sequence[Mapping[str, str]],
        *,
        contract_id: str,
        max_budget_microcents: int,
        max_chain_depth: int = 1,
        lifetime: timedelta | float = 3600,
    ) -> Token:
        """
        Requests a token that the platform's root grants to a delegatee. The caller must be allowed to mint
        tokens.
        """
        answer = await self.call(
            "depute.tokens.v1.TokenService/MintToken",
            {
                "delegatee": delegatee,
                "capabilities": list(capabilities),
                "contract_id": contract_id,
                "max_budget_microcents": max_budget_microcents,
                "max_chain_depth": max_chain_depth,
                "lifetime": lifetime,
            },
        )
        return Token.parse(answer["token"])

    async def revoke(self, token: Token, scope: str = "chain") -> int:
        """
        Revokes the last block of a token with this client's key, and with it every token that contains the block.

        :returns: the place of the revocation in the platform's log
        """
        entry = sign_revocation(self._key(), token.revocation_id, scope)
        document = {"token": token.text, "format": token.document["format"]}
        answer = await self.call(
            "depute.tokens.v1.RevocationService/RevokeToken", {"entry": entry, "token": document}
        )
        return int(answer["revocation"]["sequence"])

    def _key(self) -> Keypair:
        if self.keypair is None:
            raise ValueError("this call signs with a key; give connect a keypair")
        return self.keypair

    def task(self, task_id: str) -> Task:
        """The handle of an existing task."""
        return Task(self, task_id)

    async def close(self) -> None:
        """Closes the connection. Open streams end."""
        await self._calls.channel.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class Connecting(Awaitable[Client], AbstractAsyncContextManager[Client]):
    """The result of connect. `await` returns the client; `async with` also closes the client at the end."""

    def __init__(self, client: Client, timeout: float) -> None:
        self._client = client
        self._timeout = timeout

    def __await__(self) -> Generator[Any, None, Client]:
        return self._open().__await__()

    async def __aenter__(self) -> Client:
        return await self._open()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._client.close()

    async def _open(self) -> Client:
        try:
            await asyncio.wait_for(self._client._calls.channel.channel_ready(), self._timeout)
        except asyncio.TimeoutError:
            await self._client.close()
            raise DeputeError(
                "the platform did not answer; check the address, and that it runs",
                grpc.StatusCode.UNAVAILABLE,
            ) from None
        return self._client


def connect(
    target: str = "http://127.0.0.1:8080",
    *,
    credentials: str | None = None,
    token: Token | str | None = None,
    keypair: Keypair | None = None,
    tls: Tls | None = None,
    public_url: str | None = None,
    session: bool = False,
    timeout: float = DEFAULT_TIMEOUT,
    retry_for: float = DEFAULT_RETRY_FOR,
    connect_timeout: float = CONNECT_TIMEOUT,
) -> Connecting:
    """
    Connects to a platform: `client = await connect(...)`, or `async with connect(...) as client:`.

    With a keypair, each attempt of each call carries a new holder proof. With `token` as well, tasks are created under
    the token, whose last delegatee has to be the keypair's principal.

    :param target: the platform's address, `http://host:port`, `https://host` or `host:port`
    :param credentials: a secret that the platform knows, for callers without a key
    :param tls: TLS with other authorities than the system's; https alone uses these
    :param public_url: the address that proofs name, if clients reach the platform under another one (DEPUTE_PUBLIC_URL)
    :param session: use holder sessions: one proof, and then a short authentication code for each call
    :param timeout: seconds of one attempt
    :param retry_for: seconds for which calls are repeated while the platform is unreachable
    """
    if token is not None and keypair is None:
        raise ValueError("a token needs the keypair of its holder; give keypair as well")
    if credentials is not None and keypair is not None:
        raise ValueError("give either credentials or keypair")
    address = target if "://" in target else f"{'https' if tls else 'http'}://{target}"
    url = urlsplit(address)
    secure = url.scheme == "https" or bool(tls)
    port = url.port or (443 if secure else 80)
    host = f"[{url.hostname}]" if ":" in (url.hostname or "") else url.hostname
    if secure:
        channel = grpc.aio.secure_channel(f"{host}:{port}", _channel_credentials(tls), OPTIONS)
    else:
        channel = grpc.aio.insecure_channel(f"{host}:{port}", OPTIONS)
    calls = Calls(channel, _credentials.Open(), timeout, retry_for)
    public = (public_url or f"{url.scheme}://{url.netloc}{url.path}").rstrip("/")
    if credentials is not None:
        calls.credentials = _credentials.Secret(credentials)
    elif keypair is not None and session:
        calls.credentials = _credentials.Sessions(keypair, public, calls)
    elif keypair is not None:
        calls.credentials = _credentials.Proofs(keypair, public)
    return Connecting(Client(calls, keypair, None if token is None else str(token)), connect_timeout)


def _channel_credentials(tls: Tls | None) -> grpc.ChannelCredentials:
    if isinstance(tls, bytes):
        return grpc.ssl_channel_credentials(root_certificates=tls)
    if isinstance(tls, grpc.ChannelCredentials):
        return tls
    return grpc.ssl_channel_credentials()
