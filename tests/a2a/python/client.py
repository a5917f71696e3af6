"""The official Python client of A2A. Prints one JSON document a line: the outcome of each operation, in order.

Usage: python client.py BASE_URL CARD_PATH BINDING
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator

import grpc
import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.client import Client
from a2a.helpers import get_artifact_text, new_text_message
from a2a.types.a2a_pb2 import (
    AgentCard,
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    TaskState,
)


def show(operation: str, **outcome: object) -> None:
    print(json.dumps({"operation": operation, **outcome}), flush=True)


def request(text: str, *, task_id: str = "", at_once: bool = False) -> SendMessageRequest:
    message = new_text_message(text, role=Role.ROLE_USER, task_id=task_id)
    return SendMessageRequest(
        message=message, configuration=SendMessageConfiguration(return_immediately=at_once)
    )


async def last(responses: AsyncIterator[StreamResponse]) -> StreamResponse:
    return [response async for response in responses][-1]


def client_of(card: AgentCard, binding: str, streaming: bool) -> Client:
    config = ClientConfig(
        streaming=streaming,
        supported_protocol_bindings=[binding],
        grpc_channel_factory=grpc.aio.insecure_channel,
    )
    return ClientFactory(config).create(card)


async def main(url: str, path: str, binding: str) -> None:
    async with httpx.AsyncClient() as http:
        card = await A2ACardResolver(http, url).get_agent_card(path)
    show("card", name=card.name, bindings=sorted(each.protocol_binding for each in card.supported_interfaces))

    client, streaming = client_of(card, binding, False), client_of(card, binding, True)
    task = (await last(client.send_message(request("hello")))).task
    show("send", state=TaskState.Name(task.status.state), text=get_artifact_text(task.artifacts[0]))

    question = (await last(client.send_message(request("ask")))).task
    show("question", state=TaskState.Name(question.status.state))
    answered = (await last(client.send_message(request("red", task_id=question.id)))).task
    show("answer", same=answered.id == question.id, text=get_artifact_text(answered.artifacts[0]))

    kinds = [event.WhichOneof("payload") async for event in streaming.send_message(request("hello"))]
    show("stream", first=kinds[0], last=kinds[-1])

    waiting = (await last(client.send_message(request("wait", at_once=True)))).task
    events = streaming.subscribe(SubscribeToTaskRequest(id=waiting.id))
    first = await anext(events)
    cancelled = await client.cancel_task(CancelTaskRequest(id=waiting.id))
    end = [event async for event in events][-1]
    show(
        "cancel",
        first=first.WhichOneof("payload"),
        state=TaskState.Name(cancelled.status.state),
        end=TaskState.Name(end.status_update.status.state),
    )

    read = await client.get_task(GetTaskRequest(id=task.id))
    listed = await client.list_tasks(ListTasksRequest(context_id=task.context_id))
    show("read", same=read.id == task.id, listed=[each.id == task.id for each in listed.tasks])

    try:
        await client.get_task(GetTaskRequest(id="nothing"))
    except Exception as error:
        show("unknown", error=type(error).__name__)
    await client.close()
    await streaming.close()


asyncio.run(main(*sys.argv[1:]))
