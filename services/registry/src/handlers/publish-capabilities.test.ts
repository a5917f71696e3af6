import { create } from "@bufbuild/protobuf";
import { ExampleSchema } from "@depute/contracts/nekte/v1/nekte_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { asJson, bytes, capability, json } from "../testing/capability.ts";
import { ALICE, as, BOB, type Platform, startPlatform } from "../testing/platform.ts";
import { refusal } from "../testing/refusal.ts";

let platform: Platform;
let requests = 0;
beforeEach(async () => {
  platform = await startPlatform();
  await platform.agents.registerAgent(
    { requestId: "register", agent: { id: "a", principal: ALICE } },
    as(ALICE),
  );
});
afterEach(() => platform.stop());

function publish(capabilities: ReturnType<typeof capability>[], principal = ALICE, agentId = "a") {
  const request = { requestId: `request-${++requests}`, agentId, capabilities };
  return platform.agents.publishCapabilities(request, as(principal));
}

async function offeredIds() {
  const { capabilities } = await platform.discovery.discoverCapabilities({ level: 0, agentId: "a" });
  return capabilities.map((each) => each.capability.value?.id);
}

describe("PublishCapabilities", () => {
  it("answers with the version hashes and ignores sent ones", async () => {
    const sent = { ...capability("sentiment", { cat: "nlp", desc: "Rates text." }), h: "ffffffff" };
    const { capabilities } = await publish([sent]);
    expect(capabilities).toHaveLength(1);
    expect(asJson(capabilities[0])).toEqual(asJson({ ...sent, h: capabilities[0]?.h ?? "" }));
    expect(capabilities[0]?.h).toMatch(/^[0-9a-f]{8}$/);
    expect(capabilities[0]?.h).not.toBe("ffffffff");
    await expect.poll(() => platform.wakeUps).toEqual(["a", "a"]);
  });

  it("replaces the whole set", async () => {
    await publish([capability("one"), capability("two")]);
    await publish([capability("two"), capability("three")]);
    expect(await offeredIds()).toEqual(["three", "two"]);
    expect((await platform.agents.getAgent({ agentId: "a" })).agent?.capabilityIds).toEqual(["two", "three"]);
    await publish([]);
    expect(await offeredIds()).toEqual([]);
  });

  it("stores all capabilities or none", async () => {
    await publish([capability("one")]);
    expect(await refusal(publish([capability("two"), capability("two")]))).toMatchObject({
      reason: "INVALID_REQUEST",
    });
    expect(
      await refusal(publish([capability("two"), capability("three", { input: { type: "nonsense" } })])),
    ).toMatchObject({ reason: "SCHEMA_INVALID" });
    expect(await offeredIds()).toEqual(["one"]);
  });

  it("refuses callers other than the agent's principal", async () => {
    expect(await refusal(publish([capability("one")], BOB))).toMatchObject({ reason: "CALLER_NOT_ALLOWED" });
    expect(await refusal(publish([capability("one")], ALICE, "b"))).toMatchObject({
      reason: "AGENT_NOT_FOUND",
    });
    expect(platform.verifier.calls).toEqual([]);
  });

  it("names every schema and example at fault", async () => {
    const faulty = [
      capability("fine", { examples: [{ in: {}, out: {} }] }),
      capability("schemas", { input: { type: "nonsense" }, output: { type: "rubbish" } }),
      capability("examples", {
        output: { type: "string" },
        examples: [
          { in: {}, out: "text" },
          { in: "text", out: 5 },
        ],
      }),
    ];
    const refused = await refusal(publish(faulty));
    expect(refused.reason).toBe("SCHEMA_INVALID");
    expect(refused.violations.map(({ field, description }) => [field, description])).toEqual([
      ["capabilities[1].input_schema", "type: nonsense is no type"],
      ["capabilities[1].output_schema", "type: rubbish is no type"],
      ["capabilities[2].examples[1].input", "does not match its schema: must be object"],
      ["capabilities[2].examples[1].output", "does not match its schema: must be string"],
    ]);
  });

  it("sends only new and changed schemas to the verifier", async () => {
    const one = (desc: string, out: number) =>
      capability("one", {
        desc,
        input: { type: "number" },
        output: { type: "number" },
        examples: [{ in: 1, out }],
      });
    await publish([one("old", 1)]);
    expect(platform.verifier.calls).toHaveLength(2);
    await publish([one("new", 1)]);
    expect(platform.verifier.calls).toHaveLength(2);
    await publish([one("new", 2)]);
    expect(platform.verifier.calls.slice(2)).toEqual([
      ['{"type":"number"}', "1"],
      ['{"type":"number"}', "2"],
    ]);
  });

  it.each<[string, ErrorReason, Record<string, unknown>]>([
    [
      "a timeout",
      ErrorReason.CHECK_TIMEOUT,
      { reason: "SCHEMA_INVALID", fields: ["capabilities[0].input_schema", "capabilities[0].output_schema"] },
    ],
    ["an unsupported pattern", ErrorReason.UNSUPPORTED_PATTERN, { reason: "SCHEMA_INVALID" }],
    [
      "a limit",
      ErrorReason.LIMIT_EXCEEDED,
      { reason: "LIMIT_EXCEEDED", fields: [expect.stringMatching(/_schema$/)] },
    ],
    [
      "its absence",
      ErrorReason.DEPENDENCY_UNAVAILABLE,
      { reason: "DEPENDENCY_UNAVAILABLE", metadata: { service: "verifier" } },
    ],
    [
      "an internal error",
      ErrorReason.INTERNAL,
      { reason: "DEPENDENCY_UNAVAILABLE", metadata: { service: "verifier" } },
    ],
  ])("keeps nothing after %s of the verifier", async (_, reason, expected) => {
    platform.verifier.failure = DeputeError.received(reason, "no");
    expect(await refusal(publish([capability("one")]))).toMatchObject(expected);
    expect(await offeredIds()).toEqual([]);
    platform.verifier.failure = undefined;
    await publish([capability("one")]);
    expect(await offeredIds()).toEqual(["one"]);
  });

  it("stops after the first call when the verifier is unavailable", async () => {
    platform.verifier.failure = DeputeError.received(ErrorReason.DEPENDENCY_UNAVAILABLE, "no");
    await refusal(publish(Array.from({ length: 50 }, (_, i) => capability(`c${i}`))));
    expect(platform.verifier.calls.length).toBeLessThan(10);
  });

  it("repeats its checks after the verifier answers", async () => {
    platform.verifier.during = () => platform.agents.deregisterAgent({ agentId: "a" }, as(ALICE));
    expect(await refusal(publish([capability("one")]))).toMatchObject({ reason: "AGENT_NOT_FOUND" });
    expect((await platform.agents.getAgent({ agentId: "a" })).agent?.capabilityIds).toEqual([]);
  });

  it("answers a replay with the first answer without calling the verifier", async () => {
    const request = { requestId: "same", agentId: "a", capabilities: [capability("one")] };
    const first = await platform.agents.publishCapabilities(request, as(ALICE));
    await publish([]);
    expect(await platform.agents.publishCapabilities(request, as(ALICE))).toEqual(first);
    expect(await offeredIds()).toEqual([]);
    expect(platform.verifier.calls).toHaveLength(2);
  });

  it("refuses more examples than the limit of checks", async () => {
    const examples = Array.from({ length: 20 }, () => ({ in: {}, out: {} }));
    const many = Array.from({ length: 51 }, (_, i) => capability(`c${i}`, { examples }));
    expect(await refusal(publish(many))).toMatchObject({
      reason: "LIMIT_EXCEEDED",
      metadata: { limit: "schema_checks", max: "2000" },
    });
    expect(platform.verifier.calls).toEqual([]);
  });

  it.each<[string, Partial<ReturnType<typeof capability>>[], string[]]>([
    ["no category", [{ cat: undefined }], ["capabilities[0].cat"]],
    [
      "no schemas",
      [{ inputSchema: undefined, outputSchema: bytes("") }],
      ["capabilities[0].input_schema", "capabilities[0].output_schema"],
    ],
    ["text that is no JSON", [{ inputSchema: bytes("{") }], ["capabilities[0].input_schema"]],
    [
      "bytes that are not UTF-8",
      [{ inputSchema: Uint8Array.of(0x22, 0xff, 0x22) }],
      ["capabilities[0].input_schema"],
    ],
    ["an invalid number", [{ outputSchema: bytes('{"maximum":1e999}') }], ["capabilities[0].output_schema"]],
    [
      "a member named __proto__",
      [{ outputSchema: bytes('{"__proto__":{}}') }],
      ["capabilities[0].output_schema"],
    ],
    [
      "too much nesting",
      [{ inputSchema: bytes(`${"[".repeat(5000)}${"]".repeat(5000)}`) }],
      ["capabilities[0].input_schema"],
    ],
    [
      "an example that is not JSON",
      [{ examples: [create(ExampleSchema, { input: bytes("1"), output: bytes("?") })] }],
      ["capabilities[0].examples[0].output"],
    ],
    [
      "the same id twice, and a slash",
      [{ id: "x" }, { id: "x" }, { id: "b/x" }],
      ["capabilities[1].id", "capabilities[2].id"],
    ],
    [
      "white space in an id",
      [{ id: "a b" }, { id: "a\u200b" }, { id: "a\n" }],
      ["capabilities[0].id", "capabilities[1].id", "capabilities[2].id"],
    ],
    [
      "ids and categories beyond the length limit",
      [{ id: "x".repeat(65), cat: "y".repeat(33), desc: "z".repeat(257) }],
      ["capabilities[0]", "capabilities[0].cat", "capabilities[0].desc"],
    ],
    ["an empty id", [{ id: "" }], ["capabilities[0].id"]],
    ["a schema over 64 KiB", [{ inputSchema: json("x".repeat(65_536)) }], ["capabilities[0].input_schema"]],
  ])("refuses %s", async (_, parts, fields) => {
    const faulty = parts.map(
      (part, i) => ({ ...capability(`c${i}`), ...part }) as ReturnType<typeof capability>,
    );
    const refused = await refusal(publish(faulty));
    expect(refused).toMatchObject({ reason: "INVALID_REQUEST", fields });
    expect(await offeredIds()).toEqual([]);
  });
});
