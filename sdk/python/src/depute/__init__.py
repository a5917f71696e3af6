"""Depute: delegate work between software agents."""

from .client import Client, connect
from .denials import TokenError
from .errors import DeputeError, FieldViolation, Reason, TaskEnded, reason_of
from .keys import Keypair, is_principal, parse_principal
from .objects import sign_attestation, sign_contract, sign_object, sign_revocation, verify_object
from .proofs import create_proof, holder_headers
from .task import Event, Result, Task
from .tokens import Presentation, Token, Verified, capability, verify_token
from .values import Json, ValueProblem
from .work import Interrupted, Output, QuestionKind, Work, WorkFailure, WorkSuspension
from .worker import Worker

__all__ = [
    "Client",
    "DeputeError",
    "Event",
    "FieldViolation",
    "Interrupted",
    "Json",
    "Keypair",
    "Output",
    "Presentation",
    "QuestionKind",
    "Reason",
    "Result",
    "Task",
    "TaskEnded",
    "Token",
    "TokenError",
    "ValueProblem",
    "Verified",
    "Work",
    "WorkFailure",
    "WorkSuspension",
    "Worker",
    "capability",
    "connect",
    "create_proof",
    "holder_headers",
    "is_principal",
    "parse_principal",
    "reason_of",
    "sign_attestation",
    "sign_contract",
    "sign_object",
    "sign_revocation",
    "verify_object",
    "verify_token",
]
