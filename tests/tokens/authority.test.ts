import { VerificationMethod } from "@depute/contracts/delegateos/v0/verification_pb";
import { DecompositionMode } from "@depute/contracts/depute/verifier/v1/contract_service_pb";
import { encodeBase64Url } from "@depute/core";
import { generateKeypair } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { introduce, startPlatform, type TestPlatform, value } from "../gateway/platform.ts";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await startPlatform();
});
afterAll(() => platform.stop());

const DEADLINE = new Date(Date.now() + 3_600_000).toISOString();
const [issuer, holder, worker] = [generateKeypair(engine), generateKeypair(engine), generateKeypair(engine)];

function given<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("there is none");
  return value;
}

/** A contract that the verifier has made ready and its issuer has signed. */
async function signedContract(maxBudgetMicrocents: bigint, maxChainDepth: bigint) {
  const { contract, digest } = await platform.clients.contracts.prepareContract({
    contract: {
      issuer: issuer.principal.id,
      task: { title: "Read", description: "Read the plan.", inputs: {}, outputSchema: value({}) },
      verification: { method: VerificationMethod.SCHEMA_MATCH },
      constraints: {
        ...{ maxBudgetMicrocents, maxChainDepth, requiredCapabilities: ["docs:read"] },
        deadline: DEADLINE,
      },
    },
  });
  return { ...given(contract), signature: encodeBase64Url(engine.sign(digest, issuer.privateKey)) };
}

describe("a token for a part of the contract", () => {
  it("counts when the verifier has recorded the part, and not before", async () => {
    const { contracts, tokens } = platform.clients;
    const [whole, part] = [await signedContract(1000n, 2n), await signedContract(100n, 1n)];
    await contracts.createContract({ contract: whole });
    const { token } = await tokens.mintToken({
      ...{ requestId: crypto.randomUUID(), delegatee: holder.principal.id, contractId: whole.id },
      capabilities: [{ namespace: "docs", action: "read", resource: "**" }],
      ...{ maxBudgetMicrocents: 1000n, maxChainDepth: 2 },
    });
    const narrow = { delegatee: worker.principal.id, contractId: part.id };
    const prepare = () => tokens.prepareAttenuation({ token: given(token), attenuation: narrow });
    await expect(prepare()).rejects.toThrow("contract_mismatch");

    await contracts.decomposeContract({
      ...{ parentId: whole.id, mode: DecompositionMode.SEQUENTIAL, parts: [{ contract: part }] },
    });
    const { attenuation, digest } = await prepare();
    const signature = engine.sign(digest, holder.privateKey);
    const narrowed = await tokens.attenuateToken({
      ...{ token: given(token), attenuation: given(attenuation), signature },
    });
    const inspect = (contractId: string) =>
      tokens.inspectToken({
        ...{ token: given(narrowed.token), contractId, requiredCapabilities: ["docs:read"] },
      });
    expect((await inspect(part.id)).result).toMatchObject({
      case: "scope",
      value: { contractId: part.id },
    });
    // It serves the part alone.
    expect((await inspect(whole.id)).result.case).toBe("denial");
  });
});

describe("an agent whose key the platform keeps", () => {
  it("has its new key in the registry and on its card soon after a rotation", async () => {
    const { keys, agents } = platform.clients;
    const { key } = await keys.createKey({ requestId: crypto.randomUUID(), agentId: "researcher" });
    const old = given(key);
    await introduce(platform, "researcher", [["find"]], old.principal);
    const rotated = await keys.rotateKey({ keyId: old.id });
    const { principal } = given(rotated.key);
    await vi.waitFor(
      async () => {
        const { agent } = await agents.getAgent({ id: "researcher" });
        expect(agent).toMatchObject({ principal, capabilityIds: ["find"], version: "1.2.0" });
      },
      { timeout: 5_000 },
    );
    const { card } = await agents.getAgentCard({ id: "researcher" });
    expect(JSON.parse(new TextDecoder().decode(card)).delegateos.principal).toBe(principal);
  });
});
