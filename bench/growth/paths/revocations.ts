import { RevocationSet, VerifiedPrefixes, type VerifyOptions, verifyToken } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { contextOf, revocationIds, tokens } from "../../dct/tokens.ts";
import { cpuUsEach, type Path, powersTo } from "../path.ts";

const LARGEST = 1_000_000;
const LINKS = 2;
const COLD = "verify a token";
const WARM = "verify a token whose prefix is known";
/**
 * Number of calls in a round. Linux may count a thread's CPU time in steps of 4 ms, so a round must take much longer.
 */
const CALLS = { [COLD]: 1_000, [WARM]: 10_000 };

/** Revocations that a verifier knows. The token has 2 attenuations, and none of its blocks is revoked. */
export const revocations: Path = {
  name: "revocations",
  unit: "us",
  sizes: powersTo(LARGEST),
  lines: [COLD, WARM],
  flat: [COLD, WARM].map((line) => ({ line, from: 1_000, to: LARGEST, atMost: 1.5 })),
  async open() {
    const known = new RevocationSet();
    const ids = revocationIds(LARGEST);
    const verify = (options: VerifyOptions) => {
      const source = tokens(LINKS);
      const context = contextOf(known);
      return () => {
        const { text, resource } = source.next();
        const request = { namespace: "docs", action: "read", resource };
        const result = verifyToken(engine, text, { ...context, request }, options);
        if (!result.ok) throw new Error(result.denial.type);
      };
    };
    const lines = {
      [COLD]: verify({}),
      [WARM]: verify({ verified: new VerifiedPrefixes() }),
    };
    return {
      grow(size) {
        while (known.size < size) known.add(ids.next().value ?? "");
      },
      measure(line) {
        const operation = line as keyof typeof lines;
        cpuUsEach(CALLS[operation], lines[operation]);
        return cpuUsEach(CALLS[operation], lines[operation]);
      },
      close() {},
    };
  },
};
