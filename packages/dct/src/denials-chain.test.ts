import { describe } from "vitest";
import { bob, delegation, encode, id, NOW, root, rootToken, sign } from "./testing/fixtures.ts";
import {
  authority,
  badSignature,
  expectDenials,
  link,
  malformed,
  read,
  signed,
  spentAtRoot,
  text,
  violation,
} from "./testing/forge.ts";

describe("chain semantics", () => {
  expectDenials([
    [
      "C1 no proof",
      text,
      { type: "proof_required" },
      { holder: { proof: undefined, htm: "POST", htu: "u" } },
    ],
    [
      "C1 junk as proof",
      text,
      { type: "invalid_proof" },
      { holder: { proof: "a.b.c", htm: "POST", htu: "u" } },
    ],
    [
      "C2 a link too deep",
      signed({ maxChainDepth: 1 }, [link(0), link(1)]),
      { type: "chain_depth_exceeded", max: 1, actual: 2 },
    ],
    ["C2 no depth at all", signed({ maxChainDepth: 0 }, [link(0)]), { type: "chain_depth_exceeded" }],
    [
      "C2 a stated depth used up",
      signed({}, [link(0, { maxChainDepth: 0 }), link(1)]),
      { type: "chain_depth_exceeded" },
    ],
    [
      "C2 a stated depth that grows",
      signed({}, [link(0, { maxChainDepth: 3 })]),
      { ...violation, detail: "attenuations[0]: depth expansion" },
    ],
    [
      "C2 deeper than its own stated depth",
      signed({ chainDepth: 4, parentDelegationId: delegation(9) }),
      { type: "chain_depth_exceeded" },
    ],
    [
      "C2 deeper than the verifier allows",
      signed({}, [link(0)]),
      { type: "chain_depth_exceeded" },
      { maxChainDepth: 0 },
    ],
    [
      "C3 another contract in the chain",
      signed({}, [link(0, { contractId: "ct_000000000009" })]),
      { type: "contract_mismatch" },
    ],
    [
      "C3 another contract is executed",
      text,
      { type: "contract_mismatch" },
      { contractId: "ct_000000000009" },
    ],
    [
      "C3 a required capability is missing",
      text,
      { type: "contract_mismatch", detail: "requiredCapabilities[1]" },
      { requiredCapabilities: ["docs:read", "docs:write"] },
    ],
    ["C3 a malformed requirement", text, { type: "contract_mismatch" }, { requiredCapabilities: ["docs"] }],
    ["C4 a day that does not exist", signed({ expiresAt: "2026-02-30T00:00:00Z" }), malformed],
    ["C4 a text that is not a time", signed({ expiresAt: "zzzz" }), malformed],
    ["C4 an offset", signed({ expiresAt: "2026-02-17T14:00:00+01:00" }), malformed],
    [
      "C4 half a second after the end",
      signed({ expiresAt: "2026-02-17T13:00:00Z" }, [link(0, { expiresAt: "2026-02-17T13:00:00.500Z" })]),
      violation,
    ],
    [
      "C4 issued in the future",
      text,
      { ...malformed, detail: "authority.issuedAt: in the future" },
      { now: NOW - 30_001 },
    ],
    ["C4 expires before it is issued", signed({ expiresAt: authority.issuedAt }), malformed],
    [
      "C4 a lifetime over the maximum",
      signed({ expiresAt: "2026-02-18T12:00:00.001Z" }),
      { ...malformed, detail: "authority.expiresAt: lifetime" },
    ],
    ["C4 a lifetime over the verifier's maximum", text, malformed, { maxLifetimeMs: 60_000 }],
    ["expired", text, { type: "expired" }, { now: NOW + 3_600_001 }],
    [
      "expired by an attenuation",
      signed({}, [link(0, { expiresAt: "2026-02-17T12:00:00.999Z" })]),
      { type: "expired" },
    ],
    ["C5 null capabilities", signed({}, [link(0, { allowedCapabilities: null })]), malformed],
    ["C5 null budget", signed({}, [link(0, { maxBudgetMicrocents: null })]), malformed],
    [
      "C5 an empty list of capabilities",
      signed({}, [link(0, { allowedCapabilities: [] })]),
      { type: "capability_not_granted" },
      { request: read },
    ],
    [
      "C6 a repeated delegation id",
      signed({}, [link(0), { ...link(1), delegationId: delegation(2) }]),
      malformed,
    ],
    [
      "C6 a delegation is its own parent",
      signed({ chainDepth: 1, parentDelegationId: delegation(1) }),
      malformed,
    ],
    ["C7 * as namespace", signed({ capabilities: [{ ...read, namespace: "*" }] }), malformed],
    ["C7 * as action", signed({ capabilities: [{ ...read, action: "*" }] }), malformed],
    [
      "C7 * requested as action",
      text,
      { type: "capability_not_granted" },
      { request: { ...read, action: "*" } },
    ],
    [
      "an attenuator that is not the delegatee",
      encode(sign(authority, [link(1)], [root, bob])),
      { ...violation, detail: "attenuations[0]: attenuator mismatch" },
    ],
    [
      "a capability that grows",
      signed({}, [link(0, { allowedCapabilities: [{ ...read, action: "write" }] })]),
      { ...violation, detail: "attenuations[0].allowedCapabilities[0]: capability expansion" },
    ],
    [
      "a capability that grows back",
      signed({}, [link(0, { allowedCapabilities: [] }), link(1, { allowedCapabilities: [read] })]),
      violation,
    ],
    ["a budget that grows", signed({}, [link(0, { maxBudgetMicrocents: 1001 })]), violation],
    [
      "a budget that grows back",
      signed({}, [link(0, { maxBudgetMicrocents: 5 }), link(1, { maxBudgetMicrocents: 6 })]),
      violation,
    ],
    [
      "a block moved to another chain",
      encode({ ...sign(authority, [link(0)]), authority: rootToken({ maxBudgetMicrocents: 9 }).authority }),
      badSignature,
    ],
    ["budget spent", text, { type: "budget_exceeded", level: 0 }, { spentMicrocents: 1000 }],
    [
      "budget of an ancestor spent",
      signed({}, [link(0, { maxBudgetMicrocents: 5 })]),
      { type: "budget_exceeded", level: 0 },
      { spentMicrocents: spentAtRoot(1000) },
    ],
  ]);
});

describe("globs and resources", () => {
  expectDenials([
    [
      "G1 a child beside the parent's folder",
      signed({}, [link(0, { allowedCapabilities: [{ ...read, resource: "/project-secret/**" }] })]),
      violation,
    ],
    [
      "G2 dots in a pattern",
      signed({ capabilities: [{ ...read, resource: "/project/../**" }] }),
      { type: "invalid_resource" },
    ],
    [
      "G2 dots in a request",
      text,
      { type: "invalid_resource" },
      { request: { ...read, resource: "/project/../etc" } },
    ],
    [
      "G2 escaped dots in a request",
      text,
      { type: "invalid_resource" },
      { request: { ...read, resource: "/project/%2e%2e/etc" } },
    ],
    ["G2 an empty request", text, { type: "invalid_resource" }, { request: { ...read, resource: "" } }],
    [
      "G2 a resource that is not text",
      text,
      { type: "invalid_resource" },
      { request: { ...read, resource: 7 as unknown as string } },
    ],
    [
      "G5 a request for everything",
      text,
      { type: "capability_not_granted" },
      { request: { ...read, resource: "*" } },
    ],
    [
      "G6 a request with a wildcard",
      text,
      { type: "invalid_resource" },
      { request: { ...read, resource: "/project/**" } },
    ],
    ["not granted", text, { type: "capability_not_granted" }, { request: { ...read, resource: "/secret" } }],
  ]);
});

describe("contexts that would falsify a comparison", () => {
  expectDenials([
    [
      "a context without a view of revocations",
      text,
      { type: "internal_context", detail: "revocations" },
      { revocations: {} as never },
    ],
    [
      "a context that forgets the holder",
      text,
      { type: "internal_context", detail: "holder" },
      { holder: undefined as never },
    ],
    [
      "a context with a list of roots",
      text,
      { type: "internal_context" },
      { trustedRoots: [id(root)] as never },
    ],
    ["a callback that throws", text, { type: "internal_context" }, { spentMicrocents: () => fail() }],
    [
      "stale revocations",
      text,
      { type: "revocation_state_stale" },
      { revocations: { isRevoked: () => false, isStale: () => true } },
    ],
    [
      "R5 a stale state that contains the revocation",
      text,
      { type: "revoked" },
      { revocations: { isRevoked: () => true, isStale: () => true } },
    ],
    [
      "a view that answers with a promise",
      text,
      { type: "revoked" },
      { revocations: { isRevoked: (async () => false) as never } },
    ],
    [
      "an asynchronous sub-contract rule",
      signed({}, [link(0, { contractId: "ct_000000000009" })]),
      { type: "contract_mismatch" },
      { subContract: (async () => true) as never },
    ],
  ]);
});

function fail(): never {
  throw new Error("a callback of the context");
}
