"""Delegates the scoring of 500 texts under an attenuated token. Argument: complete, cancel or revoke; see examples/README.md."""

import asyncio
import json
import os
import sys

import depute
from depute import capability

MODE = sys.argv[1] if len(sys.argv) > 1 else "complete"
URL = os.environ.get("DEPUTE_URL", "http://127.0.0.1:8080")
AGENT = os.environ.get("DEPUTE_AGENT", "sentiment")
TEXTS = ["A wonderful, useful tool.", "This is terrible.", "It takes two arguments.", "Broken."] * 125
SCHEMA = {"type": "object", "properties": {"count": {"const": 500}}, "required": ["count"]}
RIGHTS = [capability("depute:tasks", "delegate", f"{AGENT}/*"), capability("llm", "classify", "**")]


async def main() -> None:
    key = depute.Keypair.load_or_create(os.environ.get("DEPUTE_KEY", "delegator.key"))
    secret = os.environ.get("DEPUTE_SECRET")
    async with depute.connect(URL, credentials=secret) as issuer, depute.connect(URL, keypair=key) as client:
        check = {"method": "schema_match", "schema": SCHEMA}
        contract = (await client.create_contract("500 texts", check, max_budget_microcents=1_000_000))["id"]
        token = await issuer.mint(
            key.principal, RIGHTS, contract_id=contract, max_budget_microcents=1_000_000
        )
        # The holder attenuates the token offline. Only the worker's principal comes from the platform.
        worker = (await client.agents.get_agent(agent_id=AGENT))["agent"]["principal"]
        attenuated = token.attenuate(
            key,
            delegatee=worker,
            allowed_capabilities=[capability("llm", "classify", "texts/readme/**")],
            max_budget_microcents=500_000,
        )

        async def create() -> depute.Task:
            return await client.delegate(
                AGENT,
                "sentiment",
                {"texts": TEXTS},
                contract_id=contract,
                token=token,
                worker_token=attenuated,
                limits={"heartbeat": 5},
                retry={"max_attempts": 3, "initial_backoff": 0.1},
            )

        task = await create()
        print("task", task.id, flush=True)
        async for event in task.events():
            done, total = event.data.get("processed"), event.data.get("total")
            print("event", event.sequence, event.type, *([f"{done}/{total}"] if done else []), flush=True)
            if done == 250 and MODE == "cancel":
                await task.cancel()
            elif done == 250 and MODE == "revoke":
                await client.revoke(token)
        ended = await task.get()
        print("ended", ended["status"])
        if ended["status"] == "completed":
            checked = await client.attestations.verify_attestation(attestation_id=ended["attestation_id"])
            print("result", json.dumps(ended["output"]["full"], sort_keys=True, separators=(",", ":")))
            print("checked", "passed" if ended["verification"]["passed"] else "failed")
            print("attestation", "valid" if checked["valid"] else "invalid")
            print("revoked", await client.revoke(token))
        if MODE != "cancel":
            try:
                await create()
            except depute.DeputeError as error:
                print("refused", error.reason_name)


asyncio.run(main())
