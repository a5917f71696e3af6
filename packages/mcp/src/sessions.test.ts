import { ManualClock, systemTimers } from "@depute/core";
import { afterEach, describe, expect, test, vi } from "vitest";
import { HttpFace } from "./http-face.ts";
import { once, type Presentation } from "./presentation.ts";
import { bench, type Json, LIST, text, token } from "./testing/parts.ts";

const faces: HttpFace[] = [];
afterEach(async () => {
  for (const face of faces.splice(0)) await face.close();
});

function start() {
  const clock = new ManualClock(0);
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const made = bench({
    ...LIST,
    async "tools/call"({ name, arguments: { isSlow } }: Json) {
      if (isSlow) await released;
      return text(`${name} was called`);
    },
  });
  const face = new HttpFace({
    proxy: made.proxy,
    clock,
    timers: systemTimers,
    audience: () => "mcp:bench",
    onError: () => {},
  });
  faces.push(face);
  const post = (
    body: Json,
    headers: Record<string, string> = {},
    presentation: Presentation = token("one"),
  ) => face.answer(requestOf(headers), body, presentation);
  /**
   * Opens an MCP session of revision 2025-11-25.
   *
   * @returns the id of the session
   */
  const open = async () => {
    const answer = await post({
      jsonrpc: "2.0",
      id: 0,
      method: "initialize",
      params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "test", version: "1" } },
    });
    await answer.text();
    return answer.headers.get("mcp-session-id") ?? "";
  };
  return { ...made, face, clock, post, open, release };
}

const requestOf = (headers: Record<string, string>) =>
  new Request("http://proxy/mcp/bench", {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...headers,
    },
  });

const LIST_TOOLS = { jsonrpc: "2.0", id: 1, method: "tools/list", params: {} };

describe("sessions of revisions before 2026-07-28", () => {
  test("continue by their id", async () => {
    const { open, post } = start();
    const id = await open();
    expect(id).not.toBe("");
    const answer = await post(LIST_TOOLS, { "mcp-session-id": id });
    expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('"fixed"')]);
  });

  test("an unknown session is not found, so its client opens a new one", async () => {
    const { post } = start();
    expect((await post(LIST_TOOLS, { "mcp-session-id": crypto.randomUUID() })).status).toBe(404);
  });

  test("end after half an hour of silence", async () => {
    const { open, post, clock } = start();
    const silent = await open();
    clock.advance(1_700_000);
    const used = await open();
    clock.advance(200_000);
    await open();
    expect((await post(LIST_TOOLS, { "mcp-session-id": silent })).status).toBe(404);
    expect((await post(LIST_TOOLS, { "mcp-session-id": used })).status).toBe(200);
  });

  test("do not end during a call, which may take longer than half an hour", async () => {
    const { open, post, clock, release } = start();
    const id = await open();
    const params = { name: "fixed", arguments: { isSlow: true } };
    const call = { jsonrpc: "2.0", id: 2, method: "tools/call", params };
    const answer = await post(call, { "mcp-session-id": id });
    clock.advance(2_000_000);
    await open();
    release();
    expect(await answer.text()).toContain("fixed was called");
    clock.advance(1_700_000);
    await open();
    expect((await post(LIST_TOOLS, { "mcp-session-id": id })).status).toBe(200);
  });

  test("are at most a thousand: the one with the longest silence ends", async () => {
    const { open, post, clock } = start();
    const first = await open();
    for (let i = 0; i < 1000; i++) {
      clock.advance(1);
      await open();
    }
    expect((await post(LIST_TOOLS, { "mcp-session-id": first })).status).toBe(404);
  });

  test("are notified of a changed list", async () => {
    const { open, face } = start();
    const id = await open();
    const stream = await face.answer(
      new Request("http://proxy/mcp/bench", {
        method: "GET",
        headers: { accept: "text/event-stream", "mcp-session-id": id, "mcp-protocol-version": "2025-11-25" },
      }),
      undefined,
      token("one"),
    );
    const reader = stream.body?.getReader();
    face.changed("tools");
    const seen: string[] = [];
    await vi.waitFor(async () => {
      seen.push(new TextDecoder().decode((await reader?.read())?.value));
      expect(seen.join("")).toContain("notifications/tools/list_changed");
    });
    await reader?.cancel();
  });

  test("take their token from each request, never from an earlier one (M4)", async () => {
    const { open, post } = start();
    const id = await open();
    const call = { jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "fixed", arguments: {} } };
    const headers = { "mcp-session-id": id };
    expect(await (await post(call, headers)).text()).toContain("fixed was called");
    const withoutProof = await post({ ...call, id: 4 }, headers, once("one", "", undefined));
    expect(await withoutProof.text()).toContain("proof_required");
  });

  test("are usable by their own caller alone: an id neither lists, calls nor ends another's session", async () => {
    const { open, post, face } = start();
    const headers = { "mcp-session-id": await open(), "mcp-protocol-version": "2025-11-25" };
    const end = (by: Presentation | undefined) =>
      face.answer(new Request("http://proxy/mcp/bench", { method: "DELETE", headers }), undefined, by);
    for (const other of [token("two"), undefined]) {
      expect((await face.answer(requestOf(headers), LIST_TOOLS, other)).status).toBe(404);
      expect((await end(other)).status).toBe(404);
    }
    expect((await post(LIST_TOOLS, headers)).status).toBe(200);
    expect((await end(token("one"))).status).toBe(200);
    expect((await post(LIST_TOOLS, headers)).status).toBe(404);
  });
});
