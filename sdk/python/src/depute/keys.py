"""Ed25519 keys, and the principals that their public halves are."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from nacl import bindings
from nacl.exceptions import CryptoError

from . import encodings

#: Bytes of a seed and of a public key.
KEY_BYTES = 32
SIGNATURE_BYTES = 64

_FIELD = 2**255 - 19
_ORDER = 2**252 + 27742317777372353535851937790883648493

#: All encodings of the eight points of small order. With such a point, one signature is valid for many keys
#: or messages.
_SMALL_ORDER = frozenset(
    bytes.fromhex(text)
    for text in (
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0000000000000000000000000000000000000000000000000000000000000080",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "0100000000000000000000000000000000000000000000000000000000000080",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    )
)


@dataclass(frozen=True)
class Keypair:
    """An Ed25519 key. `principal` is its public half in base64url: 43 characters."""

    seed: bytes = field(repr=False)
    principal: str

    @classmethod
    def generate(cls) -> Keypair:
        """A new key from the operating system's random source."""
        return cls.from_seed(secrets.token_bytes(KEY_BYTES))

    @classmethod
    def from_seed(cls, seed: bytes) -> Keypair:
        """The key of a seed of 32 bytes. (DelegateOS 2) Raises ValueError for another length."""
        if len(seed) != KEY_BYTES:
            raise ValueError(f"an Ed25519 seed has {KEY_BYTES} bytes, not {len(seed)}")
        public, _ = bindings.crypto_sign_seed_keypair(seed)
        return cls(bytes(seed), encodings.encode(public))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Keypair:
        """Reads a file that save wrote: the seed in base64url. Raises ValueError for another content."""
        seed = encodings.decode(Path(path).read_text("ascii").strip())
        if seed is None or len(seed) != KEY_BYTES:
            raise ValueError(f"{path} is not a key: expected {KEY_BYTES} bytes in base64url")
        return cls.from_seed(seed)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the seed to a new file, readable only by the user. Raises FileExistsError for an existing file."""
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(encodings.encode(self.seed) + "\n")

    @classmethod
    def load_or_create(cls, path: str | os.PathLike[str]) -> Keypair:
        """Reads the key whose seed a file contains. If the file is missing, creates it with a new key."""
        try:
            keypair = cls.generate()
            keypair.save(path)
            return keypair
        except FileExistsError:
            return cls.load(path)

    def sign(self, message: bytes) -> bytes:
        """The signature of a message: 64 bytes."""
        public, secret = bindings.crypto_sign_seed_keypair(self.seed)
        signed: bytes = bindings.crypto_sign(message, secret)
        return signed[:SIGNATURE_BYTES]


def is_acceptable_key(key: bytes) -> bool:
    """Whether a public key has a canonical encoding and is not of small order."""
    y = int.from_bytes(key, "little") & ((1 << 255) - 1)
    return len(key) == KEY_BYTES and y < _FIELD and key not in _SMALL_ORDER


def parse_principal(text: object) -> bytes | None:
    """The public key of a principal; None unless the text is its one spelling."""
    if not isinstance(text, str) or len(text) != 43:
        return None
    key = encodings.decode(text)
    return key if key is not None and is_acceptable_key(key) else None


def is_principal(text: object) -> bool:
    """Whether a text is a principal, as parse_principal reads it."""
    return parse_principal(text) is not None


def is_admissible(text: object) -> bool:
    """Whether a principal may be a trusted root or be registered: its key is of prime order."""
    key = parse_principal(text)
    return key is not None and bool(bindings.crypto_core_ed25519_is_valid_point(key))


def verify(signature: bytes, message: bytes, public_key: bytes) -> bool:
    """
    Whether a signature is valid. The check uses the equation without the cofactor. It requires canonical
    encodings of the key and of both halves of the signature, and no point of small order.
    """
    if len(signature) != SIGNATURE_BYTES or not is_acceptable_key(public_key):
        return False
    if int.from_bytes(signature[32:], "little") >= _ORDER or signature[:32] in _SMALL_ORDER:
        return False
    try:
        bindings.crypto_sign_open(signature + message, public_key)
    except (CryptoError, ValueError):
        return False
    return True


def agree(seed: bytes, public_key: bytes) -> bytes | None:
    """
    The X25519 shared secret of an Ed25519 seed and the other side's Ed25519 key; None unless that key is of
    prime order.
    """
    if not is_acceptable_key(public_key) or not bindings.crypto_core_ed25519_is_valid_point(public_key):
        return None
    own, secret = bindings.crypto_sign_seed_keypair(seed)
    scalar = bindings.crypto_sign_ed25519_sk_to_curve25519(secret)
    other = bindings.crypto_sign_ed25519_pk_to_curve25519(public_key)
    shared: bytes = bindings.crypto_scalarmult(scalar, other)
    return shared
