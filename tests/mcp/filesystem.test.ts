import { join } from "node:path";
import { createRevocation } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { call, result } from "../gateway/platform.ts";
import { connect, type Grant, grant, holderFetch, type Revision, refusal, textOf } from "./holder.ts";
import { filesystem, type McpPlatform, makeFiles, startPlatform } from "./platform.ts";

const { root, remove } = makeFiles();
const at = (path: string) => join(root, path);
let platform: McpPlatform;
beforeAll(async () => {
  platform = await startPlatform({
    files: { stdio: filesystem(root), maps: ["filesystem"], revision: "legacy" },
    paid: {
      stdio: filesystem(root),
      map: {
        tools: {
          read_text_file: {
            namespace: "docs",
            action: "read",
            resource: { argument: "/path", form: "real-path" },
            cost: 100,
          },
        },
      },
      revision: "legacy",
    },
  });
}, 60_000);
afterAll(async () => {
  await platform.stop();
  remove();
});

const readingDocs = () => grant(platform, [["docs", "read", at("docs/**")]]);
const clientOf = (holder: Grant, revision: Revision = "2026-07-28", name = "files") =>
  connect(platform.mcp(name), revision, holderFetch(holder));

describe.each<Revision>(["2026-07-28", "2025-11-25"])(
  "a token for docs:read on one folder, %s",
  (revision) => {
    test("lists and reads there", async () => {
      const client = await clientOf(await readingDocs(), revision);
      const names = (await client.listTools()).tools.map(({ name }) => name);
      expect(names).toContain("read_text_file");
      expect(names).toContain("list_directory");
      expect(names).not.toContain("write_file");
      expect(names).not.toContain("move_file");
      const list = await client.callTool({ name: "list_directory", arguments: { path: at("docs") } });
      expect(textOf(list)).toContain("[FILE] plan.txt");
      const read = await client.callTool({
        name: "read_text_file",
        arguments: { path: at("docs/deep/note.txt") },
      });
      expect(textOf(read)).toBe("the note");
      await client.close();
    });

    test.each([
      ["a folder beside it", () => at("secret/key.txt")],
      ["a folder whose name begins like it", () => at("docs-secret/key.txt")],
      ["the folder above", () => root],
      ["dots that leave the folder", () => `${at("docs")}/../secret/key.txt`],
      ["dots within the folder", () => `${at("docs")}/./plan.txt`],
      ["dots after a blank that the server trims", () => `${at("docs")}/..\u00a0`],
      ["dots before a quote that the server removes", () => `${at("docs")}/.."`],
      ["escaped dots", () => `${at("docs")}/%2e%2e/secret/key.txt`],
      ["full-width dots", () => `${at("docs")}/\uff0e\uff0e/secret/key.txt`],
      ["a backslash", () => `${at("docs")}/..\\secret\\key.txt`],
      ["a doubled slash", () => `${at("docs")}//plan.txt`],
      ["a relative path", () => "docs/plan.txt"],
      ["the home folder", () => "~/docs/plan.txt"],
      ["a wildcard", () => `${at("docs")}/*`],
      ["every resource", () => "*"],
      ["a link that leaves the folder", () => at("docs/link/key.txt")],
      ["a NUL", () => `${at("docs/plan.txt")}\0`],
      ["no text", () => ({ path: at("docs") })],
      ["several at once", () => [at("docs/plan.txt"), at("secret/key.txt")]],
      ["nothing", () => undefined],
      ["an empty text", () => ""],
      ["a path that is too long", () => at(`docs/${"x".repeat(2000)}`)],
    ])("reads nothing else: %s", async (_, path) => {
      const client = await clientOf(await readingDocs(), revision);
      const call = client.callTool({ name: "read_text_file", arguments: { path: path() } });
      expect(await refusal(call)).toMatchObject({
        code: -32001,
        data: { type: expect.stringMatching(/^(capability_not_granted|invalid_resource)$/) },
      });
      await client.close();
    });

    test("cannot write, move or read several files in any folder", async () => {
      const client = await clientOf(await readingDocs(), revision);
      const calls = [
        ["write_file", { path: at("docs/new.txt"), content: "new" }],
        ["move_file", { source: at("docs/plan.txt"), destination: at("docs/other.txt") }],
        ["read_multiple_files", { paths: [at("docs/plan.txt"), at("secret/key.txt")] }],
        ["list_allowed_directories", {}],
      ] as const;
      for (const [name, args] of calls) {
        const { code, data } = await refusal(client.callTool({ name, arguments: args }));
        expect([name, code, data.type]).toEqual([name, -32001, "capability_not_granted"]);
      }
      await client.close();
    });
  },
);

test("a token that is revoked during a session is refused at the next call", async () => {
  const holder = await readingDocs();
  const client = await clientOf(holder, "2025-11-25");
  const read = () => client.callTool({ name: "read_text_file", arguments: { path: at("docs/plan.txt") } });
  expect(textOf(await read())).toBe("the plan");
  const revocation = createRevocation(engine, holder.revocationId, "block", holder.keypair);
  await result(platform.post("/delegateos", call("delegateos/revoke", { revocation, dct: holder.token })));
  expect(await refusal(read())).toMatchObject({ code: -32001, data: { type: "revoked" } });
  expect((await client.listTools()).tools).toEqual([]);
  await client.close();
});

test("a budget of ten calls allows exactly ten of 30 concurrent ones", async () => {
  const holder = await grant(platform, [["docs", "read", at("docs/**")]], 1000);
  const client = await clientOf(holder, "2026-07-28", "paid");
  const read = () => client.callTool({ name: "read_text_file", arguments: { path: at("docs/plan.txt") } });
  const outcomes = await Promise.all(
    Array.from({ length: 30 }, () => read().then(textOf, async (thrown) => thrown.data?.type)),
  );
  expect(outcomes.filter((outcome) => outcome === "the plan")).toHaveLength(10);
  expect(outcomes.filter((outcome) => outcome === "budget_exceeded")).toHaveLength(20);
  expect(await refusal(read())).toMatchObject({ code: -32001, data: { type: "budget_exceeded" } });
  await client.close();
});
