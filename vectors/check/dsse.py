"""Envelopes of DSSE, from dsse.md."""

import base64

from canonical_json import canonical
from keys_and_principals import principal_of, sign


def check_envelope(case):
    seed, payload = bytes.fromhex(case["seedHex"]), bytes.fromhex(case["payloadHex"])
    kind = case["payloadType"].encode()
    signed = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)
    signature = {"keyid": principal_of(seed), "sig": base64.b64encode(sign(seed, signed)).decode()}
    envelope = {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": case["payloadType"],
        "signatures": [signature],
    }
    return {"signedHex": signed.hex(), "envelope": canonical(envelope)}


OPERATIONS = {"envelope": check_envelope}
