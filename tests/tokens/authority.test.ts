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

function requirePresent<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("there is none");
  return value;
}

/** Makes a contract that the verifier prepared and the issuer signed. */
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
  return { ...requirePresent(contract), signature: encodeBase64Url(engine.sign(digest, issuer.privateKey)) };
}

describe("a token for a part of the contract", () => {
  it("is valid only after the verifier has recorded the part", async () => {
    const { contracts, tokens } = platform.clients;
    const [wholeContract, part] = [await signedContract(1000n, 2n), await signedContract(100n, 1n)];
    await contracts.createContract({ contract: wholeContract });
    const { token } = await tokens.mintToken({
      ...{ requestId: crypto.randomUUID(), delegatee: holder.principal.id, contractId: wholeContract.id },
      capabilities: [{ namespace: "docs", action: "read", resource: "**" }],
      ...{ maxBudgetMicrocents: 1000n, maxChainDepth: 2 },
    });
    const narrow = { delegatee: worker.principal.id, contractId: part.id };
    const prepare = () => tokens.prepareAttenuation({ token: requirePresent(token), attenuation: narrow });
    await expect(prepare()).rejects.toThrow("contract_mismatch");

    await contracts.decomposeContract({
      ...{ parentId: wholeContract.id, mode: DecompositionMode.SEQUENTIAL, parts: [{ contract: part }] },
    });
    const { attenuation, digest } = await prepare();
    const signature = engine.sign(digest, holder.privateKey);
    const narrowed = await tokens.attenuateToken({
      ...{ token: requirePresent(token), attenuation: requirePresent(attenuation), signature },
    });
    const inspect = (contractId: string) =>
      tokens.inspectToken({
        ...{ token: requirePresent(narrowed.token), contractId, requiredCapabilities: ["docs:read"] },
      });
    expect((await inspect(part.id)).result).toMatchObject({
      case: "scope",
      value: { contractId: part.id },
    });
    // The attenuated token is valid only for the sub-contract, not for the whole contract.
    expect((await inspect(wholeContract.id)).result.case).toBe("denial");
  });
});

describe("an agent whose key the platform keeps", () => {
  it("has its new key in the registry and on its card after a rotation", async () => {
    const { keys, agents } = platform.clients;
    const { key } = await keys.createKey({ requestId: crypto.randomUUID(), agentId: "researcher" });
    const old = requirePresent(key);
    await introduce(platform, "researcher", [["find"]], old.principal);
    const rotated = await keys.rotateKey({ keyId: old.id });
    const { principal } = requirePresent(rotated.key);
    await vi.waitFor(
      async () => {
        const { agent } = await agents.getAgent({ agentId: "researcher" });
        expect(agent).toMatchObject({ principal, capabilityIds: ["find"], version: "1.2.0" });
      },
      { timeout: 5_000 },
    );
    const { card } = await agents.getAgentCard({ agentId: "researcher" });
    expect(JSON.parse(new TextDecoder().decode(card)).delegateos.principal).toBe(principal);
  });
});
