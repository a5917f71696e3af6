import { holderHeaders } from "@depute/client";
import { AgentVisibility } from "@depute/contracts/depute/registry/v1/agent_pb";
import { generateKeypair, type Keypair } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { call, capability, introduce, result, startPlatform, type TestPlatform } from "./platform.ts";

let platform: TestPlatform;
const friend = generateKeypair(engine);
const stranger = generateKeypair(engine);

const OPEN = ["open-a", "open-b"];

beforeAll(async () => {
  platform = await startPlatform();
  for (const id of OPEN) await introduce(platform, id, [["shared"], [`only-${id}`]]);
  await platform.clients.agents.registerAgent({
    requestId: "hidden",
    agent: { id: "hidden", visibility: AgentVisibility.NAMED, visibleTo: [friend.principal.id] },
  });
  await platform.clients.agents.publishCapabilities({
    requestId: "its capabilities",
    agentId: "hidden",
    capabilities: [capability("secret"), capability("only-open-a")],
  });
});
afterAll(() => platform.stop());

async function discovered(by: Keypair, filter?: Record<string, unknown>): Promise<string[]> {
  const credentials = { engine, keypair: by, publicUrl: platform.url };
  const params = filter === undefined ? { level: 0 } : { level: 0, filter };
  const answer = await result(
    platform.post("/nekte", call("nekte.discover", params), holderHeaders(credentials, "/nekte")),
  );
  return (answer.caps as { id: string }[]).map(({ id }) => id).sort();
}

describe("nekte.discover shows the agents that the caller may see", () => {
  test("to a viewer that the hidden agent lists", async () => {
    expect(await discovered(friend)).toEqual([
      "hidden/only-open-a",
      "only-open-b",
      "open-a/only-open-a",
      "open-a/shared",
      "open-b/shared",
      "secret",
    ]);
  });

  test("to a stranger, and no listed name hints at a hidden agent", async () => {
    const all = ["only-open-a", "only-open-b", "open-a/shared", "open-b/shared"];
    expect(await discovered(stranger)).toEqual(all);
    expect(await discovered(stranger, { category: "nlp" })).toEqual(all);
    expect(await discovered(stranger, { id: "secret" })).toEqual([]);
  });
});
