import { DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import { TokenService } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { ContractService } from "@depute/contracts/depute/verifier/v1/contract_service_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import { defineService } from "@depute/service";
import { startTestHost, type TestHost } from "@depute/service/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { tokens } from "../index.ts";
import { forgeLink } from "../testing/forge.ts";
import { alice, attenuate, bob, CONTRACT, mint, requirePresent } from "../testing/holders.ts";
import type { Platform } from "../testing/platform.ts";
import { refusal } from "../testing/refusal.ts";

const PART = "ct_000000000001";

let isAway: boolean;
const verifier = defineService({
  name: "verifier",
  settings: {},
  descriptors: [ContractService],
  start: async () => ({
    routes: (router) => {
      router.rpc(ContractService.method.getContractLineage, ({ contractId: id }) => {
        if (isAway) throw new DeputeError(ErrorReason.INTERNAL, "away");
        return { ancestorIds: id === PART ? [CONTRACT] : [] };
      });
    },
    close: async () => {},
  }),
});

let host: TestHost;
let platform: Platform;
beforeEach(async () => {
  isAway = false;
  host = await startTestHost({ module: tokens, fakes: [verifier] });
  platform = { clock: host.clock, tokens: host.client(TokenService) } as Platform;
});
afterEach(() => host.stop());

describe("a token for a part of its contract (5.2)", () => {
  it("is created, recorded and inspected", async () => {
    const { token } = await mint(platform);
    const narrowed = await attenuate(platform, token, alice, bob, { contractId: PART });
    const recorded = await platform.tokens.recordToken({ token: requirePresent(narrowed.token) });
    expect(recorded.blocks.map(({ contractId }) => contractId)).toEqual([CONTRACT, PART]);
    const { result } = await platform.tokens.inspectToken({
      token: requirePresent(narrowed.token),
      contractId: PART,
    });
    expect(result).toMatchObject({ case: "scope", value: { contractId: PART } });
  });

  it("is refused for a contract that is not a part", async () => {
    const { token } = await mint(platform);
    const call = attenuate(platform, token, alice, bob, { contractId: "ct_000000000009" });
    expect(await refusal(call)).toMatchObject({ reason: "ATTENUATION_VIOLATION" });
  });

  it("is refused, and inspected as invalid, for an unknown contract", async () => {
    isAway = true;
    const { token } = await mint(platform);
    const call = attenuate(platform, token, alice, bob, { contractId: PART });
    expect(await refusal(call)).toMatchObject({ reason: "ATTENUATION_VIOLATION" });
    const made = forgeLink(requirePresent(token).token, alice, bob, { contractId: PART });
    expect(await refusal(platform.tokens.recordToken({ token: made }))).toMatchObject({
      reason: "TOKEN_DENIED",
      metadata: { denial: "contract_mismatch" },
    });
    const { result } = await platform.tokens.inspectToken({ token: made });
    expect(result).toMatchObject({ case: "denial", value: { type: DenialType.CONTRACT_MISMATCH } });
  });
});
