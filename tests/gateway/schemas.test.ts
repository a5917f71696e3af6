import { TaskContractSchema } from "@depute/contracts/delegateos/v0/contract_pb";
import { formatTime } from "@depute/core";
import { generateKeypair, newId, signObject, type TaskContract } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { decode } from "@depute/wire";
import { compileSchema, type Dialect, type Strictness } from "@depute/wire/json-schema";
import { hasSuite, type SuiteGroup, suiteOf } from "@depute/wire/json-schema/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { introduceAll, type Market, marketAt, offerOf, requestOf } from "../agenta/market.ts";
import { call, type Json, startPlatform, type TestPlatform } from "./platform.ts";

let platform: TestPlatform;
let market: Market;
beforeAll(async () => {
  platform = await startPlatform();
  market = marketAt(platform.url);
  await introduceAll(platform);
});
afterAll(() => platform.stop());

const VERIFICATION = "/depute.verifier.v1.VerificationService";
const issuer = generateKeypair(engine);

async function rpc(method: string, request: unknown): Promise<{ status: number; body: Json }> {
  const response = await platform.post(method, request);
  return { status: response.status, body: await response.json() };
}

/** Signs and records a contract whose results must satisfy a schema; returns its id. */
async function agree(outputSchema: unknown): Promise<string> {
  const now = Date.now();
  const contract = signObject(
    engine,
    "contract",
    {
      id: newId("ct"),
      version: "0.1",
      issuer: issuer.principal.id,
      createdAt: formatTime(now),
      task: { title: "Work", description: "", inputs: {}, outputSchema } as TaskContract["task"],
      verification: { method: "schema_match" } as TaskContract["verification"],
      constraints: {
        maxBudgetMicrocents: 1,
        deadline: formatTime(now + 600_000),
        maxChainDepth: 1,
        requiredCapabilities: [],
      },
    },
    issuer,
  );
  const decoded = decode(TaskContractSchema, contract);
  if (!decoded.ok) throw new Error(decoded.error.message);
  await platform.clients.contracts.createContract({ contract: decoded.message });
  return contract.id;
}

/**
 * Every place where the platform checks a value against a user's schema. Each function returns whether the value was
 * accepted.
 */
const PLACES: Record<string, (schema: unknown, value: unknown) => Promise<boolean>> = {
  async "a contract's result"(schema, value) {
    const contractId = await agree(schema);
    return await passes(contractId, value);
  },
  async CheckSchema(schema, value) {
    const { status, body } = await rpc(`${VERIFICATION}/CheckSchema`, {
      schema,
      valueJson: JSON.stringify(value),
    });
    expect([status, body]).toEqual([200, body]);
    return (body.violations ?? []).length === 0;
  },
  async "a capability's examples"(schema, value) {
    const { status, body } = await publish(fresh("agent"), schema, [
      { input: base64(value), output: base64({}) },
    ]);
    if (status !== 200) expect(JSON.stringify(body)).toContain("does not match its schema");
    return status === 200;
  },
  async "the input of a task"(schema, value) {
    const id = fresh("agent");
    expect(await publish(id, schema)).toMatchObject({ status: 200 });
    const draft = { agentId: id, capabilityId: "work", input: value };
    const { status, body } = await rpc("/depute.tasks.v1.TaskService/CreateTask", {
      requestId: fresh("r"),
      draft,
    });
    if (status !== 200) expect(JSON.stringify(body)).toContain("INPUT_SCHEMA_VIOLATION");
    return status === 200;
  },
  async "the input of nekte.invoke"(schema, value) {
    const id = fresh("agent");
    expect(await publish(id, schema)).toMatchObject({ status: 200 });
    platform.work(id, async () => ({ output: {} }));
    const response = await platform.post(`/nekte/${id}`, call("nekte.invoke", { cap: "work", in: value }));
    const answer = (await response.json()) as Json;
    if (answer.error !== undefined) expect(answer.error).toMatchObject({ code: -32602 });
    return answer.error === undefined;
  },
  async "an offer's input"(schema, value) {
    const offer = await market.publish(offerOf({ input_schema: schema as never }));
    const receipt = await market.request(requestOf(offer, { input: value as never }));
    return receipt.status !== "rejected";
  },
};

let count = 0;
function fresh(freshName: string): string {
  count += 1;
  return `${freshName}-${count}`;
}

function base64(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString("base64");
}

async function publish(agentId: string, schema: unknown, examples: unknown[] = []) {
  await rpc("/depute.registry.v1.AgentService/RegisterAgent", {
    requestId: fresh("r"),
    agent: { id: agentId },
  });
  const capability = {
    id: "work",
    cat: "test",
    desc: "does it",
    inputSchema: base64(schema),
    outputSchema: base64({ type: "object" }),
    examples,
  };
  return rpc("/depute.registry.v1.AgentService/PublishCapabilities", {
    requestId: fresh("r"),
    agentId,
    capabilities: [capability],
  });
}

async function passes(contractId: string, value: unknown): Promise<boolean> {
  const { body } = await rpc(`${VERIFICATION}/CheckOutput`, {
    contractId,
    outputJson: JSON.stringify(value),
  });
  return body.result.passed === true;
}

const PATTERNS = {
  type: "object",
  properties: { a: { type: "string", pattern: "^a" }, b: { type: "string", pattern: "^b" } },
  patternProperties: { "^n_": { type: "number" }, "^s_": { type: "string" } },
};
const META = {
  type: "object",
  properties: {
    old: { $ref: "http://json-schema.org/draft-07/schema#" },
    present: { $ref: "https://json-schema.org/draft/2020-12/schema" },
    core: { $ref: "https://json-schema.org/draft/2020-12/meta/core" },
  },
};

describe.each(Object.entries(PLACES))("%s", (_, fits) => {
  test.each<[what: string, schema: unknown, value: unknown, isFit: boolean]>([
    ["each pattern counts for its own member", PATTERNS, { a: "a", b: "b" }, true],
    ["no pattern counts for another pattern's member", PATTERNS, { b: "a" }, false],
    ["each pattern of names counts for its own names", PATTERNS, { n_a: 1, s_a: "" }, true],
    ["no pattern of names counts for other names", PATTERNS, { s_a: 1 }, false],
    ["a schema of draft-07 fits its meta-schema", META, { old: { items: [{}] } }, true],
    ["a malformed schema of draft-07 does not fit it", META, { old: { type: "strin" } }, false],
    ["a schema of 2020-12 fits its meta-schema", META, { present: { not: { minLength: 1 } } }, true],
    ["a malformed schema of 2020-12 does not fit it", META, { present: { not: { minLength: "1" } } }, false],
    ["a vocabulary has its own meta-schema", META, { core: { $id: "#fragment" } }, false],
  ])("%s", async (_, schema, value, isFit) => {
    expect(await fits(schema, value)).toBe(isFit);
  });
});

test("an offer may contain any JSON Schema, as the protocol's own schema of offers allows", async () => {
  const { body } = await market.send("/schemas/offer.schema.json");
  const { status } = await rpc(`${VERIFICATION}/CheckSchema`, { schema: body });
  expect(status).toBe(200);
});

/** Returns every `step`th schema of the suite that compiles. Excludes the files on which Ajv differs from the suite. */
function sample(dialect: Dialect, strictness: Strictness, step: number): SuiteGroup[] {
  const differing = /^(optional|dynamicRef|format|ref|refRemote|unevaluated.*|vocabulary)\b/;
  return suiteOf(dialect)
    .filter(({ file, schema }) => !differing.test(file) && compiles(schema))
    .filter((_, i) => i % step === 0);

  function compiles(schema: unknown): boolean {
    try {
      compileSchema(schema, dialect, strictness);
      return true;
    } catch {
      return false;
    }
  }
}

describe.skipIf(!hasSuite && process.env.CI !== "true").each(["draft-07", "2020-12"] as const)(
  "samples of the JSON Schema Test Suite in %s",
  (dialect) => {
    test("get the suite's verdict from CheckOutput", { timeout: 120_000 }, async () => {
      const groups = sample(dialect, "contract", 4);
      expect(groups.length).toBeGreaterThan(8);
      for (const { file, description, schema, tests } of groups) {
        const contractId = await agree(schema);
        for (const { description: which, data, valid } of tests) {
          const name = `${file}: ${description}: ${which}`;
          expect([name, await passes(contractId, data)]).toEqual([name, valid]);
        }
      }
    });

    test("get the suite's verdict from CheckSchema", { timeout: 120_000 }, async () => {
      const groups = sample(dialect, "plain", 6);
      expect(groups.length).toBeGreaterThan(20);
      const draft = dialect === "draft-07" ? "SCHEMA_DIALECT_DRAFT_07" : "SCHEMA_DIALECT_2020_12";
      for (const { file, description, schema, tests } of groups) {
        for (const { description: which, data, valid } of tests) {
          const request = { schema, valueJson: JSON.stringify(data), dialect: draft };
          const { body } = await rpc(`${VERIFICATION}/CheckSchema`, request);
          const name = `${file}: ${description}: ${which}`;
          expect([name, body.code, (body.violations ?? []).length === 0]).toEqual([name, undefined, valid]);
        }
      }
    });
  },
);

test.runIf(hasSuite)(
  "samples of the JSON Schema Test Suite get the suite's verdict for capabilities",
  { timeout: 120_000 },
  async () => {
    for (const { file, description, schema, tests } of sample("2020-12", "plain", 30)) {
      // The registry refuses documents that have a member `__proto__`.
      if (JSON.stringify({ schema, tests }).includes("__proto__")) continue;
      for (const { description: which, data, valid } of tests) {
        const name = `${file}: ${description}: ${which}`;
        for (const place of ["a capability's examples", "the input of a task"]) {
          expect([name, place, await PLACES[place]?.(schema, data)]).toEqual([name, place, valid]);
        }
      }
    }
  },
);
