import {
  type AttenuateParams,
  type Attenuation,
  attenuateToken,
  attenuationSigningInput,
  authoritySigningInput,
  createToken,
  revocationIds,
  type SignedJSONToken,
  serialiseToken,
} from "@depute/dct";
import { HOLDERS, signedText } from "./forge.ts";
import { engine, hex, principalOf, seedOf, type VectorCase } from "./shared.ts";

export const CONTRACT = "ct_a1b2c3d4e5f6";

/** The token that the root key grants to alice. */
export const ROOT_TOKEN = createToken(
  engine,
  {
    delegatee: principalOf("alice"),
    capabilities: [
      { namespace: "docs", action: "read", resource: "/project/**" },
      { namespace: "web", action: "fetch", resource: "https://example.com/**" },
      { namespace: "llm", action: "generate", resource: "*" },
    ],
    contractId: CONTRACT,
    delegationId: "del_000000000001",
    maxBudgetMicrocents: 1_000_000,
    maxChainDepth: 6,
    issuedAt: "2026-02-17T12:00:00.000Z",
    expiresAt: "2026-02-17T13:00:00.000Z",
  },
  HOLDERS[0],
);

/** The five attenuations, in order: each holder reduces one limit for the next holder. */
const LINKS: readonly (readonly [
  name: string,
  holder: string,
  params: Omit<AttenuateParams, "delegatee">,
])[] = [
  [
    "narrower resources",
    "alice",
    {
      allowedCapabilities: [
        { namespace: "docs", action: "read", resource: "/project/plans/*" },
        { namespace: "web", action: "fetch", resource: "https://example.com/a/**" },
      ],
    },
  ],
  ["a smaller budget", "bob", { maxBudgetMicrocents: 5000 }],
  ["an earlier expiry", "carol", { expiresAt: "2026-02-17T12:30:00Z" }],
  ["a smaller remaining depth", "dave", { maxChainDepth: 1 }],
  [
    "one capability and a budget of one",
    "erin",
    {
      allowedCapabilities: [{ namespace: "docs", action: "read", resource: "/project/plans/q1" }],
      maxBudgetMicrocents: 1,
      maxChainDepth: 0,
    },
  ],
];

const DELEGATEES = ["bob", "carol", "dave", "erin", "mallory"] as const;

/** The root token, and the token after each of the five attenuations. */
export const CHAIN: readonly SignedJSONToken[] = LINKS.reduce<SignedJSONToken[]>(
  (chain, [, , params], i) => {
    const delegatee = principalOf(DELEGATEES[i] as (typeof DELEGATEES)[number]);
    const delegationId = `del_00000000000${i + 2}`;
    const holder = HOLDERS[i + 1] as (typeof HOLDERS)[number];
    const last = chain.at(-1) as SignedJSONToken;
    chain.push(attenuateToken(engine, last, { ...params, delegatee, delegationId }, holder));
    return chain;
  },
  [ROOT_TOKEN],
);

export function textOf(token: SignedJSONToken): string {
  return serialiseToken(token).token;
}

export function chainVectors(): VectorCase[] {
  return [mintVector(), ...LINKS.map(([name, holder], i) => attenuationVector(name, holder, i))];
}

function mintVector(): VectorCase {
  const { authority } = ROOT_TOKEN;
  return {
    name: "mint",
    operation: "mint",
    input: { seedHex: hex(seedOf("root")), authority },
    expected: {
      signedText: signedText(authority, [], 0),
      digestHex: hex(authoritySigningInput(engine, authority)),
      signature: ROOT_TOKEN.signatures[0]?.signature,
      token: textOf(ROOT_TOKEN),
      revocationIds: revocationIds(engine, ROOT_TOKEN),
    },
  };
}

function attenuationVector(name: string, holder: string, i: number): VectorCase {
  const [before, after] = [CHAIN[i], CHAIN[i + 1]] as [SignedJSONToken, SignedJSONToken];
  const block = after.attenuations[i] as Attenuation;
  return {
    name: `attenuate: ${name}`,
    operation: "attenuate",
    input: { token: textOf(before), seedHex: hex(seedOf(holder as "alice")), block },
    expected: {
      digestHex: hex(attenuationSigningInput(engine, before, block)),
      signature: after.signatures.at(-1)?.signature,
      token: textOf(after),
      revocationIds: revocationIds(engine, after),
    },
  };
}
