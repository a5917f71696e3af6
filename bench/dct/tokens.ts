import {
  type AttenuateParams,
  attenuateToken,
  type CreateParams,
  createToken,
  type Keypair,
  keypairFromSeed,
  RevocationSet,
  type SignedJSONToken,
  serialiseToken,
  type VerificationContext,
} from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";

const keypair = (n: number): Keypair => keypairFromSeed(engine, new Uint8Array(32).fill(n));
export const root = keypair(1);
export const holders = Array.from({ length: 7 }, (_, i) => keypair(i + 2));

export const NOW = Date.UTC(2026, 1, 17, 12);
export const ROOT = root.principal.id;
export const TOKENS = 64;
export const REVOCATIONS = 100_000;

/** Returns what token number `n` grants: 3 capabilities. */
export function authorityOf(n: number): CreateParams {
  return {
    delegatee: holders[0]?.principal.id ?? "",
    capabilities: [
      { namespace: "docs", action: "read", resource: `/project-${n}/**` },
      { namespace: "docs", action: "write", resource: `/project-${n}/drafts/*` },
      { namespace: "web", action: "fetch", resource: "https://example.com/**" },
    ],
    contractId: "ct_a1b2c3d4e5f6",
    maxBudgetMicrocents: 1_000_000 + n,
    maxChainDepth: 8,
  };
}

/** Returns attenuation `i` of token number `n`: 2 capabilities, and lower limits than the block above. */
export function attenuationOf(n: number, i: number): AttenuateParams {
  return {
    delegatee: holders[i + 1]?.principal.id ?? "",
    allowedCapabilities: [
      { namespace: "docs", action: "read", resource: `${pathOf(n, i + 1)}/**` },
      { namespace: "web", action: "fetch", resource: "https://example.com/**" },
    ],
    maxBudgetMicrocents: 900_000 - i,
    maxChainDepth: 6 - i,
  };
}

/** Returns the path that token number `n` with a number of attenuations allows. */
export function pathOf(n: number, links: number): string {
  return `/project-${n}${Array.from({ length: links }, (_, i) => `/part-${i}`).join("")}`;
}

export function mint(n: number): SignedJSONToken {
  return createToken(engine, authorityOf(n), root, { now: NOW });
}

/** Adds attenuation `i` to token number `n`. */
export function attenuate(chain: SignedJSONToken, n: number, i: number): SignedJSONToken {
  return attenuateToken(engine, chain, attenuationOf(n, i), holders[i] as Keypair);
}

/** Makes token number `n` with a number of attenuations. */
export function token(n: number, links: number): SignedJSONToken {
  let chain = mint(n);
  for (let i = 0; i < links; i++) chain = attenuate(chain, n, i);
  return chain;
}

/**
 * Serialised tokens, and the holder of their last block. `next` returns the tokens in turn, each time as a new text.
 */
export function tokens(links: number) {
  const texts = Array.from({ length: TOKENS }, (_, n) => {
    return Buffer.from(serialiseToken(token(n, links)).token, "latin1");
  });
  let turn = 0;
  const holder = holders[links] as Keypair;
  return {
    holder,
    /**
     * Returns the next token as a new text, as it would arrive over the network, and a resource that the token allows.
     */
    next: () => {
      const n = turn++ % TOKENS;
      return { text: (texts[n] as Buffer).toString("latin1"), resource: `${pathOf(n, links)}/report.txt` };
    },
  };
}

/** Returns a set of `count` revocations, none of them for a block of these tokens. */
export function revoked(count: number): RevocationSet {
  const set = new RevocationSet();
  for (const id of revocationIds(count)) set.add(id);
  return set;
}

export function* revocationIds(count: number): Generator<string> {
  const seed = new Uint32Array(8);
  for (let i = 0; i < count; i++) {
    seed[0] = i;
    yield Buffer.from(engine.blake2b256(new Uint8Array(seed.buffer))).toString("base64url");
  }
}

export function contextOf(
  revocations: VerificationContext["revocations"],
  holder: VerificationContext["holder"] = "proved",
): Omit<VerificationContext, "request"> {
  return { trustedRoots: new Set([ROOT]), revocations, now: NOW + 1000, spentMicrocents: 10, holder };
}
