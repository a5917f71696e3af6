"""Tests that the programs in the README run."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
DOCUMENTED = "http://127.0.0.1:8080"


def program(first_line: str, url: str) -> str:
    """The code block of the README that begins with `first_line`, with the address of a test platform."""
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    [block] = [block for block in blocks if block.startswith(first_line)]
    return str(block).replace(DOCUMENTED, url)


def test_the_delegator_of_the_readme_receives_the_result_of_its_worker(url: str, tmp_path: Path) -> None:
    delegator = program("import asyncio, depute", url)
    work = program("async def handle", url)
    work = f"import asyncio, depute\n{work}\nasyncio.run(main())\n"
    worker = subprocess.Popen([sys.executable, "-c", work], cwd=tmp_path)
    try:
        until = time.monotonic() + 30
        while True:
            done = subprocess.run([sys.executable, "-c", delegator], capture_output=True, text=True)
            if done.returncode == 0 or time.monotonic() > until:
                break
            # The worker is not registered yet.
            assert "AGENT_NOT_FOUND" in done.stderr or "CAPABILITY_NOT_FOUND" in done.stderr, done.stderr
        assert done.stdout.splitlines()[-1] == "{'pages': 10}", done.stderr
    finally:
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(15) == 0
