import { encodeBase64Url } from "@depute/core";
import {
  argumentsDigest,
  type CallerSession,
  type HolderSession,
  openSession,
  requestSession,
  type SessionGrant,
} from "@depute/dct";
import { answerOf } from "./holder-proofs.ts";
import {
  engine,
  hex,
  keypairOf,
  NOW,
  principalOf,
  seedOf,
  utf8,
  type VectorCase,
  type VectorFile,
} from "./shared.ts";
import { ROOT_TOKEN, textOf } from "./token-chain.ts";

const TOKEN = textOf(ROOT_TOKEN);
const AUDIENCE = "https://depute.example";
const OPENING = {
  htm: "POST",
  htu: "https://depute.example/depute.tokens.v1.HolderSessionService/OpenHolderSession",
  jti: "opening-0001",
  now: NOW,
};
const CALL = { htm: "POST", htu: "https://depute.example/depute.tasks.v1.TaskService/GetTask" };
const ARGUMENTS = { path: "/project/plans/q1" };

/** The seed of the key that the holder makes for the holder session. */
const HOLDER_SEED = new Uint8Array(32).fill(0x21);
/** The seed of the key that the verifier makes for the holder session. */
const VERIFIER_SEED = new Uint8Array(32).fill(0x22);
/** The bytes of the holder session's id. */
const ID = new Uint8Array(16).fill(0x23);

/** A holder session that both sides opened with fixed random bytes. */
export interface FixedSession {
  readonly proof: string;
  readonly grant: SessionGrant;
  readonly caller: CallerSession;
  readonly session: HolderSession;
}

/** Opens a holder session by the platform's own functions, with fixed random bytes. */
export function fixedSession(token?: string): FixedSession {
  const tokenMember = { ...(token !== undefined && { token }) };
  const request = withRandom([HOLDER_SEED], () =>
    requestSession(engine, keypairOf("alice"), { ...OPENING, ...tokenMember, audience: AUDIENCE }),
  );
  const expected = { ...OPENING, ...tokenMember, opens: AUDIENCE };
  const opened = withRandom([VERIFIER_SEED, ID], () =>
    openSession(engine, request.proof, expected, { verifier: keypairOf("root") }),
  );
  if (!opened.ok) throw new Error(`the session is not opened: ${opened.denial.type}`);
  const caller = request.accept(opened.grant, principalOf("root"));
  return { proof: request.proof, grant: opened.grant, caller, session: opened.session };
}

/** Runs a function that draws random bytes. It gets these byte strings instead, in order. */
function withRandom<T>(bytes: readonly Uint8Array[], run: () => T): T {
  const remaining = [...bytes];
  const { getRandomValues } = crypto;
  crypto.getRandomValues = ((out: Uint8Array) => {
    const next = remaining.shift();
    if (next?.length !== out.length) throw new Error("other random bytes are read than the vectors have");
    out.set(next);
    return out;
  }) as typeof getRandomValues;
  try {
    return run();
  } finally {
    crypto.getRandomValues = getRandomValues;
  }
}

export function holderSessionVectors(): VectorFile {
  return {
    specification: "holder-sessions.md",
    cases: [
      openVector("without a token"),
      openVector("beside a token", TOKEN),
      ...proofs(),
      ...checks(),
      ...windows(),
    ],
  };
}

function openVector(name: string, token?: string): VectorCase {
  const { proof, grant, session } = fixedSession(token);
  const tokenMember = { ...(token !== undefined && { token }) };
  const { key, sharedHex, termsHex } = keyOf(session);
  return {
    name: `open: ${name}`,
    operation: "open",
    input: {
      seedHex: hex(seedOf("alice")),
      holderSeedHex: hex(HOLDER_SEED),
      verifierSeedHex: hex(VERIFIER_SEED),
      signerSeedHex: hex(seedOf("root")),
      idHex: hex(ID),
      ...OPENING,
      ...tokenMember,
      audience: AUDIENCE,
      expiresAt: grant.expiresAt,
    },
    expected: { proof, termsHex, sharedHex, keyHex: hex(key), grant },
  };
}

/**
 * Computes the key of a holder session by the specified formula. The tests compare it with the key that both sides use.
 */
function keyOf({ terms }: HolderSession): { key: Uint8Array; sharedHex: string; termsHex: string } {
  const { ath = null, ...rest } = terms;
  const members = Object.entries({ ...rest, ath }).sort(([one], [other]) => (one < other ? -1 : 1));
  const bytes = utf8(`delegateos-session-v1\0${JSON.stringify(Object.fromEntries(members))}`);
  const shared = engine.agree(HOLDER_SEED, engine.publicKey(VERIFIER_SEED)) as Uint8Array;
  return { key: engine.mac(shared, bytes), sharedHex: hex(shared), termsHex: hex(bytes) };
}

function proofs(): VectorCase[] {
  const { caller, session } = fixedSession(TOKEN);
  const keyHex = hex(keyOf(session).key);
  return [
    { ...CALL, now: NOW + 5 },
    { ...CALL, htm: "GET", now: NOW + 6 },
    { ...CALL, now: NOW + 7, arguments: ARGUMENTS },
  ].map((claims, i) => ({
    name: `prove: call ${i + 1}`,
    operation: "prove",
    input: { keyHex, id: session.terms.id, counter: i + 1, ...claims },
    expected: { proof: caller.prove(claims) },
  }));
}

function checks(): VectorCase[] {
  const { caller, session } = fixedSession(TOKEN);
  const input = { keyHex: hex(keyOf(session).key), terms: session.terms };
  const honest = caller.prove({ ...CALL, now: NOW });
  const expected = { ...CALL, now: NOW, token: TOKEN, principal: principalOf("alice") };
  const [id, counter, time, code] = honest.split(".") as [string, string, string, string];
  const tool = caller.prove({ ...CALL, now: NOW, arguments: ARGUMENTS });
  const ard = argumentsDigest(engine, ARGUMENTS);
  const end = session.terms.expiresAt;
  const late = caller.prove({ ...CALL, now: end });
  const outside = "https://depute.example.evil.example/depute.tasks.v1.TaskService/GetTask";
  const rows: readonly (readonly [name: string, proof: string, more?: object])[] = [
    ["an honest proof", honest],
    ["for a tool call", tool, { ard }],
    ["an age of 60 seconds", honest, { now: NOW + 60_000 }],
    ["an age of more than 60 seconds", honest, { now: NOW + 60_001 }],
    ["30 seconds in the future", honest, { now: NOW - 30_000 }],
    ["more than 30 seconds in the future", honest, { now: NOW - 30_001 }],
    ["the last millisecond of the session", late, { now: end }],
    ["a millisecond after the session", late, { now: end + 1 }],
    ["no proof", ""],
    ["three parts", [id, counter, time].join(".")],
    ["a counter of zero", [id, "0", time, code].join(".")],
    ["a counter with a leading zero", [id, "01", time, code].join(".")],
    ["a counter above 2^53 - 1", [id, "9007199254740992", time, code].join(".")],
    ["a code with unused bits", [id, counter, time, `${"A".repeat(42)}B`].join(".")],
    ["another session", [encodeBase64Url(new Uint8Array(16)), counter, time, code].join(".")],
    ["another principal", honest, { principal: principalOf("bob") }],
    ["an address outside the audience", honest, { htu: outside }],
    ["another token", honest, { token: "other" }],
    ["no token", honest, { token: undefined }],
    ["another method", honest, { htm: "GET" }],
    ["another path", honest, { htu: `${CALL.htu}s` }],
    ["another counter", [id, "2", time, code].join(".")],
    ["another time", [id, counter, String(NOW + 1), code].join(".")],
    ["no ard for a tool call", honest, { ard }],
    ["ard where none is expected", tool],
  ];
  return rows.map(([name, proof, more]) => {
    const call = JSON.parse(JSON.stringify({ ...expected, ...more })) as typeof expected;
    const result = session.check(engine, proof, call);
    const row = { name: `check: ${name}`, operation: "check", input: { ...input, proof, expected: call } };
    return { ...row, ...answerOf(result) };
  });
}

function windows(): VectorCase[] {
  const rows: readonly (readonly [name: string, counters: readonly number[]])[] = [
    ["in order, with repeats", [1, 2, 2, 3, 1]],
    ["out of order", [5, 3, 4, 5, 1, 2, 1]],
    ["the oldest of the window", [1024, 1, 1025, 2, 1026, 2, 3]],
    ["older than the window", [2000, 976, 977, 977]],
    ["a jump over the whole window", [1, 2, 5000, 3977, 3976, 2, 5000]],
  ];
  return rows.map(([name, counters]) => {
    const { session } = fixedSession();
    return {
      name: `window: ${name}`,
      operation: "window",
      input: { counters },
      expected: { used: counters.map((counter) => session.use(counter)) },
    };
  });
}
