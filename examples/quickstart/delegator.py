"""Delegates the scoring of 500 texts under an attenuated token. Usage: python delegator.py [URL]"""

import asyncio
import sys

import depute
from depute import capability

URL, AGENT = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080", "sentiment-python"
TEXTS = ["A wonderful, useful tool.", "This is terrible.", "It takes two arguments.", "Broken."] * 125
SCHEMA = {"type": "object", "properties": {"count": {"const": 500}}, "required": ["count"]}
RIGHTS = [capability("depute:tasks", "delegate", f"{AGENT}/*"), capability("llm", "classify", "**")]
CHECK, COST = {"method": "schema_match", "schema": SCHEMA}, 1_000_000


async def main() -> None:
    key = depute.Keypair.generate()
    async with depute.connect(URL) as issuer, depute.connect(URL, keypair=key) as client:
        contract = (await client.create_contract("500 texts", CHECK, max_budget_microcents=COST))["id"]
        token = await issuer.mint(key.principal, RIGHTS, contract_id=contract, max_budget_microcents=COST)
        worker = (await client.agents.get_agent(agent_id=AGENT))["agent"]["principal"]
        part = [capability("llm", "classify", "texts/readme/**")]
        narrowed = token.attenuate(key, delegatee=worker, allowed_capabilities=part)
        work = {"contract_id": contract, "token": token, "worker_token": narrowed}
        task = await client.delegate(AGENT, "sentiment", {"texts": TEXTS}, **work)
        async for event in task.events():
            print(event.sequence, event.type, event.data if event.type == "progress" else "")
        result = await task.result()
        print(result.output, "passed" if result.verification["passed"] else "NOT passed")
        checked = await client.attestations.verify_attestation(attestation_id=result.attestation_id)
        print("attestation", "valid" if checked["valid"] else "NOT valid")
        print("revocation", await client.revoke(token))
        try:
            await client.delegate(AGENT, "sentiment", {"texts": TEXTS}, **work)
        except depute.DeputeError as error:
            print("refused:", depute.reason_of(error), error)


asyncio.run(main())
