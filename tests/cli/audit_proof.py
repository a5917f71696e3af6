"""Checks a proof of one audit record with hashlib alone, from the comments of audit_service.proto. Prints the record."""

import base64
import datetime
import hashlib
import json
import sys


def sha256(data):
    return hashlib.sha256(data).digest()


def decode(text):
    return base64.b64decode(text)


def url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def canonical(document):
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def ms(text):
    whole, _, fraction = text.rstrip("Z").partition(".")
    time = datetime.datetime.fromisoformat(whole).replace(tzinfo=datetime.timezone.utc)
    return int(time.timestamp()) * 1000 + int((fraction + "000")[:3])


def root(data, index, size, path):
    """The root that an audit path leads to. (RFC 9162 2.1.3.2)"""
    found, last = sha256(b"\0" + data), size - 1
    for other in map(decode, path):
        assert last > 0, "the path is too long"
        if index % 2 or index == last:
            found = sha256(b"\1" + other + found)
            while index % 2 == 0 and index != 0:
                index, last = index // 2, last // 2
        else:
            found = sha256(b"\1" + found + other)
        index, last = index // 2, last // 2
    assert last == 0, "the path is too short"
    return found


proof = json.load(sys.stdin)
seal, inclusion, line = proof["seal"], proof["inclusion"], proof["line"]
first, last = int(seal["firstSequence"]), int(seal["lastSequence"])
place = int(json.loads(line)["sequence"]) - first
day_root = decode(seal["rootHash"])
assert root(line.encode(), place, last - first + 1, proof.get("hashes", [])) == day_root, "not in the seal"
document = {
    "day": seal["day"],
    "firstSequence": first,
    "format": "depute-audit-seal/2",
    "head": url(decode(seal["head"])),
    "lastSequence": last,
    "previousHead": url(decode(seal["previousHead"])),
    "rootHash": url(day_root),
}
leaf = {"digest": url(sha256(canonical(document))), "kind": "audit_seal", "time": ms(inclusion["appendTime"])}
place, size = int(inclusion.get("index", 0)), int(inclusion["treeSize"])
found = root(canonical(leaf), place, size, inclusion.get("hashes", []))
assert found == decode(inclusion["rootHash"]), "not in the log"
print(line)
