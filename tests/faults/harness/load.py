"""The Python client of the fault harness: `load.py JOURNAL GATEWAY...`.

It registers agents, mints tokens, reserves and settles amounts, and revokes tokens, until SIGTERM. Each answer of the
platform is a line of the journal.
"""

import json
import random
import signal
import sys
import threading
import time
import traceback
import uuid

from depute_http import Platform, Refused

journal_path, *gateways = sys.argv[1:]
journal = open(journal_path, "a", buffering=1)
lock = threading.Lock()
stopping = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stopping.set())

# The public key of the first test vector of RFC 8032.
DELEGATEE = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
CAPABILITY = {"namespace": "docs", "action": "read", "resource": "/**"}
BUDGET = 1_000


def note(kind, **fields):
    with lock:
        journal.write(json.dumps({"kind": kind, **fields}) + "\n")


def new_id():
    return str(uuid.uuid4())


def register(platform, n):
    agent = f"python-{n}-{new_id()[:8]}"
    platform.call("depute.registry.v1.AgentService/RegisterAgent", {"requestId": new_id(), "agent": {"id": agent}})
    note("agent", id=agent)


def verify(platform, token, sequence=0):
    return platform.call(
        "depute.tokens.v1.TokenService/VerifyToken",
        {"token": {"token": token, "format": "delegateos-sjt-v1"}, "requested": CAPABILITY, "minRevocationSequence": str(sequence)},
    )


def settle(platform, token, random):
    """Reserves amounts under a token until its budget is used. Half of them are charged, some are given back."""
    while True:
        amount = random.randint(1, 300)
        request = {
            "requestId": new_id(),
            "token": {"token": token, "format": "delegateos-sjt-v1"},
            "amountMicrocents": str(amount),
            "lifetime": "3600s",
        }
        try:
            answer = platform.call("depute.tokens.v1.SpendService/ReserveSpend", request)
        except Refused as refused:
            if refused.code in ("resource_exhausted", "failed_precondition", "permission_denied"):
                return
            raise
        reservation = answer["reservation"]["id"]
        end = random.choice(["CommitSpend", "CommitSpend", "ReleaseSpend", ""])
        if end:
            platform.call(f"depute.tokens.v1.SpendService/{end}", {"reservationId": reservation})
        state = {"CommitSpend": "COMMITTED", "ReleaseSpend": "RELEASED", "": "HELD"}[end]
        note("reservation", id=reservation, token=token, amount=amount, state=f"RESERVATION_STATE_{state}")


def token_life(platform, n):
    random_source = random.Random(n)
    minted = platform.call(
        "depute.tokens.v1.TokenService/MintToken",
        {
            "requestId": new_id(),
            "delegatee": DELEGATEE,
            "contractId": "ct_a1b2c3d4e5f6",
            "capabilities": [CAPABILITY],
            "maxBudgetMicrocents": str(BUDGET),
            "lifetime": "86400s",
        },
    )
    token, revocation = minted["token"]["token"], minted["revocationId"]
    note("token", token=token, revocationId=revocation, budget=BUDGET)
    settle(platform, token, random_source)
    if n % 2 == 0:
        return
    answer = platform.call(
        "depute.tokens.v1.RevocationService/RevokeMintedToken",
        {"revocationId": revocation, "scope": "REVOCATION_SCOPE_BLOCK"},
    )
    sequence = int(answer["revocation"]["sequence"])
    note("revoked", token=token, revocationId=revocation, sequence=sequence)
    for _ in gateways:
        if "denial" not in verify(platform, token, sequence):
            note("violation", rule="nothing is allowed after an acknowledged revocation", token=token)


def repeat(work, every, lane):
    platform = Platform(gateways)
    n = lane
    while not stopping.is_set():
        try:
            work(platform, n)
        except Exception as error:
            note("violation", rule=f"{work.__name__} succeeds after a retry", error=f"{error}", trace=traceback.format_exc())
        n += 10
        stopping.wait(every)


lanes = [(register, 0.4, 0), (register, 0.4, 1), (token_life, 0.5, 1), (token_life, 0.5, 2)]
threads = [threading.Thread(target=repeat, args=lane) for lane in lanes]
for thread in threads:
    thread.start()
print("ready", flush=True)
while not stopping.is_set():
    time.sleep(0.2)
for thread in threads:
    thread.join()
