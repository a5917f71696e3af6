import { canonicalBytes } from "@depute/core";
import { generateKeypair, type Keypair, newId, signObject } from "@depute/dct";
import { nativeEngine } from "@depute/dct/native";
import type { Attestation, TaskContract, VerificationSpec } from "../rules/documents.ts";

export interface ContractParts {
  verification?: VerificationSpec;
  outputSchema?: TaskContract["task"]["outputSchema"];
  maxBudgetMicrocents?: number;
  id?: string;
  issuer?: string;
  deadline?: string;
  maxChainDepth?: number;
  requiredCapabilities?: string[];
}

/** Returns a contract without a signature. Its creation time is before the time at which the tests' clocks start. */
export function contractBody(parts: ContractParts = {}): Omit<TaskContract, "signature"> {
  return {
    id: parts.id ?? newId("ct"),
    version: "0.1",
    issuer: parts.issuer ?? "A".repeat(43),
    createdAt: "2025-12-31T12:00:00Z",
    task: {
      title: "Sentiment",
      description: "Tell the sentiment of a text.",
      inputs: { text: "fine" },
      outputSchema: parts.outputSchema ?? {
        type: "object",
        properties: { label: { type: "string" } },
        required: ["label"],
      },
    },
    verification: parts.verification ?? { method: "schema_match" },
    constraints: {
      maxBudgetMicrocents: parts.maxBudgetMicrocents ?? 1000,
      deadline: parts.deadline ?? "2026-02-01T00:00:00Z",
      maxChainDepth: parts.maxChainDepth ?? 2,
      requiredCapabilities: parts.requiredCapabilities ?? ["docs:read"],
    },
  };
}

/** Returns a verification that consists of one check. */
export function check(checkName: string, checkParams: unknown): VerificationSpec {
  return { method: "deterministic_check", checkName, checkParams };
}

export const engine = nativeEngine;
export const delegator: Keypair = generateKeypair(nativeEngine);
export const worker: Keypair = generateKeypair(nativeEngine);

/** Returns a contract with its issuer's signature. The issuer is the delegator, unless another key is given. */
export function signedContract(parts: ContractParts = {}, issuer: Keypair = delegator): TaskContract {
  return signObject(engine, "contract", contractBody({ ...parts, issuer: issuer.principal.id }), issuer);
}

/** Returns an attestation of a completion. The worker signs it, unless another key is given. */
export function signedCompletion(
  contractId: string,
  change: Partial<Attestation> = {},
  signer: Keypair = worker,
): Attestation {
  return signObject(
    engine,
    "attestation",
    {
      id: newId("att"),
      version: "0.1",
      contractId,
      delegationId: "del_0123456789ab",
      principal: signer.principal.id,
      createdAt: "2026-01-01T00:00:00Z",
      type: "completion",
      result: { success: true, output: { label: "good" }, costMicrocents: 10, durationMs: 5 },
      childAttestations: [],
      ...change,
    },
    signer,
  );
}

/** Returns the hash of an output: base64url of BLAKE2b-256 of its canonical JSON. */
export function hashedOutput(output: unknown): string {
  return Buffer.from(engine.blake2b256(canonicalBytes(output))).toString("base64url");
}
