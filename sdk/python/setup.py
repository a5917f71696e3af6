"""Writes the contracts into the package before setuptools collects its files."""

import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

sys.path.insert(0, str(Path(__file__).parent))
from generate import generate  # noqa: E402


class BuildWithContracts(build_py):
    def run(self) -> None:
        generate()
        super().run()


class SourceWithContracts(sdist):
    def run(self) -> None:
        generate()
        super().run()


setup(cmdclass={"build_py": BuildWithContracts, "sdist": SourceWithContracts})
