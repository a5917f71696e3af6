import { generateKeypair, signObject } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { describe, expect, test } from "vitest";
import { call, error, introduce, type Json, json, startPlatform, type TestPlatform } from "./platform.ts";

const [delegator, worker] = [generateKeypair(engine), generateKeypair(engine)];

/** Ids in the form that the examples of the published package use. */
const IDS = { contract: "ct_demo", delegation: "del_001", attestation: "att_001" };

/** Makes a contract whose ids follow this platform's relaxed rule for ids. */
function contractOf(): Json {
  const body: Json = {
    ...{ id: IDS.contract, version: "0.1", issuer: delegator.principal.id },
    createdAt: new Date(Date.now() - 1000).toISOString(),
    task: { title: "Count", description: "Count.", inputs: {}, outputSchema: { type: "object" } },
    verification: { method: "schema_match" },
    constraints: {
      ...{ maxBudgetMicrocents: 1000, maxChainDepth: 2, requiredCapabilities: ["llm:classify"] },
      deadline: new Date(Date.now() + 600_000).toISOString(),
    },
  };
  return signObject(engine, "contract", body, delegator);
}

const mint = ({ clients }: TestPlatform) =>
  clients.tokens.mintToken({
    ...{ requestId: crypto.randomUUID(), delegatee: worker.principal.id, contractId: IDS.contract },
    capabilities: [{ namespace: "llm", action: "classify", resource: "**" }],
    ...{ delegationId: IDS.delegation, maxBudgetMicrocents: 1000n },
  });
const post = (platform: TestPlatform, method: string, params: object) =>
  platform.post("/delegateos", call(method, params));

describe("ids of published examples", () => {
  test("are refused by default, with the field", async () => {
    const platform = await startPlatform();
    try {
      await expect(mint(platform)).rejects.toThrow("contract_id");
      const params = { delegationId: IDS.delegation, attestation: { id: IDS.attestation } };
      expect(await error(post(platform, "delegateos/complete", params))).toMatchObject({ code: -32602 });
    } finally {
      await platform.stop();
    }
  });

  test("are accepted from the contract to the completion if the setting relaxes them", async () => {
    const platform = await startPlatform(["--ids", "relaxed"]);
    try {
      await introduce(platform, "worker", [], worker.principal.id);
      const minted = await mint(platform);
      expect(minted.delegationId).toBe(IDS.delegation);
      const delegated = await json(
        post(platform, "delegateos/delegate", {
          ...{ contract: contractOf(), dct: minted.token?.token, dctFormat: "delegateos-sjt-v1" },
          ...{ delegationId: IDS.delegation, parentDelegationId: "del_000000000000" },
        }),
      );
      expect(delegated.result).toMatchObject({ accepted: true, delegationId: IDS.delegation });
      const body: Json = {
        ...{ id: IDS.attestation, version: "0.1", contractId: IDS.contract, delegationId: IDS.delegation },
        ...{ principal: worker.principal.id, createdAt: new Date().toISOString(), type: "completion" },
        result: { success: true, output: { count: 3 }, costMicrocents: 5, durationMs: 10 },
        childAttestations: [],
      };
      const attestation = signObject(engine, "attestation", body, worker);
      const params = { delegationId: IDS.delegation, attestation };
      const completed = await json(post(platform, "delegateos/complete", params));
      expect(completed.result).toEqual({ delegationId: IDS.delegation, status: "completed" });
      const { attestations } = await platform.clients.attestations.listAttestations({
        contractId: IDS.contract,
      });
      expect(attestations.map(({ id }) => id)).toEqual([IDS.attestation]);
      // Relaxed ids still exclude spaces.
      const spaced = { delegationId: "del 001", attestation };
      expect(await error(post(platform, "delegateos/complete", spaced))).toMatchObject({ code: -32602 });
    } finally {
      await platform.stop();
    }
  });
});
