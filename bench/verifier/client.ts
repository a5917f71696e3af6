import { type ChildProcess, fork } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { TaskContractSchema } from "@depute/contracts/delegateos/v0/contract_pb";
import { AttestationService } from "@depute/contracts/depute/verifier/v1/attestation_service_pb";
import { ContractService } from "@depute/contracts/depute/verifier/v1/contract_service_pb";
import { ResultService } from "@depute/contracts/depute/verifier/v1/result_service_pb";
import { VerificationService } from "@depute/contracts/depute/verifier/v1/verification_service_pb";
import { formatTime } from "@depute/core";
import { generateKeypair, newId, signObject, type TaskContract } from "@depute/dct";
import { nativeEngine } from "@depute/dct/native";
import { createGrpcJsTransport } from "@depute/grpc-js";
import { decode } from "@depute/wire";

export const engine = nativeEngine;
export const issuer = generateKeypair(engine);
/** Callers with credentials. Each caller's credential is its name. */
export const CALLERS = ["friend", "foe"] as const;

/**
 * Starts a verifier in a separate process, with @grpc/grpc-js clients.
 *
 * @param dataDir a folder that is kept; absent for a folder that the process deletes
 */
export async function startVerifier(dataDir?: string) {
  const credentials = CALLERS.map((principal) => ({
    principal,
    sha256: createHash("sha256").update(principal).digest("hex"),
  }));
  const child = fork(join(import.meta.dirname, "server.ts"), [
    JSON.stringify(credentials),
    ...(dataDir === undefined ? [] : [dataDir]),
  ]);
  const [{ url }] = (await once(child, "message")) as [{ url: string }];
  const transport = createGrpcJsTransport(new URL(url).host);
  const contracts = createClient(ContractService, transport);
  return {
    url,
    verification: createClient(VerificationService, transport),
    attestations: createClient(AttestationService, transport),
    results: createClient(ResultService, transport),
    async agree(outputSchema: TaskContract["task"]["outputSchema"], maxBudgetMicrocents = 1_000_000) {
      const contract = contractOf(outputSchema, maxBudgetMicrocents);
      const decoded = decode(TaskContractSchema, contract);
      if (!decoded.ok) throw new Error(decoded.error.message);
      await contracts.createContract({ contract: decoded.message });
      return contract;
    },
    load: () => ask(child),
    async stop() {
      transport.close();
      child.disconnect();
      await once(child, "exit");
    },
  };
}

/** The load of a verifier process. A value is about the main thread unless its comment says otherwise. */
export interface Load {
  /**
   * The longest CPU time between two turns of the event loop since the previous message, in milliseconds. For that
   * long, one call blocks all others.
   */
  held: number;
  /**
   * The longest delay of a turn of the event loop since the previous message, in milliseconds. Other load of the
   * machine, such as this client's, adds to the delay.
   */
  waited: number;
  /** The CPU time of the main thread so far, in microseconds. */
  cpu: number;
  /** The CPU time of all threads of the process so far, in microseconds. */
  cpuOfAll: number;
}

export const asCaller = (caller: (typeof CALLERS)[number]) => ({
  headers: { authorization: `Bearer ${caller}` },
});

export function value(json: JsonValue) {
  return fromJson(ValueSchema, json);
}

async function ask(child: ChildProcess): Promise<Load> {
  const answer = once(child, "message") as Promise<[Load]>;
  child.send({});
  return (await answer)[0];
}

export function contractOf(outputSchema: TaskContract["task"]["outputSchema"], maxBudgetMicrocents: number) {
  const now = Date.now();
  return signObject(
    engine,
    "contract",
    {
      id: newId("ct"),
      version: "0.1",
      issuer: issuer.principal.id,
      createdAt: formatTime(now),
      task: { title: "Bench", description: "Work.", inputs: {}, outputSchema },
      verification: { method: "schema_match" },
      constraints: {
        maxBudgetMicrocents,
        deadline: formatTime(now + 86_400_000),
        maxChainDepth: 1,
        requiredCapabilities: [],
      },
    },
    issuer,
  );
}

/** A schema, and a 4 KB output that satisfies it. */
export const ITEMS = {
  type: "object",
  properties: {
    items: {
      type: "array",
      items: {
        type: "object",
        properties: {
          id: { type: "integer" },
          name: { type: "string", minLength: 1 },
          score: { type: "number", minimum: 0, maximum: 1 },
          tags: { type: "array", items: { type: "string" } },
        },
        required: ["id", "name"],
      },
    },
  },
  required: ["items"],
} as const;

/** The same schema with a pattern. Patterns run only in a separate thread. */
export const ITEMS_BY_PATTERN = {
  ...ITEMS,
  properties: { ...ITEMS.properties, kind: { type: "string", pattern: "^list" } },
} as const;

export function output4k() {
  const items: JsonValue[] = [];
  while (JSON.stringify({ items }).length < 4000) {
    items.push({ id: items.length, name: `item number ${items.length}`, score: 0.5, tags: ["a", "b"] });
  }
  return { items };
}

/** Makes a schema whose validation doubles with each level, so that it would take days. */
export function hostileSchema(): TaskContract["task"]["outputSchema"] {
  const definitions: Record<string, JsonValue> = { d0: { type: "number" } };
  for (let i = 1; i <= 40; i++) {
    const below = { $ref: `#/definitions/d${i - 1}` };
    definitions[`d${i}`] = { anyOf: [below, below] };
  }
  return { $ref: "#/definitions/d40", definitions };
}

/** Returns the quantile of the times, e.g. the 99th percentile for a `part` of 0.99. */
export function quantile(times: readonly number[], part: number): number {
  const sorted = [...times].sort((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) * part)] ?? Number.NaN;
}
