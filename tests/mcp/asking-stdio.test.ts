import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Json } from "../gateway/platform.ts";
import { connect, type Grant, grant, holderFetch, type Revision } from "./holder.ts";
import { type McpPlatform, startPlatform } from "./platform.ts";

/** This file tests servers over stdio that ask their clients. The clients are official, the server uses no SDK. */

const stdio = { command: process.execPath, args: [new URL("asking-server.ts", import.meta.url).pathname] };
const map = {
  tools: { ask: { namespace: "data", action: "query", resource: "one" } },
  passed: ["elicitation/create"],
};

let platform: McpPlatform;
beforeAll(async () => {
  const legacy = { map, revision: "legacy" };
  platform = await startPlatform({
    shared: { ...legacy, stdio },
    abandoned: { ...legacy, stdio },
    session: { ...legacy, stdio: { ...stdio, process: "session" } },
  });
}, 60_000);
afterAll(() => platform.stop(), 60_000);

const allowed = () => grant(platform, [["data", "query", "one"]]);

/** Connects a client that answers questions with a name; without a name it declares no elicitation. */
async function client(server: string, revision: Revision, name: string | undefined, holder: Grant) {
  const capabilities = name === undefined ? {} : { elicitation: { form: {} } };
  const connected = await connect(platform.mcp(server), revision, holderFetch(holder), { capabilities });
  if (name !== undefined)
    connected.setRequestHandler("elicitation/create", () => ({ action: "accept", content: { name } }));
  return {
    ask: async (after_ms = 0, signal?: AbortSignal): Promise<Json> => {
      const call = { name: "ask", arguments: { after_ms } };
      const { content } = (await connected.callTool(call, signal && { signal })) as Json;
      return JSON.parse(content[0].text);
    },
    async end() {
      const { transport } = connected;
      if (transport instanceof StreamableHTTPClientTransport) await transport.terminateSession();
      await connected.close();
    },
  };
}

const answered = (name: string) => ({ action: "accept", content: { name } });

describe.each<Revision>(["2025-11-25", "2026-07-28"])(
  "a process that clients share, with a client of %s",
  (revision) => {
    test("asks the client of the only running call", async () => {
      const [ada, bob] = [
        await client("shared", revision, "Ada", await allowed()),
        await client("shared", revision, "Bob", await allowed()),
      ];
      expect((await ada.ask()).answer).toEqual(answered("Ada"));
      expect((await bob.ask()).answer).toEqual(answered("Bob"));
      for (const each of [ada, bob]) await each.end();
    });

    test("does not ask a client without the capability, and does not declare one for it", async () => {
      const silent = await client("shared", revision, undefined, await allowed());
      expect(await silent.ask()).toMatchObject({ declared: {}, answer: "not asked" });
      await silent.end();
    });

    test("gets an error for a question while calls of several clients run", async () => {
      const clients = [
        await client("shared", revision, "Ada", await allowed()),
        await client("shared", revision, "Bob", await allowed()),
      ];
      const asked = await Promise.all(clients.map(({ ask }) => ask(1000)));
      const refused = { code: -32603, data: { detail: expect.stringContaining('"process": "session"') } };
      expect(asked[0]?.answer).toMatchObject(refused);
      expect(asked[1]?.answer).not.toEqual(answered("Ada"));
      for (const each of clients) await each.end();
    });
  },
);

test("a question for a call whose client has left reaches no other client", async () => {
  const [ada, bob] = [
    await client("abandoned", "2026-07-28", "Ada", await allowed()),
    await client("abandoned", "2026-07-28", "Bob", await allowed()),
  ];
  const leaving = new AbortController();
  const left = ada.ask(1000, leaving.signal).catch(() => "left");
  // The second call is open together with the first. When the server asks, only the second is left.
  const asked = bob.ask(1500);
  await new Promise((resolve) => setTimeout(resolve, 300));
  leaving.abort();
  expect(await left).toBe("left");
  expect((await asked).answer).toMatchObject({ code: -32603 });
  for (const each of [ada, bob]) await each.end();
});

describe.each<Revision>(["2025-11-25", "2026-07-28"])(
  "a process for each session, with a client of %s",
  (revision) => {
    test("asks its own client alone, also while other sessions have calls", async () => {
      const [ada, bob] = [
        await client("session", revision, "Ada", await allowed()),
        await client("session", revision, "Bob", await allowed()),
      ];
      const [one, two] = await Promise.all([ada.ask(1000), bob.ask(1000)]);
      expect([one?.answer, two?.answer]).toEqual([answered("Ada"), answered("Bob")]);
      expect(one?.pid).not.toBe(two?.pid);
      expect((await ada.ask()).pid).toBe(one?.pid);
      for (const each of [ada, bob]) await each.end();
    });
  },
);

test("the process of a session ends with the session", async () => {
  const ada = await client("session", "2025-11-25", "Ada", await allowed());
  const { pid } = await ada.ask();
  expect(process.kill(pid, 0)).toBe(true);
  await ada.end();
  await expect.poll(() => isRunning(pid), { timeout: 10_000 }).toBe(false);
});

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
