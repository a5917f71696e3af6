import { argumentsDigest, portableEngine as engine, HolderSession, type SessionTerms } from "@depute/dct";
import { answerOf } from "../../../tools/vectors/holder-proofs.ts";
import { fixedSession } from "../../../tools/vectors/holder-sessions.ts";
import { hexBytes, type Operations } from "./answer.ts";

/** Makes the verifier's side of a holder session, with a key and terms from the vector file. */
const sessionOf = (terms: SessionTerms, keyHex: string) => new HolderSession(engine, terms, hexBytes(keyHex));

export const holderSessionOperations: Operations = {
  /**
   * The verifier's side, with the vector file's key, must accept a proof that the holder's side makes with its own
   * key.
   */
  open({ token, now }, { expected }) {
    const { proof, grant, caller, session } = fixedSession(token);
    const { keyHex, ...rest } = expected as { keyHex: string };
    const call = { htm: "POST", htu: `${session.terms.audience}/a.B/C`, now };
    const checked = sessionOf(session.terms, keyHex).check(engine, caller.prove(call), {
      ...call,
      ...(token !== undefined && { token }),
    });
    if (!checked.ok) return { refusal: checked.denial.type };
    return { expected: { ...rest, keyHex, proof, grant } };
  },

  prove({ keyHex, id, counter, htm, htu, now, arguments: args }, { expected }) {
    const { terms } = fixedSession().session;
    const { proof } = expected as { proof: string };
    const ard = args === undefined ? {} : { ard: argumentsDigest(engine, args) };
    const checked = sessionOf({ ...terms, id }, keyHex).check(engine, proof, { htm, htu, now, ...ard });
    if (!checked.ok || checked.proof.counter !== counter) return { refusal: "invalid_proof" };
    return { expected: { proof } };
  },

  check: ({ keyHex, terms, proof, expected }) =>
    answerOf(sessionOf(terms, keyHex).check(engine, proof, expected)),

  window({ counters }) {
    const { session } = fixedSession();
    return { expected: { used: counters.map((counter: number) => session.use(counter)) } };
  },
};
