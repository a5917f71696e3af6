import { encodeBase64Url } from "@depute/core";
import {
  buildAttenuation,
  createRevocation,
  type DenialReason,
  type RevocationEntry,
  RevocationList,
  revocationIds,
  type SignedJSONToken,
  TokenError,
  type VerificationContext,
  verifyToken,
} from "@depute/dct";
import { forge, forged, HOLDERS, signedDigest } from "./forge.ts";
import { encodeJson, engine, hex, keypairOf, NOW, principalOf, seedOf, type VectorCase } from "./shared.ts";
import { CHAIN, CONTRACT, ROOT_TOKEN, textOf } from "./token-chain.ts";
import { link } from "./token-forms.ts";

/**
 * The context of a verification as JSON. The specification page states the meaning and the default of each
 * member.
 */
export interface ContextJson {
  readonly trustedRoots: readonly string[];
  readonly now: number;
  /** The spent microcents of each block, by revocation id. A block without an entry has spent nothing. */
  readonly spentMicrocents?: Readonly<Record<string, number>>;
  readonly revocations?: readonly RevocationEntry[];
  readonly request?: { namespace: string; action: string; resource: string };
  readonly contractId?: string;
  readonly requiredCapabilities?: readonly string[];
  readonly subContracts?: readonly (readonly [child: string, parent: string])[];
  readonly maxChainDepth?: number;
}

/** Returns a context as the platform's verification reads it, for a presenter without a proof. */
export function contextOf(json: ContextJson): VerificationContext {
  const { trustedRoots, spentMicrocents = {}, revocations = [], subContracts = [], ...rest } = json;
  const list = new RevocationList(engine);
  for (const entry of revocations) list.add(entry);
  return {
    ...rest,
    trustedRoots: new Set(trustedRoots),
    revocations: list,
    spentMicrocents: (block) => spentMicrocents[block] ?? 0,
    subContract: (child, parent) => subContracts.some(([one, other]) => one === child && other === parent),
    holder: "bearer",
  };
}

const { authority } = ROOT_TOKEN;
const [ROOT, NARROW, CHEAP, SHORT, , LAST] = CHAIN as [
  SignedJSONToken,
  SignedJSONToken,
  SignedJSONToken,
  SignedJSONToken,
  SignedJSONToken,
  SignedJSONToken,
];
const IDS = revocationIds(engine, LAST) as [string, string, string, ...string[]];
const READ = { namespace: "docs", action: "read", resource: "/project/plans/q1" };
const OTHER_CONTRACT = "ct_0000000000aa";

const CONTEXT: ContextJson = { trustedRoots: [principalOf("root")], now: NOW + 1000 };

type Row = readonly [name: string, token: string, context?: Partial<ContextJson>];

const ROWS: readonly Row[] = [
  ["the root token", textOf(ROOT)],
  ["the root token and a granted request", textOf(ROOT), { request: READ }],
  ["the token after one attenuation", textOf(NARROW), { request: READ }],
  ["the token after five attenuations", textOf(LAST), { request: READ }],
  ["spend that leaves a budget", textOf(CHEAP), { spentMicrocents: { [IDS[0]]: 999_000, [IDS[2]]: 100 } }],
  ["a block above the last one that is spent", textOf(CHEAP), { spentMicrocents: { [IDS[0]]: 1_000_000 } }],
  ["the last block that is spent", textOf(CHEAP), { spentMicrocents: { [IDS[2]]: 5000 } }],
  ["a budget of zero", forged({ ...authority, maxBudgetMicrocents: 0 })],
  ["the last millisecond", textOf(ROOT), { now: NOW + 3_600_000 }],
  ["one millisecond after the expiry", textOf(ROOT), { now: NOW + 3_600_001 }],
  ["the earlier expiry of an attenuation", textOf(SHORT), { now: NOW + 1_800_001 }],
  ["a token of thirty seconds in the future", textOf(ROOT), { now: NOW - 30_000 }],
  ["a token of more than thirty seconds in the future", textOf(ROOT), { now: NOW - 30_001 }],
  ["a lifetime of 24 hours", forged({ ...authority, expiresAt: "2026-02-18T12:00:00Z" })],
  ["a lifetime above 24 hours", forged({ ...authority, expiresAt: "2026-02-18T12:00:00.001Z" })],
  ["an issuer that is not trusted", textOf(ROOT), { trustedRoots: [principalOf("mallory")] }],
  ["no trusted root", textOf(ROOT), { trustedRoots: [] }],
  ["a forged root whose signature names another key", forged({ ...authority }, [], [keypairOf("mallory")])],
  ["a signature of another key beside the right name", encodeJson(wrongKey())],
  [
    "a signature of another message",
    encodeJson({ ...forge({ ...authority, maxBudgetMicrocents: 1 }), authority }),
  ],
  ["a removed attenuation", encodeJson({ ...NARROW, attenuations: [] })],
  [
    "an attenuation that its holder removed with its signature",
    encodeJson({ ...NARROW, attenuations: [], signatures: NARROW.signatures.slice(0, 1) }),
  ],
  ["a signature that is missing", encodeJson({ ...NARROW, signatures: NARROW.signatures.slice(0, 1) })],
  ["signatures in another order", encodeJson({ ...NARROW, signatures: [...NARROW.signatures].reverse() })],
  ["an attenuation from another chain", encodeJson(transplanted())],
  ["a wrong index of cover", encodeJson(withCover(1))],
  ["a signature over the block alone", encodeJson(blockAlone())],
  [
    "an attenuator that is not the delegatee",
    forged(authority, [link({ attenuator: principalOf("mallory") })], [HOLDERS[0], keypairOf("mallory")]),
  ],
  ["a wider resource", forged(authority, [link({ allowedCapabilities: [{ ...READ, resource: "/**" }] })])],
  ["another action", forged(authority, [link({ allowedCapabilities: [{ ...READ, action: "write" }] })])],
  ["another namespace", forged(authority, [link({ allowedCapabilities: [{ ...READ, namespace: "data" }] })])],
  ["a larger budget", forged(authority, [link({ maxBudgetMicrocents: 1_000_001 })])],
  ["a later expiry", forged(authority, [link({ expiresAt: "2026-02-17T13:00:00.001Z" })])],
  ["an equal remaining depth", forged(authority, [link({ maxChainDepth: 6 })])],
  ["no remaining depth", forged({ ...authority, maxChainDepth: 0 }, [link({})])],
  [
    "a root below its own depth",
    forged({ ...authority, parentDelegationId: "del_0000000000ff", chainDepth: 7 }),
  ],
  [
    "a root of another chain, with depth",
    forged({ ...authority, parentDelegationId: "del_0000000000ff", chainDepth: 2 }, [link({})]),
  ],
  ["a depth above the verifier's", textOf(CHEAP), { maxChainDepth: 1 }],
  ["an attenuation that states nothing", forged(authority, [link({})])],
  [
    "an attenuation that allows nothing",
    forged(authority, [link({ allowedCapabilities: [] })]),
    { request: READ },
  ],
  ["another contract in an attenuation", forged(authority, [link({ contractId: OTHER_CONTRACT })])],
  [
    "a recorded part of the contract",
    forged(authority, [link({ contractId: OTHER_CONTRACT })]),
    { subContracts: [[OTHER_CONTRACT, CONTRACT]] },
  ],
  ["the contract of the task", textOf(ROOT), { contractId: CONTRACT }],
  ["another contract than that of the task", textOf(ROOT), { contractId: OTHER_CONTRACT }],
  ["covered required capabilities", textOf(ROOT), { requiredCapabilities: ["docs:read", "llm:generate"] }],
  [
    "required capabilities that are not covered",
    textOf(ROOT),
    { requiredCapabilities: ["docs:read", "docs:write"] },
  ],
  ["a resource that is not granted", textOf(NARROW), { request: { ...READ, resource: "/project/other" } }],
  ["an action that is not granted", textOf(ROOT), { request: { ...READ, action: "write" } }],
  ["a request with a dot segment", textOf(ROOT), { request: { ...READ, resource: "/project/../x" } }],
  ["a request with a wildcard", textOf(ROOT), { request: { ...READ, resource: "/project/*" } }],
  ["a request for every resource, not granted", textOf(ROOT), { request: { ...READ, resource: "*" } }],
  [
    "a request for every resource, granted",
    textOf(ROOT),
    { request: { namespace: "llm", action: "generate", resource: "*" } },
  ],
  ["the root block revoked by the issuer", textOf(NARROW), { revocations: [revocation(0, "root")] }],
  ["the root block revoked by its delegatee", textOf(NARROW), { revocations: [revocation(0, "alice")] }],
  ["the root block revoked by a later holder", textOf(NARROW), { revocations: [revocation(0, "bob")] }],
  ["the second block revoked by the issuer", textOf(NARROW), { revocations: [revocation(1, "root")] }],
  ["a block revoked by a stranger", textOf(NARROW), { revocations: [revocation(1, "mallory")] }],
  ["a revocation of a block of another token", textOf(ROOT), { revocations: [revocation(1, "alice")] }],
  [
    "a revocation with a false signature",
    textOf(NARROW),
    { revocations: [{ ...revocation(0, "root"), scope: "chain" }] },
  ],
  [
    "a revoked token of an issuer that is not trusted",
    textOf(ROOT),
    { trustedRoots: [], revocations: [revocation(0, "root")] },
  ],
];

export function verifications(): VectorCase[] {
  return ROWS.map(([name, token, more]) => {
    const context = { ...CONTEXT, ...more };
    const result = verifyToken(engine, token, contextOf(context));
    const row = { name: `verify: ${name}`, operation: "verify", input: { token, context } };
    if (!result.ok) return { ...row, refusal: result.denial.type };
    const { scope, blocks } = result;
    return { ...row, expected: { scope, revocationIds: blocks.map(({ revocationId }) => revocationId) } };
  });
}

/** Blocks that a holder may not add to the root token. */
export function attenuationRefusals(): VectorCase[] {
  const rows: readonly (readonly [name: string, more: object])[] = [
    ["a wider resource", { allowedCapabilities: [{ ...READ, resource: "/**" }] }],
    ["an action that the token does not grant", { allowedCapabilities: [{ ...READ, action: "write" }] }],
    ["a larger budget", { maxBudgetMicrocents: 1_000_001 }],
    ["a later expiry", { expiresAt: "2026-02-17T13:00:00.001Z" }],
    ["an equal remaining depth", { maxChainDepth: 6 }],
    ["another contract", { contractId: OTHER_CONTRACT }],
    ["a time that is none", { expiresAt: "tomorrow" }],
    ["a delegation id that the chain has", { delegationId: authority.delegationId }],
    ["the key of another principal", { attenuator: principalOf("mallory") }],
  ];
  return rows.map(([name, more]) => {
    const block = link(more) as { attenuator: string } & Parameters<typeof buildAttenuation>[1];
    const seedHex = hex(seedOf(block.attenuator === principalOf("alice") ? "alice" : "mallory"));
    const { attenuator, ...params } = block;
    return {
      name: `attenuate: refused for ${name}`,
      operation: "attenuate",
      input: { token: textOf(ROOT), seedHex, block },
      refusal: denialOf(() => buildAttenuation(ROOT, params, attenuator)).type,
    };
  });
}

function denialOf(build: () => unknown): DenialReason {
  try {
    build();
  } catch (error) {
    if (error instanceof TokenError) return error.denial;
  }
  throw new Error("the block is allowed");
}

function revocation(level: number, by: "root" | "alice" | "bob" | "mallory"): RevocationEntry {
  return createRevocation(engine, IDS[level] as string, "block", keypairOf(by), NOW);
}

function wrongKey(): object {
  const token = forge(authority, [], [keypairOf("mallory")]);
  return { ...token, signatures: [{ ...token.signatures[0], signer: principalOf("root") }] };
}

/** The second block of the chain below another root block, with its signature. */
function transplanted(): object {
  const other = forge({ ...authority, delegationId: "del_0000000000b1" });
  return {
    ...other,
    attenuations: NARROW.attenuations,
    signatures: [...other.signatures, NARROW.signatures[1]],
  };
}

function withCover(covers: number): object {
  return { ...NARROW, signatures: [NARROW.signatures[0], { ...NARROW.signatures[1], covers }] };
}

/** Returns an attenuation whose signature covers only its own block, not the blocks above it. */
function blockAlone(): object {
  const attenuation = NARROW.attenuations[0] as object;
  const signature = engine.sign(signedDigest(attenuation, [], 0), keypairOf("alice").privateKey);
  return {
    ...NARROW,
    signatures: [NARROW.signatures[0], { ...NARROW.signatures[1], signature: encodeBase64Url(signature) }],
  };
}
