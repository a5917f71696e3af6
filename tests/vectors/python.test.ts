import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { expect, test } from "vitest";

const CHECK = "vectors/check/check.py";
const VENV = ".generated/vectors-venv";
/** Timeout in milliseconds for the installation of the only package that the scripts need. */
const MAX_INSTALL_MS = 120_000;

/**
 * Returns a Python that has the package `cryptography`. Undefined if this machine lacks the package and cannot
 * install it.
 */
function findPython(): string | undefined {
  const hasPackage = (python: string) => spawnSync(python, ["-c", "import cryptography"]).status === 0;
  const own = `${VENV}/bin/python`;
  for (const python of ["python3", own]) if (hasPackage(python)) return python;
  if (!existsSync(own) && spawnSync("python3", ["-m", "venv", VENV]).status !== 0) return undefined;
  const install = ["-m", "pip", "install", "--quiet", "-r", "vectors/check/requirements.txt"];
  spawnSync(own, install, { timeout: MAX_INSTALL_MS });
  return hasPackage(own) ? own : undefined;
}

const python = findPython();
if (python === undefined) {
  const missing =
    "python3 with the package `cryptography` is needed: it checks the vectors by the pages alone";
  if (process.env.CI === "true") throw new Error(missing);
  // biome-ignore lint/suspicious/noConsole: a skipped test has to be seen by the person who runs it
  console.warn(`*** SKIPPED: ${missing} ***`);
}

test.runIf(python !== undefined)(
  "a program from the pages alone gives the answer of each case",
  () => {
    const { status, stderr } = spawnSync(python ?? "", ["-B", CHECK], { encoding: "utf8" });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  },
  60_000,
);
