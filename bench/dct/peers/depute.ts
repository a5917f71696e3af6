import { serialiseToken, VerifiedPrefixes, verifyToken } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { attenuate, contextOf, mint, REVOCATIONS, revoked, TOKENS, token, tokens } from "../tokens.ts";
import type { Operations } from "./operations.ts";

const context = contextOf(revoked(REVOCATIONS));

export function depute(): Operations {
  const verify = (links: number, verified?: VerifiedPrefixes) => {
    const source = tokens(links);
    return () => {
      const { text, resource } = source.next();
      const request = { namespace: "docs", action: "read", resource };
      const result = verifyToken(engine, text, { ...context, request }, verified && { verified });
      if (!result.ok) throw new Error(result.denial.type);
    };
  };
  let turn = 0;
  return {
    mint: () => () => serialiseToken(mint(turn++ % TOKENS)),
    attenuate(links) {
      const held = Array.from({ length: TOKENS }, (_, n) => token(n, links));
      return () => {
        const n = turn++ % TOKENS;
        return serialiseToken(attenuate(held[n] as (typeof held)[number], n, links));
      };
    },
    cold: (links) => verify(links),
    warm: (links) => verify(links, new VerifiedPrefixes()),
  };
}
