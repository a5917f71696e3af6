"""Tests of key files and of values in requests."""

from __future__ import annotations

import stat
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool
from google.rpc import status_pb2

import depute
from depute.values import from_message, to_message

TASK = "depute/tasks/v1/task.proto"


def test_a_saved_key_is_loaded_again_and_belongs_to_its_owner_alone(tmp_path: Path) -> None:
    key = depute.Keypair.generate()
    path = tmp_path / "key"
    key.save(path)
    assert depute.Keypair.load(path) == key
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert depute.Keypair.load_or_create(path) == key


def test_a_key_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "key"
    depute.Keypair.generate().save(path)
    with pytest.raises(FileExistsError):
        depute.Keypair.generate().save(path)


def test_a_file_without_a_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("c2hvcnQ")
    with pytest.raises(ValueError, match="is not a key"):
        depute.Keypair.load(path)


def test_the_seed_is_not_printed() -> None:
    key = depute.Keypair.from_seed(bytes(range(32)))
    assert "seed" not in repr(key)
    assert key.principal in repr(key)


@pytest.mark.parametrize(
    ("request_", "fault"),
    [
        ({"draft": {"input": float("nan")}}, "draft.input: nan is not a JSON number"),
        ({"draft": {"input": [2**60]}}, r"draft.input\[0\]: an integer beyond"),
        ({"draft": {"input": {1: 2}}}, "draft.input: names of members are str"),
        ({"draft": {"input": {"a": {1, 2}}}}, "draft.input.a: set is not a JSON value"),
        ({"draft": {"input": "\ud800"}}, "draft.input: a lone surrogate"),
        ({"draft": {"agent": "x"}}, "draft.agent: .* has no such field"),
        ({"draft": {"agent_id": 5}}, "draft.agent_id: give a str"),
        ({"draft": {"priority": "high"}}, "draft.priority: give an integer"),
        ({"draft": {"limits": {"total": "1h"}}}, "draft.limits.total: give a timedelta"),
        ({"reuse_policy": "sometimes"}, "reuse_policy: give one of allow, allow_unsuccessful, reject"),
        ({"draft": {"context_ids": "one"}}, "draft.context_ids: give a list"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_its_field(request_: dict[str, Any], fault: str) -> None:
    with pytest.raises(depute.ValueProblem, match=fault):
        to_message("depute.tasks.v1.CreateTaskRequest", request_)


def test_times_durations_and_words_are_those_of_python() -> None:
    moment = datetime(2026, 2, 17, 12, 0, 0, 250_000, timezone.utc)
    task = {"id": "t", "status": "running", "create_time": moment, "limits": {"total": timedelta(hours=1)}}
    value = from_message(to_message("depute.tasks.v1.Task", task))
    assert {name: value[name] for name in task} == task


def test_a_document_of_a_family_has_the_names_of_its_text() -> None:
    document = {
        "id": "a",
        "input": {"type": "object"},
        "cost": {"avg_ms": 5},
        "examples": [{"in": 1, "out": [2]}],
    }
    value = from_message(to_message("nekte.v1.CapabilityFull", document))
    assert {name: value[name] for name in document} == document
    token = depute.Token.mint(
        depute.Keypair.generate(),
        delegatee=depute.Keypair.generate().principal,
        capabilities=[depute.capability("docs", "read", "**")],
        contract_id="ct_0123456789ab",
        max_budget_microcents=1,
        max_chain_depth=1,
    )
    assert from_message(to_message("delegateos.v0.SignedJSONToken", token.document)) == token.document


def test_a_tag_selects_the_kind_of_a_document_and_unknown_members_stay() -> None:
    document = {"type": "tool_call_result", "server_id": "s", "tool": "t", "result": [1], "more": {"x": None}}
    message = to_message("cap.v1.Attachment", document)
    assert message.WhichOneof("kind") == "tool_call_result"
    assert from_message(message) == document


def test_a_token_without_its_key_is_refused_before_any_call() -> None:
    with pytest.raises(ValueError, match="keypair of its holder"):
        depute.connect("http://127.0.0.1:1", token="a")


def test_contracts_of_another_package_load_beside_this_one() -> None:
    """A program may hold other versions of the same files, from protoc or from a package such as protovalidate."""
    pool = descriptor_pool.Default()
    for name, package in (("buf/validate/validate.proto", "buf.validate"), (TASK, "depute.tasks.v1")):
        file = descriptor_pb2.FileDescriptorProto(name=name, package=package, syntax="proto3")
        file.message_type.add(name="Task")
        pool.AddSerializedFile(file.SerializeToString())
    assert not pool.FindMessageTypeByName("depute.tasks.v1.Task").fields
    assert status_pb2.Status(code=5).code == 5
    assert from_message(to_message("depute.tasks.v1.Task", {"id": "t"}))["id"] == "t"
