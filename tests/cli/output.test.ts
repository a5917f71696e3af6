import { spawnSync } from "node:child_process";
import { existsSync, openSync } from "node:fs";
import { expect, test } from "vitest";
import { MAIN } from "./depute.ts";

test.runIf(existsSync("/dev/full"))("a full disk under the output is one line of error", () => {
  const stdio = ["ignore", openSync("/dev/full", "w"), "pipe"] as const;
  const { status, stderr } = spawnSync(process.execPath, [MAIN, "--help"], {
    stdio: [...stdio],
    encoding: "utf8",
  });
  expect({ status, stderr }).toEqual({
    status: 1,
    stderr: expect.stringMatching(
      /^depute: the output cannot be written: ENOSPC.*; check its disk or device\n$/,
    ),
  });
});

test("a reader that closes the output early is no error", () => {
  const command = `"${process.execPath}" "${MAIN}" --help | true; exit "\${PIPESTATUS[0]}"`;
  const { status, stderr } = spawnSync("bash", ["-c", command], { encoding: "utf8" });
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
});
