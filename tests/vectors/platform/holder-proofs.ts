import {
  argumentsDigest,
  checkProof,
  createProof,
  portableEngine as engine,
  keypairFromSeed,
} from "@depute/dct";
import { isSameTarget } from "@depute/tokens/target";
import { answerOf } from "../../../tools/vectors/holder-proofs.ts";
import { hexBytes, type Operations } from "./answer.ts";

export const holderProofOperations: Operations = {
  /**
   * Computes the `htm` and `htu` that a proof must have. tests/gateway/proofs.test.ts sends proofs with such targets to
   * a platform.
   */
  target({ publicUrl, protocol, service, method, httpMethod, path }) {
    const htm = { "connect-get": "GET", http: httpMethod }[protocol as string] ?? "POST";
    return { expected: { htm, htu: publicUrl + (path ?? `/${service}/${method}`).split("?")[0] } };
  },

  create({ seedHex, ...claims }) {
    const proof = createProof(engine, keypairFromSeed(engine, hexBytes(seedHex)), claims);
    const [header, payload] = proof.split(".").map((part) => Buffer.from(part, "base64url").toString());
    return { expected: { header, payload, proof } };
  },

  "arguments-digest": ({ arguments: args }) => ({ expected: { ard: argumentsDigest(engine, args) } }),

  check: ({ proof, expected }) => answerOf(checkProof(engine, proof, { ...expected, isSameTarget })),

  "same-target": ({ claimed, htu }) => ({ expected: { isSame: isSameTarget(claimed, htu) } }),

  /** Remembers used proofs as the documentation of AcceptedProof specifies. */
  "check-in-order": ({ htm, htu, presentations }) => {
    const used = new Set<string>();
    const answers = presentations.map(({ proof, now }: { proof: string; now: number }) => {
      const result = checkProof(engine, proof, { htm, htu, now });
      if (!result.ok) return result.denial.type;
      const key = `${result.proof.principal} ${result.proof.jti}`;
      if (used.has(key)) return "replayed_proof";
      used.add(key);
      return "accepted";
    });
    return { expected: { answers } };
  },
};
