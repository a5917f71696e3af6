import { create } from "@bufbuild/protobuf";
import { createRouterTransport } from "@connectrpc/connect";
import { DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import {
  ContractService,
  GetContractLineageResponseSchema,
} from "@depute/contracts/depute/verifier/v1/contract_service_pb";
import { canonicalJson, DeputeError, ErrorReason, ManualClock } from "@depute/core";
import type { Keypair, SerializedDCT } from "@depute/dct";
import { toConnectError } from "@depute/service";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ContractLineages } from "./chains.ts";
import { forgeLink } from "./testing/forge.ts";
import { alice, bob, CONTRACT, carol } from "./testing/holders.ts";
import { createReplica, openBus, openMemory, presented, rootToken } from "./testing/parts.ts";

const [PART, SMALLER, STRANGE] = ["ct_000000000001", "ct_000000000002", "ct_000000000003"];

let parents: Record<string, string[]>;
let isAway: boolean;
let askedIds: string[];
beforeEach(() => {
  parents = { [CONTRACT]: [], [PART]: [CONTRACT], [SMALLER]: [PART, CONTRACT], [STRANGE]: [] };
  isAway = false;
  askedIds = [];
});

const verifier = createRouterTransport((router) => {
  router.rpc(ContractService.method.getContractLineage, ({ contractId: id }) => {
    askedIds.push(id);
    if (isAway) throw toConnectError(DeputeError.received(ErrorReason.DEPENDENCY_UNAVAILABLE, "away"));
    const ancestorIds = parents[id];
    if (ancestorIds !== undefined) return create(GetContractLineageResponseSchema, { ancestorIds });
    throw toConnectError(
      new DeputeError(ErrorReason.CONTRACT_NOT_FOUND, "none", { metadata: { contract: id } }),
    );
  });
});

describe("a chain over several contracts (5.2)", () => {
  let replica: ReturnType<typeof createReplica>;
  let clock: ManualClock;
  let stop: () => Promise<void>;
  beforeEach(async () => {
    clock = new ManualClock();
    const [store, bus] = [await openMemory(), openBus()];
    replica = createReplica({ store, bus, clock, verifier });
    await replica.reader.start();
    stop = async () => {
      await replica.reader.close();
      await bus.close();
      await store.close();
    };
  });
  afterEach(() => stop());

  /** Creates a chain to carol: the root block is for the contract `first`, and the block below it for `second`. */
  const chain = (first: string, second: string): SerializedDCT => {
    const narrowed = forgeLink(rootToken(clock).token, alice, bob, { contractId: first });
    return forgeLink(narrowed.token, bob, carol, { contractId: second });
  };
  const outcome = async (token: SerializedDCT, holder: Keypair = carol) => {
    const { result } = await replica.tokenVerifier.verify(presented(clock, token, holder), "");
    return result.case === "denial" ? [result.value.type, result.value.detail] : "allowed";
  };
  const mismatch = (level: number, more = "") => [
    DenialType.CONTRACT_MISMATCH,
    `attenuations[${level}].contractId${more}`,
  ];

  it.each<[string, string, string, unknown]>([
    ["the same contract", CONTRACT, CONTRACT, "allowed"],
    ["a part of the contract", PART, PART, "allowed"],
    ["a part and a part of that part", PART, SMALLER, "allowed"],
    ["the contract and a part of a part", CONTRACT, SMALLER, "allowed"],
    ["another contract", STRANGE, STRANGE, mismatch(0)],
    ["an unknown contract", "ct_ffffffffffff", "ct_ffffffffffff", mismatch(0)],
    ["a part and then the whole again", PART, CONTRACT, mismatch(1)],
    ["a small part and then the larger one", SMALLER, PART, mismatch(1)],
  ])("of %s is decided by the recorded contracts", async (_, first, second, expected) => {
    expect(await outcome(chain(first, second))).toEqual(expected);
  });

  it("of one contract needs no call", async () => {
    isAway = true;
    expect(await outcome(chain(CONTRACT, CONTRACT))).toBe("allowed");
    expect(askedIds).toEqual([]);
  });

  it("is read once", async () => {
    await outcome(chain(PART, SMALLER));
    expect(askedIds.toSorted()).toEqual([PART, SMALLER]);
    isAway = true;
    expect(await outcome(chain(PART, SMALLER))).toBe("allowed");
    expect(askedIds).toHaveLength(2);
  });

  it("is denied while the verifier is unavailable, and allowed afterwards", async () => {
    isAway = true;
    const token = chain(PART, SMALLER);
    expect(await outcome(token)).toEqual(
      mismatch(0, ": the verifier service does not respond; try again later"),
    );
    expect((await replica.chains.check(token)).ok).toBe(false);
    expect((await replica.chains.proven(token)).ok).toBe(false);
    expect((await replica.chains.provenLevels(token)).ok).toBe(false);
    isAway = false;
    expect(await outcome(token)).toBe("allowed");
    expect((await replica.chains.check(token)).ok).toBe(true);
    expect((await replica.chains.proven(token)).ok).toBe(true);
    expect((await replica.chains.provenLevels(token)).ok).toBe(true);
  });

  it("causes no call for a chain with invalid signatures", async () => {
    const { token, format } = forgeLink(rootToken(clock).token, alice, bob, { contractId: PART });
    const text = JSON.parse(Buffer.from(token, "base64url").toString());
    text.signatures[1].signature = text.signatures[0].signature;
    const forged = { token: Buffer.from(canonicalJson(text)).toString("base64url"), format };
    expect(await outcome(forged, bob)).toMatchObject([DenialType.INVALID_SIGNATURE, expect.anything()]);
    expect(askedIds).toEqual([]);
  });
});

describe("the cached lineages", () => {
  it("are bounded, with the least recently used evicted", async () => {
    const lineages = new ContractLineages(verifier, 2);
    for (const id of [CONTRACT, PART, CONTRACT, SMALLER]) await lineages.read(id);
    expect(askedIds).toEqual([CONTRACT, PART, SMALLER]);
    expect(lineages.cachedLineage(PART)).toBeUndefined();
    expect(lineages.cachedLineage(CONTRACT)).toEqual(new Set());
    expect(lineages.cachedLineage(SMALLER)).toEqual(new Set([PART, CONTRACT]));
  });

  it("exclude contracts that do not exist yet", async () => {
    const lineages = new ContractLineages(verifier);
    const id = "ct_00000000000a";
    expect(await lineages.read(id)).toEqual(new Set());
    parents[id] = [CONTRACT];
    expect(await lineages.read(id)).toEqual(new Set([CONTRACT]));
  });

  it("are read by one call for several waiters", async () => {
    const lineages = new ContractLineages(verifier);
    await Promise.all([lineages.read(PART), lineages.read(PART)]);
    expect(askedIds).toEqual([PART]);
  });
});
