import { afterAll, beforeAll, expect, test } from "vitest";
import { type Platform, startPlatform, value } from "./testing/platform.ts";

let platform: Platform;
beforeAll(async () => {
  platform = await startPlatform();
});
afterAll(() => platform.stop());

test("a restart keeps contracts, attestations, request ids and the verifier's key", async () => {
  const contract = await platform.agree();
  const request = {
    requestId: "kept",
    contractId: contract.id,
    delegationId: "del_0123456789ab",
    output: value({ label: "good" }),
  };
  const before = {
    contract: await platform.contracts.getContract({ contractId: contract.id }),
    verifier: await platform.attestations.getVerifier({}),
    attested: await platform.attestations.attestOutput(request),
  };
  await platform.restart();
  expect({
    contract: await platform.contracts.getContract({ contractId: contract.id }),
    verifier: await platform.attestations.getVerifier({}),
    attested: await platform.attestations.attestOutput(request),
  }).toEqual(before);
});
