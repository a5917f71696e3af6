import { holderHeaders } from "@depute/client";
import { generateKeypair } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { describe, expect, test } from "vitest";
import { call, introduce, json, result, startPlatform } from "../gateway/platform.ts";
import { frames, Scene, work } from "./scene.ts";

const scene = new Scene();
const { nekte } = scene;

describe("the published documents", () => {
  test("include a card for all agents, and one for each agent", async () => {
    const card = await json(fetch(`${scene.platform.url}/.well-known/nekte.json`));
    expect(card).toMatchObject({
      nekte: "0.2.0",
      agent: "depute",
      endpoint: `${scene.platform.url}/nekte`,
      auth: "none",
      budget_support: true,
    });
    expect(card.caps).toContain("other/shared");
    expect(await json(fetch(`${scene.platform.url}/nekte/.well-known/nekte.json`))).toEqual(card);
    expect(await json(fetch(`${scene.platform.url}/nekte/other/.well-known/nekte.json`))).toMatchObject({
      agent: "other",
      endpoint: `${scene.platform.url}/nekte/other`,
      caps: ["shared"],
    });
    await json(fetch(`${scene.platform.url}/nekte/nobody/.well-known/nekte.json`), 404);
  });

  test.each([
    ["/nekte", "depute"],
    ["/nekte/nlp-worker", "nlp-worker"],
  ])("%s serves calls, its card and its health", async (path, agent) => {
    const address = `${scene.platform.url}${path}`;
    expect(await result(nekte("nekte.discover", { level: 0 }, path))).toMatchObject({ agent });
    expect(await json(fetch(`${address}/.well-known/nekte.json`))).toMatchObject({
      agent,
      endpoint: address,
    });
    expect(await json(fetch(`${address}/health`))).toEqual({ status: "SERVING", agent });
    for (const below of ["/health", "/.well-known/nekte.json"]) {
      const head = await fetch(`${address}${below}`, { method: "HEAD" });
      expect([head.status, await head.text()]).toEqual([200, ""]);
    }
    await json(fetch(`${scene.platform.url}/nekte/nobody/health`), 404);
  });

  test("a card's instructions contain the agent's own text and how to call nekte.discover", async () => {
    const { agents } = scene.platform.clients;
    const description = "Answers questions about tides.";
    await agents.registerAgent({ requestId: "tides", agent: { id: "tides", description } });
    const card = await json(fetch(`${scene.platform.url}/nekte/tides/.well-known/nekte.json`));
    expect(card.instructions).toContain(description);
    // The example call in the card's instructions works without changes.
    const example = /\{"jsonrpc".*?\}\}/.exec(card.instructions)?.[0] ?? "";
    expect(await result(scene.platform.post("/nekte/tides", example))).toMatchObject({
      agent: "tides",
      caps: [],
    });
    for (const word of ["detail_level", "L0", "L1", "L2"]) expect(card.instructions).toContain(word);
  });

  test("a guide in plain text", async () => {
    const response = await fetch(`${scene.platform.url}/api/protocol-guide`);
    expect(response.headers.get("content-type")).toBe("text/plain; charset=utf-8");
    expect(response.headers.get("cache-control")).toBe("public, max-age=86400");
    const guide = await response.text();
    for (const word of ["nekte.discover", "nekte.invoke", "nekte.delegate", "nekte.task.cancel", "-32001"]) {
      expect(guide).toContain(word);
    }
    for (const params of [undefined, {}, { topic: "all" }, { topic: null }]) {
      expect(await result(nekte("nekte.introspect", params))).toEqual({ guide });
    }
  });

  test.each([
    ["budget", "max_tokens"],
    ["discovery", "nekte.discover"],
    ["discovery", "detail_level"],
    ["discovery", "L0"],
    ["discovery", "L1"],
    ["discovery", "L2"],
    ["budget", "detail_level"],
    ["errors", "-32009"],
    ["tasks", "nekte.task.resume"],
  ])("one part of the guide, on %s", async (topic, word) => {
    const { guide } = await result(nekte("nekte.introspect", { topic }));
    expect(guide).toContain(word);
    const servedGuide = await (await fetch(`${scene.platform.url}/api/protocol-guide`)).text();
    expect(servedGuide.length).toBeGreaterThan(guide.length);
    expect(servedGuide).toContain(guide);
  });
});

/** These documents depend on the platform's settings. */
describe("settings", () => {
  test("set a default agent, times as numbers, and required credentials", async () => {
    const other = await startPlatform(["--nekte-default-agent", "helper", "--nekte-epoch-ms"]);
    try {
      await introduce(other, "helper");
      other.work("helper", async () => ({ output: "ok" }));
      const params = work();
      const stream = await frames(await other.post("/nekte", call("nekte.delegate", params)));
      expect(stream.at(-1)).toContain("event: complete");
      const taskStatus = await result(
        other.post("/nekte", call("nekte.task.status", { task_id: params.task.id })),
      );
      expect(taskStatus).toMatchObject({ created_at: expect.any(Number), updated_at: expect.any(Number) });
    } finally {
      await other.stop();
    }
  });

  test("a caller without required credentials gets an HTTP status", async () => {
    const closed = await startPlatform(["--auth", "required"]);
    try {
      const response = await closed.post("/nekte", call("nekte.discover", { level: 0 }));
      expect(response.status).toBe(401);
      expect(response.headers.get("www-authenticate")).toBe("DPoP, Bearer");
      expect(await response.json()).toMatchObject({
        id: 1,
        error: { code: -32050, message: "UNAUTHENTICATED" },
      });
      const alice = { engine, keypair: generateKeypair(engine), publicUrl: closed.url };
      await result(
        closed.post("/nekte", call("nekte.discover", { level: 0 }), holderHeaders(alice, "/nekte")),
      );
      expect(await json(fetch(`${closed.url}/.well-known/nekte.json`))).toMatchObject({
        auth: "bearer",
        caps: [],
      });
    } finally {
      await closed.stop();
    }
  });
});
