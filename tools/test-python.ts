/**
 * `npm run test:python`: builds the wheel of sdk/python, installs it into an empty environment, and runs its tests
 * against a real platform. Arguments go to pytest.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const SDK = resolve("sdk/python");

/** The oldest Python that the package supports. */
const MIN_MINOR = 10;

/**
 * Runs a program until it ends.
 *
 * @throws Error if the program fails
 */
function run(program: string, args: readonly string[], cwd = "."): void {
  const { status, error } = spawnSync(program, args, { stdio: "inherit", cwd });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${program} ${args.slice(0, 3).join(" ")} ended with ${status}`);
}

function hasPython(): boolean {
  const check = `import sys, venv, ensurepip; sys.exit(sys.version_info < (3, ${MIN_MINOR}))`;
  return spawnSync("python3", ["-c", check]).status === 0;
}

/** Creates a Python environment with the given packages. Returns its folder. */
function environment(folder: string, ...packages: string[]): string {
  run("python3", ["-m", "venv", folder]);
  const python = join(folder, "bin", "python");
  run(python, ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", ...packages]);
  return python;
}

function test(scratch: string): void {
  run(process.execPath, ["tools/bundle.ts"]);
  const wheels = join(scratch, "dist");
  const builder = environment(join(scratch, "build"), "build");
  // The wheel is built from the source distribution, so that the test covers both.
  run(builder, ["-m", "build", "--outdir", wheels, SDK]);
  const wheel = readdirSync(wheels).find((name) => name.endsWith(".whl"));
  if (wheel === undefined) throw new Error("no wheel was built");
  const python = environment(join(scratch, "installed"), `${join(wheels, wheel)}[test]`);
  // mypy runs in another folder, so that it checks the installed package and not the sources.
  run(python, ["-m", "mypy", "--strict", "-p", "depute"], scratch);
  const args = ["-q", "-p", "no:cacheprovider", ...process.argv.slice(2)];
  run(python, ["-m", "pytest", "--rootdir", SDK, ...args, join(SDK, "tests")], scratch);
}

if (!hasPython()) {
  const lack = `There is no Python 3.${MIN_MINOR} or later with venv and pip`;
  if (process.env.CI === "true") throw new Error(`${lack}: with CI=true its tests may not be skipped.`);
  console.warn(`\n*** ${lack}: THE PYTHON SDK IS NOT TESTED. ***\n`);
} else {
  const scratch = mkdtempSync(join(tmpdir(), "depute-python-"));
  try {
    test(scratch);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}
