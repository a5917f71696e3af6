"""Delegators and workers of this package at a real platform."""

from __future__ import annotations

import asyncio
import json
import urllib.request
import uuid
from datetime import datetime, timedelta
from typing import Any

import pytest
from conftest import Agent, Proxy, agent_at

import depute

#: Maximum seconds of each test. No test waits that long on purpose.
LIMIT = 60


def run(test: Any) -> None:
    asyncio.run(asyncio.wait_for(test, LIMIT))


async def echo(work: depute.Work) -> Any:
    return work.input


async def wait_for(condition: Any) -> None:
    while not condition():
        await asyncio.sleep(0.02)


async def status_of(task: depute.Task, status: str) -> dict[str, Any]:
    while (found := await task.get())["status"] != status:
        await asyncio.sleep(0.05)
    return found


def test_a_delegator_watches_each_event_of_a_task_and_receives_the_result(url: str) -> None:
    async def handle(work: depute.Work) -> depute.Output:
        await work.progress(1, 2, "half")
        await work.partial({"so": "far"})
        return depute.Output({"text": work.input["text"].upper()}, minimal="done", tokens_used=7)

    async def test() -> None:
        async with agent_at(url) as agent, depute.Worker(agent.worker, agent.id, handle):
            task = await agent.delegator.delegate(agent.id, "echo", {"text": "a"}, description="Shout.")
            events = [event async for event in task.events()]
            result = await task.result()
        assert [event.sequence for event in events] == list(range(1, len(events) + 1))
        types = [event.type for event in events]
        assert types == ["created", "accepted", "started", "progress", "partial", "completed"]
        assert events[3].data == {"processed": 1, "total": 2, "message": "half"}
        assert (result.output, result.minimal) == ({"text": "A"}, "done")
        assert result.usage["tokens_used"] == 7

    run(test())


@pytest.mark.parametrize(
    "value", [None, 0, -1.5, "", "\u20ac \U0001f600", [], {}, [1, [None, {"a": True}]], 2**53 - 1]
)
def test_a_json_value_returns_as_it_was(url: str, value: Any) -> None:
    async def test() -> None:
        async with agent_at(url) as agent, depute.Worker(agent.worker, agent.id, echo):
            task = await agent.delegator.delegate(agent.id, input=value, description="Free work.")
            output = (await task.result()).output
            assert output == value
            assert type(output) is type(value)

    run(test())


@pytest.mark.parametrize("kind", ["input", "authorization"])
def test_a_worker_asks_and_the_delegator_answers(url: str, kind: depute.QuestionKind) -> None:
    details = {"options": ["a", "b"]}

    async def handle(work: depute.Work) -> Any:
        return {"name": await work.ask("Which name?", details, kind)}

    async def test() -> None:
        async with agent_at(url) as agent, depute.Worker(agent.worker, agent.id, handle):
            task = await agent.delegator.delegate(agent.id, "echo", {"text": ""})
            async for event in task.events():
                if event.type == "input_required":
                    assert event.data == {"prompt": "Which name?", "details": details, "kind": kind}
                    await task.provide_input("b")
            assert (await task.result()).output == {"name": "b"}

    run(test())


def test_a_worker_sees_the_a2a_messages_of_its_task(url: str) -> None:
    message = {
        "messageId": str(uuid.uuid4()),
        "role": "ROLE_USER",
        "parts": [{"text": "count"}],
        "metadata": {"skill": "sum"},
    }

    def send(agent_id: str, message: dict[str, Any]) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
        headers = {"content-type": "application/json", "a2a-version": "1.0"}
        request = urllib.request.Request(f"{url}/a2a/{agent_id}", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)

    async def handle(work: depute.Work) -> Any:
        assert work.message is not None
        assert work.message["message_id"] == message["messageId"]
        assert work.messages == [work.message]
        answer = await work.ask("which page?")
        page = work.messages[-1]["metadata"]["page"]
        return {"skill": work.message["metadata"]["skill"], "input": work.input, "answer": answer, "page": page}

    async def test() -> None:
        async with agent_at(url) as agent, depute.Worker(agent.worker, agent.id, handle):
            asked = (await asyncio.to_thread(send, agent.id, message))["result"]["task"]
            assert asked["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
            reply = {
                **message,
                "messageId": str(uuid.uuid4()),
                "taskId": asked["id"],
                "parts": [{"text": "this"}],
                "metadata": {"page": 3},
            }
            answer = await asyncio.to_thread(send, agent.id, reply)
            assert answer["result"]["task"]["artifacts"][0]["parts"][0]["data"] == {
                "skill": "sum",
                "input": "count",
                "answer": "this",
                "page": 3,
            }

    run(test())


def test_cancellation_cancels_the_handler(url: str) -> None:
    async def test() -> None:
        begun, ended = asyncio.Event(), asyncio.Event()

        async def handle(work: depute.Work) -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                ended.set()
                raise

        async with agent_at(url) as agent, depute.Worker(agent.worker, agent.id, handle):
            task = await agent.delegator.delegate(agent.id, "echo", {"text": ""})
            await begun.wait()
            assert (await task.cancel("no longer needed"))["status"] == "cancelled"
            assert (await task.cancel())["status"] == "cancelled"
            await ended.wait()
            with pytest.raises(depute.TaskEnded) as refused:
                await task.result()
            assert refused.value.status == "cancelled"

    run(test())


def test_cancellation_with_a_grace_leaves_time_for_a_checkpoint(url: str) -> None:
    async def test() -> None:
        begun = asyncio.Event()

        async def handle(work: depute.Work) -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                await work.checkpoint({"step": 1})

        async with agent_at(url) as agent, depute.Worker(agent.worker, agent.id, handle):
            task = await agent.delegator.delegate(agent.id, "echo", {"text": ""})
            await begun.wait()
            await task.cancel(grace=30)
            types = [event.type async for event in task.events()]
            assert types[-3:] == ["cancellation_requested", "checkpointed", "cancelled"]

    run(test())


def test_a_suspended_task_continues_from_its_checkpoint(url: str) -> None:
    async def test() -> None:
        steps: list[int] = []
        may_end = asyncio.Event()

        async def handle(work: depute.Work) -> Any:
            start = 0 if work.saved is None else work.saved["step"]
            for step in range(start, 100_000):
                if may_end.is_set():
                    return {"from": start}
                steps.append(step)
                await work.checkpoint({"step": step + 1})
                await asyncio.sleep(0.02)

        async with agent_at(url) as agent, depute.Worker(agent.worker, agent.id, handle):
            task = await agent.delegator.delegate(agent.id, "echo", {"text": ""})
            await wait_for(lambda: len(steps) > 2)
            await task.suspend("a pause")
            await status_of(task, "suspended")
            done = len(steps)
            assert steps == list(range(done))
            may_end.set()
            await task.resume()
            assert (await task.result()).output == {"from": done}

    run(test())


def test_a_worker_that_closes_returns_its_work_and_the_next_one_continues(url: str) -> None:
    async def test() -> None:
        begun = asyncio.Event()

        async def first(work: depute.Work) -> None:
            await work.checkpoint({"step": 3})
            begun.set()
            await asyncio.Event().wait()

        async def second(work: depute.Work) -> Any:
            return work.saved

        async with agent_at(url) as agent:
            worker = depute.Worker(agent.worker, agent.id, first)
            worker.start()
            task = await agent.delegator.delegate(agent.id, "echo", {"text": ""})
            await begun.wait()
            await worker.close(grace=0)
            async with depute.Worker(agent.worker, agent.id, second):
                assert (await task.result()).output == {"step": 3}
            task = await task.get()
            assert task["attempt"] == 1

    run(test())


def test_a_worker_that_closes_completes_running_work_first(url: str) -> None:
    async def test() -> None:
        begun, may_end = asyncio.Event(), asyncio.Event()

        async def handle(work: depute.Work) -> str:
            begun.set()
            await may_end.wait()
            return "complete"

        async with agent_at(url) as agent:
            worker = depute.Worker(agent.worker, agent.id, handle)
            worker.start()
            task = await agent.delegator.delegate(agent.id, "echo", {"text": ""})
            await begun.wait()
            closing = asyncio.create_task(worker.close())
            late = await agent.delegator.delegate(agent.id, "echo", {"text": ""})
            may_end.set()
            await closing
            assert (await task.result()).output == "complete"
            assert (await late.get())["status"] == "pending"

    run(test())


def test_a_failure_has_the_reason_of_the_worker(url: str) -> None:
    async def handle(work: depute.Work) -> None:
        raise depute.WorkFailure("NO_SUCH_PAGE", "the page is gone")

    async def test() -> None:
        async with agent_at(url) as agent, depute.Worker(agent.worker, agent.id, handle):
            task = await agent.delegator.delegate(agent.id, "echo", {"text": ""})
            with pytest.raises(depute.TaskEnded) as refused:
                await task.result()
            assert refused.value.status == "failed"
            assert refused.value.reason_name == "NO_SUCH_PAGE"
            assert refused.value.message == "the page is gone"

    run(test())


def test_another_exception_is_retried(url: str) -> None:
    async def test() -> None:
        attempts: list[int] = []

        async def handle(work: depute.Work) -> int:
            attempts.append(work.task["attempt"])
            if len(attempts) == 1:
                raise RuntimeError("a fault")
            return work.task["attempt"]

        async with agent_at(url) as agent, depute.Worker(agent.worker, agent.id, handle):
            task = await agent.delegator.delegate(
                agent.id, "echo", {"text": ""}, retry={"max_attempts": 3, "initial_backoff": 0}
            )
            assert (await task.result()).output == 2
            assert attempts == [1, 2]

    run(test())


def test_refusals_have_types(url: str) -> None:
    async def test() -> None:
        async with agent_at(url) as agent:
            with pytest.raises(depute.DeputeError) as refused:
                await agent.delegator.delegate(agent.id, "unknown", {})
            assert depute.reason_of(refused.value) is depute.Reason.CAPABILITY_NOT_FOUND
            assert refused.value.metadata["capability"] == "unknown"
            with pytest.raises(depute.DeputeError) as refused:
                await agent.delegator.delegate(agent.id, "echo", {"text": ""}, priority=77)
            assert refused.value.reason is depute.Reason.INVALID_REQUEST
            assert [one.field for one in refused.value.violations] == ["draft.priority"]
            with pytest.raises(depute.DeputeError) as refused:
                await agent.delegator.delegate(agent.id, "echo", {"text": 1})
            assert refused.value.reason is depute.Reason.INPUT_SCHEMA_VIOLATION
            with pytest.raises(depute.ValueProblem, match="draft.no_such: "):
                await agent.delegator.delegate(agent.id, "echo", {}, no_such=1)
        assert depute.reason_of(ValueError()) is None

    run(test())


def test_capacity_bounds_the_work_at_one_time(url: str) -> None:
    async def test() -> None:
        running = most = 0

        async def handle(work: depute.Work) -> None:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.05)
            running -= 1

        async with agent_at(url) as agent, depute.Worker(agent.worker, agent.id, handle, capacity=3):
            delegate = agent.delegator.delegate
            tasks = await asyncio.gather(*(delegate(agent.id, "echo", {"text": ""}) for _ in range(9)))
            await asyncio.gather(*(task.result() for task in tasks))
        assert most == 3

    run(test())


@pytest.mark.parametrize("session", [False, True])
def test_dropped_connections_lose_no_event_and_no_work(url: str, session: bool) -> None:
    async def handle(work: depute.Work) -> Any:
        for step in range(1, 31):
            await work.progress(step, 30)
            await asyncio.sleep(0.01)
        return {"steps": 30}

    async def test() -> None:
        async with Proxy(url).serve() as proxy, agent_at(url, proxy.address, session=session) as agent:
            errors: list[Exception] = []
            async with depute.Worker(agent.worker, agent.id, handle, on_error=errors.append):
                task = await agent.delegator.delegate(agent.id, "echo", {"text": ""})
                seen: list[depute.Event] = []
                async for event in task.events():
                    seen.append(event)
                    if event.type == "progress" and event.data["processed"] % 10 == 5:
                        proxy.cut()
                result = await task.result()
            assert proxy.cuts == 3
            assert [event.sequence for event in seen] == list(range(1, len(seen) + 1))
            reported = [event.data["processed"] for event in seen if event.type == "progress"]
            assert reported == list(range(1, 31))
            assert result.output == {"steps": 30}
            assert result.task["attempt"] == 1

    run(test())


def test_a_lost_lease_cancels_the_handler_and_the_next_worker_continues(url: str) -> None:
    async def test() -> None:
        begun, ended = asyncio.Event(), asyncio.Event()

        async def first(work: depute.Work) -> None:
            await work.checkpoint({"step": 5})
            begun.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                ended.set()
                raise

        async def second(work: depute.Work) -> Any:
            return {"saved": work.saved, "attempt": work.task["attempt"]}

        async with Proxy(url).serve() as proxy, agent_at(url) as agent:
            async with depute.connect(proxy.address, public_url=url, keypair=agent.key) as weak:
                async with depute.Worker(weak, agent.id, first, on_error=lambda error: None):
                    task = await agent.delegator.delegate(
                        agent.id,
                        "echo",
                        {"text": ""},
                        limits={"heartbeat": 1},
                        retry={"max_attempts": 2, "initial_backoff": 0},
                    )
                    await begun.wait()
                    proxy.is_down = True
                    proxy.cut()
                    async with depute.Worker(agent.worker, agent.id, second):
                        output = (await task.result()).output
                    assert output == {"saved": {"step": 5}, "attempt": 2}
                    # The lease ran out unextended, so the worker without a connection has stopped as well.
                    await ended.wait()

    run(test())


def test_a_lost_holder_session_is_replaced(url: str) -> None:
    async def test() -> None:
        async with agent_at(url, session=True) as agent, depute.Worker(agent.worker, agent.id, echo):
            await agent.delegator.proof_sessions.close_holder_session()
            task = await agent.delegator.delegate(agent.id, "echo", {"text": "a"})
            await agent.delegator.proof_sessions.close_holder_session()
            assert [event.type async for event in task.events()][-1] == "completed"

    run(test())


def test_an_agent_outlives_its_lease_while_its_worker_runs(url: str) -> None:
    async def test() -> None:
        async with agent_at(url) as agent:
            await agent.worker.register(agent.id, lease_duration=1)

            async def lease_end() -> datetime:
                read = await agent.worker.agents.get_agent(agent_id=agent.id)
                end: datetime = read["agent"]["lease_expire_time"]
                return end

            first = await lease_end()
            async with depute.Worker(agent.worker, agent.id, echo):
                while await lease_end() <= first + timedelta(seconds=1):
                    await asyncio.sleep(0.1)

    run(test())


def test_a_call_that_is_retried_creates_one_task(url: str) -> None:
    async def test() -> None:
        async with Proxy(url).serve() as proxy, agent_at(url, proxy.address) as agent:
            creating = [
                asyncio.create_task(agent.delegator.delegate(agent.id, "echo", {"text": str(i)}))
                for i in range(20)
            ]
            for _ in range(5):
                await asyncio.sleep(0.02)
                proxy.cut()
            created = [task.id for task in await asyncio.gather(*creating)]
            listed = await agent.delegator.tasks.list_tasks(agent_id=agent.id)
            assert sorted(task["id"] for task in listed["tasks"]) == sorted(created)
            assert len(set(created)) == 20

    run(test())


def test_an_unreachable_platform_is_reported_after_the_time_to_retry(url: str) -> None:
    async def test() -> None:
        async with Proxy(url).serve() as proxy, agent_at(url, proxy.address, retry_for=0.3) as agent:
            proxy.is_down = True
            proxy.cut()
            with pytest.raises(depute.DeputeError) as refused:
                await agent.delegator.delegate(agent.id, "echo", {"text": ""})
            assert refused.value.code.name == "UNAVAILABLE"
            assert refused.value.reason is None

    run(test())


def test_revocation_in_mid_work_cancels_the_handler_and_ends_the_task(url: str) -> None:
    async def test() -> None:
        begun, ended = asyncio.Event(), asyncio.Event()

        async def handle(work: depute.Work) -> None:
            assert depute.Token.parse(work.token).holder == agent.key.principal
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        async with agent_at(url) as agent, depute.Worker(agent.worker, agent.id, handle):
            token, work = await authority(url, agent)
            task = await agent.delegator.delegate(agent.id, "echo", {"text": ""}, **work)
            await begun.wait()
            await agent.delegator.revoke(token)
            await ended.wait()
            with pytest.raises(depute.TaskEnded) as refused:
                await task.result()
            assert refused.value.status == "revoked"
            with pytest.raises(depute.DeputeError) as denied:
                await agent.delegator.delegate(agent.id, "echo", {"text": ""}, **work)
            assert denied.value.reason is depute.Reason.TOKEN_DENIED
            assert denied.value.metadata["denial"] == "revoked"

    run(test())


@pytest.mark.parametrize("session", [False, True])
def test_work_under_a_contract_is_checked_and_attested(url: str, session: bool) -> None:
    async def test() -> None:
        async with agent_at(url, session=session) as agent, depute.Worker(agent.worker, agent.id, echo):
            _, work = await authority(url, agent)
            task = await agent.delegator.delegate(agent.id, "echo", {"text": "a"}, **work)
            result = await task.result()
            assert result.verification is not None
            assert result.verification["passed"] is True
            checked = await agent.delegator.attestations.verify_attestation(
                attestation_id=result.attestation_id
            )
            assert checked["valid"] is True

    run(test())


def test_a_token_counts_with_the_proof_of_its_holder_alone(url: str) -> None:
    async def test() -> None:
        async with agent_at(url) as agent:
            _, work = await authority(url, agent)
            stranger = depute.Keypair.generate()
            async with depute.connect(url, keypair=stranger) as client:
                with pytest.raises(depute.DeputeError) as refused:
                    await client.delegate(agent.id, "echo", {"text": ""}, **work)
                assert refused.value.reason is depute.Reason.TOKEN_DENIED

    run(test())


async def authority(url: str, agent: Agent) -> tuple[depute.Token, dict[str, Any]]:
    """A minted token of the delegator, and the fields of a task under it."""
    schema = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}}
    check = {"method": "schema_match", "schema": schema}
    key = agent.delegator.keypair
    assert key is not None
    contract = (await agent.delegator.create_contract("Echo", check, max_budget_microcents=1000))["id"]
    rights = [
        depute.capability("depute:tasks", "delegate", f"{agent.id}/*"),
        depute.capability("docs", "read", "plans/**"),
    ]
    async with depute.connect(url) as issuer:
        token = await issuer.mint(key.principal, rights, contract_id=contract, max_budget_microcents=1000)
    narrowed = token.attenuate(
        key,
        delegatee=agent.key.principal,
        allowed_capabilities=[depute.capability("docs", "read", "plans/q1")],
    )
    return token, {"contract_id": contract, "token": token, "worker_token": narrowed}
