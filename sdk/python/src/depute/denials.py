"""Denials of tokens and proofs, with their reasons. (DelegateOS 10.1, 11.2)"""

from __future__ import annotations

from typing import Any


class TokenError(ValueError):
    """
    A token, block, proof or signed object is denied.

    `type` is one word, such as `expired`. `detail` names the place and the fault. `facts` hold `requested`, `granted`,
    `max`, `actual` or `level` where the type has them.
    """

    def __init__(self, type: str, detail: str | None = None, **facts: Any) -> None:
        super().__init__(type if detail is None else f"{type}: {detail}")
        self.type = type
        self.detail = detail
        self.facts = facts

    @property
    def denial(self) -> dict[str, Any]:
        """The denial as a dict: `type`, `detail` and the facts."""
        detail = {} if self.detail is None else {"detail": self.detail}
        return {"type": self.type, **detail, **self.facts}
