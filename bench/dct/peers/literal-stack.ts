import { buildAttenuation, buildAuthority } from "@depute/dct";
import { attenuateLiterally, mintLiterally, verifyLiterally } from "../literal.ts";
import {
  attenuationOf,
  authorityOf,
  holders,
  NOW,
  REVOCATIONS,
  ROOT,
  revocationIds,
  root,
  TOKENS,
  token,
  tokens,
} from "../tokens.ts";
import type { Operations } from "./operations.ts";

/**
 * The specification's text with the libraries that it names. It caches nothing, so the operations `warm` and `cold` are
 * the same.
 */
export function literalStack(): Operations {
  const ids = new Set(revocationIds(REVOCATIONS));
  const fixed = {
    rootPublicKey: ROOT,
    revocations: { isRevoked: (id: string) => ids.has(id) },
    now: new Date(NOW + 1000).toISOString(),
    spentMicrocents: 10,
    namespace: "docs",
    operation: "read",
  };
  const verify = (links: number) => {
    const source = tokens(links);
    return () => {
      const { text, resource } = source.next();
      const result = verifyLiterally({ token: text, format: "delegateos-sjt-v1" }, { ...fixed, resource });
      if ("type" in result) throw new Error(String(result.type));
    };
  };
  let turn = 0;
  return {
    mint() {
      const blocks = Array.from({ length: TOKENS }, (_, n) =>
        buildAuthority(ROOT, authorityOf(n), { now: NOW }),
      );
      return () => mintLiterally(blocks[turn++ % TOKENS] as (typeof blocks)[number], root.privateKey);
    },
    attenuate(links) {
      const holder = holders[links];
      if (holder === undefined) throw new Error("there is no holder");
      const held = Array.from({ length: TOKENS }, (_, n) => {
        const chain = token(n, links);
        return { chain, block: buildAttenuation(chain, attenuationOf(n, links), holder.principal.id) };
      });
      return () => {
        const { chain, block } = held[turn++ % TOKENS] as (typeof held)[number];
        return attenuateLiterally(chain, block, holder.privateKey);
      };
    },
    cold: verify,
    warm: verify,
  };
}
