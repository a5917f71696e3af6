"""Tests of the example's programs: their length, and the output of a whole run."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[3] / "examples" / "quickstart"


@pytest.mark.parametrize("name", ["worker.py", "delegator.py"])
def test_a_program_has_at_most_40_lines(name: str) -> None:
    assert len((EXAMPLE / name).read_text().splitlines()) <= 40


def test_the_work_is_delegated_checked_attested_and_refused_after_the_revocation(
    url: str, tmp_path: Path
) -> None:
    worker = subprocess.Popen(
        [sys.executable, EXAMPLE / "worker.py", url], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    try:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
        done = subprocess.run(
            [sys.executable, EXAMPLE / "delegator.py", url], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert "{'processed': 500, 'total': 500, 'message': ''}" in done.stdout
        assert "'count': 500" in lines[-4]
        assert lines[-4].endswith("passed") and "NOT" not in lines[-4]
        assert lines[-3] == "attestation valid"
        assert lines[-2].startswith("revocation ")
        assert lines[-1].startswith("refused: Reason.TOKEN_DENIED")
    finally:
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(15) == 0
