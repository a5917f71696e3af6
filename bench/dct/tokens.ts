import {
  attenuateToken,
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
const root = keypair(1);
const holders = Array.from({ length: 7 }, (_, i) => keypair(i + 2));

export const NOW = Date.UTC(2026, 1, 17, 12);
export const ROOT = root.principal.id;
export const TOKENS = 64;
export const REVOCATIONS = 100_000;

/** One of many tokens: 3 capabilities at the root, 2 a link, every limit narrowed. */
function token(n: number, links: number): SignedJSONToken {
  let chain = createToken(
    engine,
    {
      delegatee: holders[0]?.principal.id ?? "",
      capabilities: [
        { namespace: "docs", action: "read", resource: `/project-${n}/**` },
        { namespace: "docs", action: "write", resource: `/project-${n}/drafts/*` },
        { namespace: "web", action: "fetch", resource: "https://example.com/**" },
      ],
      contractId: "ct_a1b2c3d4e5f6",
      maxBudgetMicrocents: 1_000_000 + n,
      maxChainDepth: 8,
    },
    root,
    { now: NOW },
  );
  let path = `/project-${n}`;
  for (let i = 0; i < links; i++) {
    path += `/part-${i}`;
    const params = {
      delegatee: holders[i + 1]?.principal.id ?? "",
      allowedCapabilities: [
        { namespace: "docs", action: "read", resource: `${path}/**` },
        { namespace: "web", action: "fetch", resource: "https://example.com/**" },
      ],
      maxBudgetMicrocents: 900_000 - i,
      maxChainDepth: 6 - i,
    };
    chain = attenuateToken(engine, chain, params, holders[i] as Keypair);
  }
  return chain;
}

/** Serialised tokens, and the holder of the last link. `next` gives them in turn, each time as a new text. */
export function tokens(links: number) {
  const texts = Array.from({ length: TOKENS }, (_, n) => {
    return Buffer.from(serialiseToken(token(n, links)).token, "latin1");
  });
  let turn = 0;
  const holder = holders[links] as Keypair;
  const path = Array.from({ length: links }, (_, i) => `/part-${i}`).join("");
  return {
    holder,
    /** A token as it comes from a wire, and a resource that it allows. */
    next: () => {
      const n = turn++ % TOKENS;
      return { text: (texts[n] as Buffer).toString("latin1"), resource: `/project-${n}${path}/report.txt` };
    },
  };
}

/** A set of so many revocations, none of them of these tokens. */
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
