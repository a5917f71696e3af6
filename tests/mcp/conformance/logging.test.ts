import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connect, holderFetch, type Revision } from "../holder.ts";
import { grantAll, type StartedFixture, startBehindDepute } from "./behind-depute.ts";

let started: StartedFixture;
beforeAll(async () => {
  started = await startBehindDepute();
}, 60_000);
afterAll(() => started.stop());

/** Connects a client that keeps the log messages that it gets. */
async function listening(revision: Revision) {
  const holder = await grantAll(started.platform);
  const client = await connect(started.platform.mcp("fixture"), revision, holderFetch(holder));
  const logs: unknown[] = [];
  client.setNotificationHandler("notifications/message", ({ params }) => void logs.push(params.data));
  const work = (of: string, meta?: Record<string, unknown>) =>
    client.callTool({
      name: "test_tool_with_logging",
      arguments: { of },
      ...(meta === undefined ? {} : { _meta: meta }),
    });
  return { client, logs, work };
}
const linesOf = (of: string) => ["started", "works", "completed"].map((step) => `${of} ${step}`);

describe("the log messages of a server that clients share", () => {
  test("reach the client of their call alone", async () => {
    const clients = await Promise.all(["one", "two", "three"].map(() => listening("2025-11-25")));
    await Promise.all(clients.flatMap(({ work }, i) => [work(`call ${i}`), work(`call ${i}`)]));
    for (const [i, { client, logs }] of clients.entries()) {
      const lines = linesOf(`call ${i}`);
      expect(logs.toSorted()).toEqual([...lines, ...lines].toSorted());
      await client.close();
    }
  });

  test("are those of the level that the session set", async () => {
    const { client, logs, work } = await listening("2025-11-25");
    await client.setLoggingLevel("warning");
    await work("quiet");
    expect(logs).toEqual([]);
    await client.setLoggingLevel("info");
    await work("loud");
    expect(logs).toEqual(linesOf("loud"));
    await client.close();
  });

  test("are sent in revision 2026-07-28 to the request that asks for them", async () => {
    const { client, logs, work } = await listening("2026-07-28");
    await work("quiet");
    await work("quieter", { "io.modelcontextprotocol/logLevel": "error" });
    expect(logs).toEqual([]);
    await work("loud", { "io.modelcontextprotocol/logLevel": "info" });
    expect(logs).toEqual(linesOf("loud"));
    await client.close();
  });
});
