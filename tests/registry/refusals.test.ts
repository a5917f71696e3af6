import { create, type JsonValue, type MessageInitShape } from "@bufbuild/protobuf";
import { holderHeaders } from "@depute/client";
import { ArtifactType } from "@depute/contracts/agenta/delegation/v0/agenta_common_pb";
import { OfferSchema, PricingModel, VerificationMode } from "@depute/contracts/agenta/delegation/v0/offer_pb";
import { generateKeypair } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { refusal } from "@depute/service/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bytes, introduce, startPlatform, type TestPlatform, value } from "../gateway/platform.ts";

/**
 * This test needs the whole platform, because the verifier compiles the schemas of registered documents for the
 * registry.
 */
let platform: TestPlatform;
beforeAll(async () => {
  platform = await startPlatform();
  await introduce(platform, "worker", [["kept"]]);
  const seller = { id: "seller", organization: "acme" };
  await platform.clients.agents.registerAgent({ requestId: "seller", agent: seller });
});
afterAll(() => platform.stop());

let requests = 0;
const publish = (schema: JsonValue) =>
  platform.clients.agents.publishCapabilities({
    requestId: `r${++requests}`,
    agentId: "worker",
    capabilities: [
      {
        id: "hostile",
        cat: "nlp",
        inputSchema: bytes(schema),
        outputSchema: bytes({}),
        examples: [{ input: bytes("aaaa"), output: bytes({}) }],
      },
    ],
  });

/** Makes an offer of the seller with a given input schema. */
function offer(schema: JsonValue) {
  const parts: MessageInitShape<typeof OfferSchema> = {
    protocolVersion: "agenta.delegation.v0",
    messageType: "offer",
    offerId: "offer-001",
    sellerAgent: { agentId: "seller", organizationId: "acme" },
    title: "Sentiment",
    description: "Tells the mood of a text.",
    capabilities: { values: ["sentiment"] },
    inputSchema: value(schema),
    outputSchema: value({ type: "object" }),
    pricing: { pricingModel: PricingModel.FIXED, currency: "USD", amount: 100n },
    serviceLevels: { targetCompletionSeconds: 60n, maxCompletionSeconds: 600n },
    verificationPolicy: {
      mode: VerificationMode.SELLER_ATTESTED,
      requiredArtifacts: [ArtifactType.RESULT_PAYLOAD],
      passCriteria: ["It is right."],
    },
    validFrom: "2025-12-01T00:00:00Z",
  };
  return create(OfferSchema, parts);
}

/** Makes a schema in which each level refers twice to the next, so that each level doubles the work. */
function doubling(levels: number): JsonValue {
  const definitions: Record<string, JsonValue> = { [`d${levels}`]: { type: "string" } };
  for (let i = 0; i < levels; i++) {
    const next = { $ref: `#/definitions/d${i + 1}` };
    definitions[`d${i}`] = { allOf: [next, next] };
  }
  return { $ref: "#/definitions/d0", definitions };
}

const HOSTILE: [string, JsonValue][] = [
  ["refers to another place", { $ref: "https://evil.example/schema.json" }],
  ["refers to a file", { $ref: "file:///etc/passwd" }],
  ["refers to nothing", { $ref: "#/definitions/nothing" }],
  [
    "has too many parts",
    { properties: Object.fromEntries(Array.from({ length: 2_100 }, (_, i) => [`p${i}`, {}])) },
  ],
  ["has a pattern with exponential backtracking", { type: "string", pattern: "(?=(a+)+$)b" }],
  ["is not a schema", { type: "nothing" }],
];

test.each<[string, JsonValue]>([
  ...HOSTILE,
  ["is nested too deeply", JSON.parse(`${'{"not":'.repeat(70)}{}${"}".repeat(70)}`)],
  ["refers twice on each of many levels", doubling(60)],
])("a capability whose schema %s is refused, and the published one stays", async (_, schema) => {
  const { reason, fields } = await refusal(publish(schema));
  expect(["SCHEMA_INVALID", "INVALID_REQUEST"]).toContain(reason);
  expect(fields).toEqual(["capabilities[0].input_schema"]);
  const { capabilities } = await platform.clients.discovery.discoverCapabilities({ agentId: "worker" });
  expect(capabilities.map((each) => each.capability.value?.id)).toEqual(["kept"]);
});

test.each(HOSTILE)("an offer whose schema %s is refused, and the published one stays", async (_, schema) => {
  const { offers } = platform.clients;
  const first = (await offers.publishOffer({ requestId: "kept", offer: offer({ type: "object" }) })).offer;
  const { reason, fields } = await refusal(
    offers.publishOffer({ requestId: `o${++requests}`, offer: offer(schema) }),
  );
  expect(["SCHEMA_INVALID", "INVALID_REQUEST"]).toContain(reason);
  expect(fields).toEqual(["offer.input_schema"]);
  expect((await offers.getOffer({ offerId: "offer-001" })).offer).toEqual(first);
});

test("a delegation requires the predicate of the manifest's rule", async () => {
  const boss = generateKeypair(engine);
  const rule = {
    whenToDelegate: "When it is not urgent.",
    predicate: "task.priority < 5 && !has(task.max_tokens)",
  };
  const manifest = {
    id: "boss",
    systemPrompt: "",
    allowedAgents: ["worker"],
    delegateRules: { worker: rule },
  };
  const { agents, tasks } = platform.clients;
  const record = { id: "boss", principal: boss.principal.id, manifest };
  await agents.registerAgent({ requestId: "boss", agent: record });
  const handOver = (draft: Record<string, unknown>) => {
    const holder = { engine, keypair: boss, publicUrl: platform.url };
    const headers = holderHeaders(holder, "/depute.tasks.v1.TaskService/CreateTask");
    const fullDraft = { agentId: "worker", description: "It can wait.", ...draft };
    return tasks.createTask({ requestId: `t${++requests}`, draft: fullDraft }, { headers });
  };
  expect((await handOver({ priority: 4 })).task?.agentId).toBe("worker");
  for (const draft of [{ priority: 5 }, { spend: { maxTokens: 5n } }]) {
    expect(await refusal(handOver(draft))).toMatchObject({
      reason: "CALLER_NOT_ALLOWED",
      metadata: { agent: "boss", delegate: "worker", decision: "predicate_not_met" },
    });
  }
});
