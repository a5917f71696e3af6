import { holderHeaders } from "@depute/client";
import { keypairFromSeed } from "@depute/dct";
import { nativeEngine } from "@depute/dct/native";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startPlatform, type TestPlatform } from "../gateway/platform.ts";
import { example, type Json } from "./cast.ts";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await startPlatform();
});
afterAll(() => platform.stop());

/** A separate key for each participant. */
const keypairOf = (name: string) =>
  keypairFromSeed(nativeEngine, nativeEngine.sha256(new TextEncoder().encode(`holder ${name}`)));

/** Calls with a proof of the agent's own key as the only credentials. */
async function ask(name: string, method: string, path: string, body?: Json) {
  const holder = { engine: nativeEngine, keypair: keypairOf(name), publicUrl: platform.url };
  const response = await fetch(`${platform.url}${path}`, {
    method,
    headers: {
      ...holderHeaders(holder, path.split("?")[0] ?? "", method),
      "content-type": "application/json",
    },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, body: JSON.parse(text) as Json };
}

test("only the holder of an agent's key registers it, takes its work, reads and answers", async () => {
  for (const id of ["pm-1", "analyst-1", "qa-1"]) {
    expect(await ask(id, "PUT", `/cap/agents/${id}`, example(`manifest-${id}`))).toMatchObject({
      status: 201,
    });
  }
  expect(await ask("mallory", "PUT", "/cap/agents/pm-1", example("manifest-pm-1"))).toMatchObject({
    status: 403,
  });
  const notice = example("example-01-delegation-to-pm");
  expect(await ask("mallory", "POST", "/cap/messages", notice)).toMatchObject({ status: 403 });
  // On an open loopback, roles need no credentials, but credentials that a caller presents must be valid.
  expect((await platform.post("/cap/messages", notice)).status).toBe(201);
  expect(await ask("pm-1", "GET", "/cap/inbox/pm-1")).toMatchObject({
    body: { messages: [{ sequence: 1 }] },
  });
  expect(await ask("mallory", "GET", "/cap/inbox/pm-1")).toMatchObject({ status: 403 });
  const question = example("example-02-question-to-user");
  expect(await ask("analyst-1", "POST", "/cap/messages", question)).toMatchObject({ status: 403 });
  expect(await ask("pm-1", "POST", "/cap/messages", question)).toMatchObject({
    status: 201,
    body: { status: "running" },
  });
  const handoff = example("example-04-delegation-to-analyst");
  expect(await ask("pm-1", "POST", "/cap/messages", handoff)).toMatchObject({
    body: { effect: "delegated" },
  });
  expect(await ask("qa-1", "GET", "/cap/tasks/T1")).toMatchObject({
    status: 200,
    body: { agent_id: "pm-1" },
  });
  expect(await ask("mallory", "GET", "/cap/tasks/T1")).toMatchObject({ status: 404 });
});
