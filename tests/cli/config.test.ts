import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type User, userOf } from "./depute.ts";

let user: User;
beforeAll(() => {
  user = userOf("http://127.0.0.1:1");
});
afterAll(() => user.remove());

function save(name: string, ...lines: string[]): string {
  writeFileSync(join(user.folder, name), `${lines.join("\n")}\n`, { mode: 0o600 });
  return name;
}

describe("a file of settings", () => {
  test("starts the platform, and a flag wins over it", async () => {
    const file = save(
      "depute.yaml",
      "gatewayPort: 0",
      "dataDir: records",
      "logLevel: silent",
      "host: 127.0.0.2",
    );
    const child = user.start(["start", "--config-file", file, "--host", "127.0.0.1"]);
    try {
      let url: string | undefined;
      for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
        url = /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0];
        if (url !== undefined) break;
      }
      expect((await fetch(`${url}/readyz`)).status).toBe(200);
    } finally {
      child.kill("SIGKILL");
    }
  }, 120_000);

  test.each([
    ["depute start", ["start"]],
    ["depute serve", ["serve", "registry"]],
    ["depute doctor", ["doctor"]],
    ["depute config check", ["config", "check"]],
  ])("with a mistake is refused by %s in one line", async (_, words) => {
    const file = save("mistake.yaml", "host: 127.0.0.1", "", "maxDeadline: soon");
    expect(await user.run([...words, "--config-file", file])).toEqual({
      code: 1,
      out: "",
      err: "depute: mistake.yaml:3: maxDeadline: write a duration like 250ms, 30s, 5m or 1h\n",
    });
  });

  test("serves all processes, but depute start refuses settings that it does not use", async () => {
    const file = save("ports.yaml", "registryPort: 9001");
    expect((await user.run(["start", "--config-file", file])).err).toMatch(
      /^depute: ports\.yaml:1: registryPort: /,
    );
    expect(await user.run(["config", "check", "--config-file", file])).toMatchObject({
      code: 0,
      out: "the settings are valid, 1 of them from ports.yaml\n",
    });
  });

  test("is the output of depute config show", async () => {
    const flags = [
      "--host",
      "127.0.0.9",
      "--allowed-hosts",
      "a.example,b.example",
      "--internal-secret",
      "hidden",
    ];
    const { out } = await user.run(["config", "show", ...flags]);
    expect(out).not.toContain("hidden");
    const file = save("shown.yaml", out);
    const again = await user.run(["config", "show", "--config-file", file]);
    expect(again.out).toBe(
      "host: 127.0.0.9 # shown.yaml:1\nallowedHosts: [ a.example, b.example ] # shown.yaml:3\n",
    );
  }, 60_000);
});
