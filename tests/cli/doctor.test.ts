import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type User, userOf } from "./depute.ts";

describe("the command", () => {
  let user: User;
  beforeAll(() => {
    user = userOf("http://127.0.0.1:1");
  });
  afterAll(() => user.remove());

  test("fails for the settings of a first try, and names the changes", async () => {
    const { code, out, err } = await user.run(["doctor"]);
    expect([code, err]).toEqual([1, ""]);
    expect(out).toContain(
      "FAIL  credentials: calls without credentials are served; set DEPUTE_AUTH=required",
    );
    expect(out.trim().split("\n")).toHaveLength(16);
  });

  test("passes a deployment with real files, and prints JSON", async () => {
    const at = (name: string) => join(user.folder, name);
    const write = (name: string, text: string) => {
      writeFileSync(at(name), text, { mode: 0o600 });
      return at(name);
    };
    mkdirSync(at("data"), { mode: 0o700 });
    expect((await user.run(["certs", "create", at("certs")])).code).toBe(0);
    const flags = {
      ...{ auth: "required", "identities-file": write("identities.json", "{}"), "data-dir": at("data") },
      ...{ "public-url": "https://depute.example", "tls-min-version": "1.3", "metrics-port": "9090" },
      "tls-cert-file": at("certs/server.pem"),
      "tls-key-file": at("certs/server.key"),
      "master-key-file": write("master.key", "x"),
    };
    const words = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value]);
    const { code, out } = await user.run(["doctor", ...words, "--json"]);
    const findings = JSON.parse(out) as { id: string; status: string }[];
    expect(findings.filter(({ status }) => status === "fail")).toEqual([]);
    expect(code).toBe(0);
    chmodSync(at("master.key"), 0o644);
    expect((await user.run(["doctor", ...words])).out).toContain(
      `FAIL  secret-files: other users can read ${at("master.key")}`,
    );
  });

  test("refuses an unknown setting", async () => {
    expect(await user.run(["doctor", "--no-such"])).toMatchObject({
      code: 1,
      err: expect.stringContaining("--no-such"),
    });
  });
});
