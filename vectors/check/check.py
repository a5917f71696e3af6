"""Verifies the test vectors with code that follows only the specification pages.

Usage: check.py [name...]    verifies the files of these names, or all
It needs Python 3.9 and the package `cryptography`. The exit status is 1 after a difference.
"""

import json
import pathlib
import sys

import canonical_json
import keys_and_principals
import holder_proofs
import holder_sessions
import asp_envelopes
import merkle_proofs
import attestations
import dsse
import transcripts
import agenta_digests
import authority_bundle
import tokens
from refusal import Refusal

CHECKS = {
    "canonical-json": canonical_json.OPERATIONS,
    "keys-and-principals": keys_and_principals.OPERATIONS,
    "tokens": tokens.OPERATIONS,
    "holder-proofs": holder_proofs.OPERATIONS,
    "holder-sessions": holder_sessions.OPERATIONS,
    "asp-envelopes": asp_envelopes.OPERATIONS,
    "merkle-proofs": merkle_proofs.OPERATIONS,
    "attestations": attestations.OPERATIONS,
    "dsse": dsse.OPERATIONS,
    "transcripts": transcripts.OPERATIONS,
    "authority-bundles": authority_bundle.OPERATIONS,
    "agenta-digests": agenta_digests.OPERATIONS,
}

FOLDER = pathlib.Path(__file__).resolve().parent.parent


def answer(operation, case):
    """The script's answer to a case, in the form of the case."""
    try:
        return {"expected": operation(case["input"])}
    except Refusal as refusal:
        place = {"fault": refusal.fault} if "fault" in case else {}
        return {"refusal": refusal.reason, **place}


def differences(name):
    """The number of cases in a file, and a line for each case to which the script gives another answer."""
    cases = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))["cases"]
    lines = []
    for case in cases:
        wanted = {key: case[key] for key in ("expected", "refusal", "fault") if key in case}
        operation = CHECKS[name].get(case["operation"])
        got = answer(operation, case) if operation else "no such operation"
        if got != wanted:
            lines.append(f"{name}: {case['name']}\n  file:   {wanted}\n  script: {got}")
    return len(cases), lines


def main(names):
    unknown = [name for name in names if name not in CHECKS]
    files = {path.stem for path in FOLDER.glob("*.json")}
    failed = [f"{name}: no check" for name in sorted(files - set(CHECKS)) + unknown]
    for name in names or CHECKS:
        if name in CHECKS:
            count, lines = differences(name)
            failed += lines
            print(f"{name}: {count - len(lines)} of {count} cases hold")
    for line in failed:
        print(line, file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
