"""Keys, principals, signatures and digests, from keys-and-principals.md."""

import base64
import hashlib
import re

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from refusal import Refusal

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
RAW = (serialization.Encoding.Raw, serialization.PublicFormat.Raw)


def _small_order():
    yield from ("00" * 31 + last for last in ("00", "80"))
    yield from ("01" + "00" * 30 + last for last in ("00", "80"))
    yield from (first + "ff" * 30 + last for first in ("ec", "ed", "ee") for last in ("7f", "ff"))
    yield from ("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc" + last for last in ("05", "85"))
    yield from ("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03" + last for last in ("7a", "fa"))


SMALL_ORDER = {bytes.fromhex(text) for text in _small_order()}


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text):
    """The bytes of a base64url text; refuses every second spelling."""
    if not isinstance(text, str) or re.fullmatch("[A-Za-z0-9_-]*", text) is None or len(text) % 4 == 1:
        raise Refusal("malformed_token", "base64url")
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if encode(data) != text:
        raise Refusal("malformed_token", "unused bits")
    return data


def public_key(seed):
    return Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes(*RAW)


def principal_of(seed):
    return encode(public_key(seed))


def thumbprint(principal):
    return encode(hashlib.sha256(f'{{"crv":"Ed25519","kty":"OKP","x":"{principal}"}}'.encode()).digest())


def sign(seed, message):
    return Ed25519PrivateKey.from_private_bytes(seed).sign(message)


def acceptable_key(key):
    y = int.from_bytes(key, "little") & (2**255 - 1)
    return len(key) == 32 and y < P and key not in SMALL_ORDER


def verify(signature, message, key):
    """Whether a signature is valid by Depute's rule."""
    if len(signature) != 64 or int.from_bytes(signature[32:], "little") >= L:
        return False
    if signature[:32] in SMALL_ORDER or not acceptable_key(key) or point(key) is None:
        return False
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def principal_key(principal):
    """The key of a principal id; refuses an invalid id."""
    if not isinstance(principal, str) or len(principal) != 43:
        raise Refusal("malformed_token", "principal")
    key = decode(principal)
    if not acceptable_key(key):
        raise Refusal("malformed_token", "principal")
    return key


def point(key):
    """The affine point of an encoding, or None."""
    number = int.from_bytes(key, "little")
    y, sign_bit = number & (2**255 - 1), number >> 255
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * pow(2, (P - 1) // 4, P) % P
    if x * x % P != square or (x == 0 and sign_bit):
        return None
    return (P - x if x & 1 != sign_bit else x, y)


def add(a, b):
    (x1, y1), (x2, y2) = a, b
    t = D * x1 * x2 * y1 * y2 % P
    return (
        (x1 * y2 + x2 * y1) * pow(1 + t, -1, P) % P,
        (y1 * y2 + x1 * x2) * pow(1 - t, -1, P) % P,
    )


def is_admissible(key):
    """Whether a key is a point of prime order."""
    base = point(key)
    if base is None:
        return False
    total, factor = (0, 1), L
    while factor:
        if factor & 1:
            total = add(total, base)
        base = add(base, base)
        factor >>= 1
    return total == (0, 1)


def blake2b(data, key=b""):
    return hashlib.blake2b(data, digest_size=32, key=key).digest()


def check_keypair(case):
    seed = bytes.fromhex(case["seedHex"])
    principal = principal_of(seed)
    return {
        "publicKeyHex": public_key(seed).hex(),
        "principal": principal,
        "thumbprint": thumbprint(principal),
    }


def check_verify(case):
    values = (bytes.fromhex(case[name]) for name in ("signatureHex", "messageHex", "publicKeyHex"))
    return {"valid": verify(*values)}


def check_principal(case):
    key = principal_key(case["principal"])
    return {"publicKeyHex": key.hex(), "admissible": is_admissible(key)}


def check_sign(case):
    return {"signature": encode(sign(bytes.fromhex(case["seedHex"]), bytes.fromhex(case["messageHex"])))}


def check_blake2b(case):
    data = bytes.fromhex(case["dataHex"])
    return {"unkeyedHex": blake2b(data).hex(), "keyedHex": blake2b(data, bytes.fromhex(case["keyHex"])).hex()}


OPERATIONS = {
    "decode-base64url": lambda case: {"hex": decode(case["text"]).hex()},
    "keypair": check_keypair,
    "sign": check_sign,
    "verify": check_verify,
    "principal": check_principal,
    "blake2b": check_blake2b,
}
