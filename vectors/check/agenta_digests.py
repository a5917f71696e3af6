"""Digests and signatures of Agenta, from agenta-digests.md."""

import base64
import hashlib

from canonical_json import canonical
from keys_and_principals import principal_of, sign, thumbprint


def offer_digest(case):
    content = {name: value for name, value in case["offer"].items() if name != "offerVersion"}
    text = canonical(content)
    return {"canonical": text, "digestHex": hashlib.sha256(text.encode()).hexdigest()}


def callback(case):
    seed = bytes.fromhex(case["seedHex"])
    digest = base64.b64encode(hashlib.sha256(case["body"].encode()).digest()).decode()
    names = ("@method", "@target-uri", "content-type", "content-digest")
    values = ("POST", case["url"], case["contentType"], f"sha-256=:{digest}:")
    covered = " ".join(f'"{name}"' for name in names)
    key = thumbprint(principal_of(seed))
    params = f'({covered});created={case["created"]};keyid="{key}";alg="ed25519"'
    lines = [f'"{name}": {value}' for name, value in zip(names, values)]
    base = "\n".join([*lines, f'"@signature-params": {params}'])
    signature = base64.b64encode(sign(seed, base.encode())).decode()
    return {
        "contentDigest": values[3],
        "signatureInput": f"depute={params}",
        "base": base,
        "signature": f"depute=:{signature}:",
    }


OPERATIONS = {"offer-digest": offer_digest, "callback": callback}
