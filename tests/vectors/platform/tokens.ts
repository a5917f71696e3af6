import {
  type Attenuation,
  attachAttenuationSignature,
  attenuationSigningInput,
  authoritySigningInput,
  portableEngine as engine,
  isSubset,
  matches,
  parsePattern,
  parseResource,
  parseToken,
  revocationIds,
  type SignedJSONToken,
  serialiseToken,
  TokenError,
  verifyToken,
} from "@depute/dct";
import { contextOf } from "../../../tools/vectors/token-verifications.ts";
import { type Answer, base64url, hexBytes, hexText, type Operations } from "./answer.ts";

export const tokenOperations: Operations = {
  /** Reads the minted token from the file and verifies it under its root. */
  mint({ seedHex, authority }, { expected }) {
    const { token: text, signedText } = expected as { token: string; signedText: string };
    const token = read(text);
    const trustedRoots = [authority.issuer];
    const result = verifyToken(
      engine,
      text,
      contextOf({ trustedRoots, now: Date.parse(authority.issuedAt) }),
    );
    if (!result.ok) return { refusal: result.denial.type };
    const digest = authoritySigningInput(engine, authority);
    return {
      expected: {
        signedText,
        digestHex: hexText(digest),
        signature: base64url(engine.sign(digest, hexBytes(seedHex))),
        token: serialiseToken(token).token,
        revocationIds: result.blocks.map(({ revocationId }) => revocationId),
      },
    };
  },

  /** The holder signs a block outside of the library, as a holder with its own key does. */
  attenuate({ token: text, seedHex, block }) {
    return orDenied(() => {
      const before = read(text);
      const digest = attenuationSigningInput(engine, before, block as Attenuation);
      const signature = engine.sign(digest, hexBytes(seedHex));
      const token = attachAttenuationSignature(engine, before, block, signature);
      return {
        expected: {
          digestHex: hexText(digest),
          signature: base64url(signature),
          token: serialiseToken(token).token,
          revocationIds: revocationIds(engine, token),
        },
      };
    });
  },

  parse({ token }) {
    const parsed = parseToken(token);
    return parsed.ok ? { expected: parsed.token } : { refusal: parsed.denial.type };
  },

  verify({ token, context }) {
    const result = verifyToken(engine, token, contextOf(context), { path: "reference" });
    if (!result.ok) return { refusal: result.denial.type };
    const { scope, blocks } = result;
    return { expected: { scope, revocationIds: blocks.map(({ revocationId }) => revocationId) } };
  },

  match({ namespace, pattern, resource }) {
    const [one, other] = [parsePattern(pattern, namespace), parseResource(resource, namespace)];
    if ("problem" in one || "problem" in other) return { refusal: "invalid_resource" };
    return { expected: { matches: matches(one, other) } };
  },

  subset: ({ parent, child }) => ({ expected: { isSubset: isSubset(child, parent) } }),
};

function read(text: string): SignedJSONToken {
  const parsed = parseToken(text);
  if (!parsed.ok) throw new TokenError(parsed.denial);
  return parsed.token;
}

function orDenied(run: () => Answer): Answer {
  try {
    return run();
  } catch (error) {
    if (error instanceof TokenError) return { refusal: error.denial.type };
    throw error;
  }
}
