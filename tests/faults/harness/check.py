"""The checker of the fault harness: `check.py CLUSTER_JSON JOURNAL...`.

It reads back each acknowledged write through each replica, with its own code and Python's standard library alone. It
prints counts as JSON, and each violation. Exit code 1: there is a violation.
"""

import base64
import hashlib
import json
import sys

from depute_http import Refused, Replica

cluster_path, *journals = sys.argv[1:]
cluster = json.load(open(cluster_path))
lines = [json.loads(line) for path in journals for line in open(path) if line.strip()]
counts = {}
violations = []


def of(kind):
    return [line for line in lines if line["kind"] == kind]


def violated(rule, **facts):
    violations.append({"rule": rule, **facts})


def replicas(service):
    return [Replica(each["url"], timeout=30) for each in cluster["services"] if each["service"] == service]


gateways = replicas("gateway")


class Reading:
    """Reads each record through each replica of its service, and through the gateways in turn."""

    def __init__(self, service):
        self.service = replicas(service)

    def at(self, n):
        return [*self.service, gateways[n % len(gateways)]]

    def all(self):
        return [*self.service, *gateways]


def checked(name, number):
    counts[name] = counts.get(name, 0) + number


def same(rule, values):
    """Requires that all replicas give the same answer."""
    for url, value in values[1:]:
        if value != values[0][1]:
            violated(rule, first=values[0][0], second=url)


def check_agents():
    acknowledged = [line["id"] for line in of("agent")]
    logs = []
    reading = Reading("registry")
    for n, agent in enumerate(acknowledged):
        for replica in reading.at(n):
            try:
                found = replica.read("depute.registry.v1.AgentService/GetAgent", {"agentId": agent})["agent"]["status"]
            except Refused as refused:
                found = str(refused)
            if found != "AGENT_STATUS_ACTIVE":
                violated("an acknowledged agent is active at each replica", agent=agent, replica=replica.url, found=found)
            checked("agents read", 1)
    for replica in reading.all() if not violations else []:
        last = set(acknowledged)
        changes = []
        missing = set(acknowledged)

        def complete(message):
            missing.discard(message.get("change", {}).get("agentId"))
            return not missing

        for message in replica.stream("depute.registry.v1.AgentService/WatchAgents", {"afterSequence": "0"}, complete):
            if "change" in message:
                changes.append((int(message["sequence"]), message["change"]["kind"], message["change"]["agentId"]))
        sequences = [sequence for sequence, _, _ in changes]
        if sequences != list(range(1, len(sequences) + 1)):
            violated("the log of agents has no gap", replica=replica.url)
        registered = [agent for _, kind, agent in changes if kind == "AGENT_CHANGE_KIND_REGISTERED" and agent in last]
        if len(registered) != len(set(registered)) or missing:
            violated("each acknowledged agent is once in the log", replica=replica.url, missing=sorted(missing)[:5])
        logs.append((replica.url, changes))
        checked("changes of agents read", len(changes))
    shortest = min((len(changes) for _, changes in logs), default=0)
    same("the log of agents is the same at each replica", [(url, changes[:shortest]) for url, changes in logs])


END = ("completed", "failed", "cancelled", "rejected", "expired", "revoked")


def check_tasks():
    tasks = {line["id"]: line["output"] for line in of("task")}
    for line in of("result"):
        if line["output"] != tasks[line["id"]]:
            violated("a result is the worker's", id=line["id"])
    reading = Reading("tasks")
    for n, (task, output) in enumerate(tasks.items()):
        logs = []
        for replica in reading.at(n):
            found = replica.read("depute.tasks.v1.TaskService/GetTask", {"taskId": task})["task"]
            if found["status"] != "TASK_STATUS_COMPLETED" or found["output"].get("result", found["output"].get("full")) != output:
                violated("each acknowledged task is completed once", task=task, replica=replica.url, found=found["status"])
            events = [
                (int(message["taskEvent"]["sequence"]), next((key for key in message["taskEvent"] if key in END), ""))
                for message in replica.stream(
                    "depute.tasks.v1.TaskService/WatchTask", {"taskId": task}, lambda message: False
                )
                if "taskEvent" in message
            ]
            if [sequence for sequence, _ in events] != list(range(1, len(events) + 1)):
                violated("a task's log has no gap", task=task, replica=replica.url, events=events)
            if len([end for _, end in events if end]) != 1:
                violated("a task has one end", task=task, replica=replica.url, events=events)
            logs.append((replica.url, events))
            checked("events read", len(events))
            checked("tasks read", 1)
        same("a task's log is the same at each replica", logs)


def token_of(line):
    return {"token": line["token"], "format": "delegateos-sjt-v1"}


def check_revocations():
    acknowledged = {line["revocationId"]: line for line in of("revoked")}
    last = max((line["sequence"] for line in acknowledged.values()), default=0)
    logs, heads = [], []
    requested = {"namespace": "docs", "action": "read", "resource": "/**"}
    reading = Reading("tokens")
    for n, line in enumerate(of("token")):
        for replica in reading.at(n):
            answer = replica.read(
                "depute.tokens.v1.TokenService/VerifyToken",
                {"token": token_of(line), "requested": requested, "minRevocationSequence": str(last)},
            )
            denial = answer.get("denial", {})
            if (line["revocationId"] in acknowledged) != ("revoked" in json.dumps(denial).lower()):
                violated("exactly the revoked tokens are denied as revoked", token=line["revocationId"], replica=replica.url, denial=denial)
            checked("tokens verified", 1)
    for replica in reading.all():
        log, after = [], 0
        while True:
            answer = replica.read(
                "depute.tokens.v1.RevocationService/ListRevocations", {"afterSequence": str(after), "pageSize": 100}
            )
            page = answer.get("revocations", [])
            log += [(int(each["sequence"]), each["entry"]["revocationId"], each["head"]) for each in page]
            if not page:
                break
            after = log[-1][0]
        if [sequence for sequence, _, _ in log] != list(range(1, len(log) + 1)):
            violated("the log of revocations has no gap", replica=replica.url)
        found = {revocation: sequence for sequence, revocation, _ in log}
        for revocation, line in acknowledged.items():
            if found.get(revocation) != line["sequence"]:
                violated("an acknowledged revocation has its place in the log", id=revocation, replica=replica.url)
        logs.append((replica.url, log))
        checkpoint = replica.read("depute.tokens.v1.RevocationService/GetRevocationCheckpoint", {})["checkpoint"]
        heads.append((replica.url, (checkpoint["sequence"], checkpoint["head"])))
        checked("revocations read", len(log))
    same("the log of revocations is the same at each replica", logs)
    same("the head of the revocations is the same at each replica", heads)


def check_spend():
    by_token = {}
    for line in of("reservation"):
        by_token.setdefault(line["token"], []).append(line)
    reading = Reading("tokens")
    for n, line in enumerate(of("reservation")):
        for replica in reading.at(n):
            found = replica.read("depute.tokens.v1.SpendService/GetReservation", {"reservationId": line["id"]})["reservation"]
            if (found["state"], int(found["amountMicrocents"])) != (line["state"], line["amount"]):
                violated("a reservation has its acknowledged state", id=line["id"], replica=replica.url, found=found["state"])
            checked("reservations read", 1)
    for n, line in enumerate(of("token")):
        made = by_token.get(line["token"], [])
        for replica in reading.at(n):
            level = replica.read("depute.tokens.v1.SpendService/GetBudget", {"token": token_of(line)})["levels"][0]
            sums = {
                state: sum(each["amount"] for each in made if each["state"].endswith(state)) for state in ("COMMITTED", "HELD")
            }
            spent, reserved = int(level.get("spentMicrocents", 0)), int(level.get("reservedMicrocents", 0))
            if (spent, reserved) != (sums["COMMITTED"], sums["HELD"]) or spent + reserved > line["budget"]:
                violated("a budget is exact", token=line["revocationId"], replica=replica.url, level=level, acknowledged=sums)
            checked("budgets read", 1)


def check_proofs():
    for line in of("proof"):
        for replica in gateways:
            try:
                replica.read("depute.tokens.v1.TokenService/GetIssuer", {}, {"dpop": line["dpop"]})
                violated("a used proof is refused at each replica", replica=replica.url, dpop=line["dpop"])
            except Refused as refused:
                if refused.code != "unauthenticated":
                    violated("a used proof is refused as such", replica=replica.url, error=str(refused))
            checked("proofs sent again", 1)


def node(left, right):
    return hashlib.sha256(b"\x01" + left + right).digest()


def consistent(first, second, first_root, second_root, path):
    """Verifies a consistency proof (RFC 9162 section 2.1.4.2)."""
    if first == second:
        return first_root == second_root
    if first == 0:
        return True
    if first & (first - 1) == 0:
        path = [first_root, *path]
    if not path:
        return False
    fn, sn = first - 1, second - 1
    while fn & 1:
        fn, sn = fn >> 1, sn >> 1
    fr = sr = path[0]
    for c in path[1:]:
        if sn == 0:
            return False
        if fn & 1 or fn == sn:
            fr, sr = node(c, fr), node(c, sr)
            while not fn & 1 and fn:
                fn, sn = fn >> 1, sn >> 1
        else:
            sr = node(sr, c)
        fn, sn = fn >> 1, sn >> 1
    return sn == 0 and fr == first_root and sr == second_root


def check_log():
    seen = {}
    for line in of("head"):
        if seen.setdefault(line["size"], line["root"]) != line["root"]:
            violated("one size of the log has one root", size=line["size"])
    for replica in Reading("verifier").all():
        head = replica.read("depute.verifier.v1.LogService/GetLogHead", {})["head"]
        size, root = int(head.get("treeSize", 0)), base64.b64decode(head["rootHash"])
        for first, first_root in seen.items():
            if first > size:
                violated("an acknowledged head is part of the log", size=first, replica=replica.url)
                continue
            if first == 0:
                continue
            proof = replica.read(
                "depute.verifier.v1.LogService/GetConsistencyProof", {"firstSize": str(first), "secondSize": str(size)}
            )
            path = [base64.b64decode(each) for each in proof.get("hashes", [])]
            if not consistent(first, size, base64.b64decode(first_root), root, path):
                violated("an acknowledged head is a prefix of the log", size=first, replica=replica.url)
            checked("heads proven", 1)


for line in of("violation"):
    violations.append({key: value for key, value in line.items() if key != "kind"})
for check in (check_agents, check_tasks, check_revocations, check_spend, check_proofs, check_log):
    try:
        check()
    except Exception as error:
        violated(f"{check.__name__} can be made", error=f"{type(error).__name__} {error}")
for rule in dict.fromkeys(violation["rule"] for violation in violations):
    broken = [violation for violation in violations if violation["rule"] == rule]
    print(f"VIOLATION, {len(broken)} times: {json.dumps(broken[0])[:1500]}", file=sys.stderr)
print(json.dumps({"counts": counts, "violations": len(violations)}))
sys.exit(1 if violations else 0)
