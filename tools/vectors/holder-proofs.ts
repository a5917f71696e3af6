import { canonicalBytes, encodeBase64Url } from "@depute/core";
import {
  type AcceptedProof,
  argumentsDigest,
  checkProof,
  createProof,
  type DenialReason,
  type ProofClaims,
  tokenDigest,
} from "@depute/dct";
import { isSameTarget } from "@depute/tokens/target";
import {
  encodeJson,
  encodeText,
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
const ARGUMENTS = { path: "/project/plans/q1", lines: [1, 20] };
const CALL = { htm: "POST", htu: "https://depute.example/depute.tasks.v1.TaskService/GetTask" };
const CLAIMS = { ...CALL, jti: "proof-0001", now: NOW };

const HEADER = {
  alg: "EdDSA",
  jwk: { crv: "Ed25519", kty: "OKP", x: principalOf("alice") },
  typ: "dpop+jwt",
};
const PAYLOAD = { ...CALL, iat: NOW / 1000, jti: "proof-0001" };

/** The call that a verifier expects a proof to name. */
export interface ExpectedCall {
  readonly htm: string;
  readonly htu: string;
  readonly now: number;
  readonly token?: string;
  readonly principal?: string;
  readonly ard?: string;
}

const EXPECTED: ExpectedCall = { ...CALL, now: NOW };

export function holderProofVectors(): VectorFile {
  return {
    specification: "holder-proofs.md",
    cases: [...targets(), ...created(), ...digests(), ...checked(), ...sameTargets(), ...replays()],
  };
}

/** Returns cases of the HTTP method and the address that a proof must name: one case for each kind of call. */
function targets(): VectorCase[] {
  const publicUrl = "https://depute.example";
  const rpc = { publicUrl, service: "depute.tasks.v1.TaskService", method: "GetTask" };
  const htu = `${publicUrl}/depute.tasks.v1.TaskService/GetTask`;
  const rows: readonly (readonly [name: string, input: object, expected: object])[] = [
    ["gRPC", { ...rpc, protocol: "grpc" }, { htm: "POST", htu }],
    ["gRPC-Web", { ...rpc, protocol: "grpc-web" }, { htm: "POST", htu }],
    ["Connect, POST", { ...rpc, protocol: "connect" }, { htm: "POST", htu }],
    ["Connect, GET", { ...rpc, protocol: "connect-get" }, { htm: "GET", htu }],
    [
      "an HTTP path with a query",
      { publicUrl, protocol: "http", httpMethod: "GET", path: "/v1/asp/sessions/s1/messages?after=3" },
      { htm: "GET", htu: `${publicUrl}/v1/asp/sessions/s1/messages` },
    ],
    [
      "a public URL with a path",
      { ...rpc, publicUrl: "https://example.com/depute", protocol: "grpc" },
      { htm: "POST", htu: "https://example.com/depute/depute.tasks.v1.TaskService/GetTask" },
    ],
  ];
  return rows.map(([name, input, expected]) => ({
    name: `target: ${name}`,
    operation: "target",
    input,
    expected,
  }));
}

function created(): VectorCase[] {
  const rows: readonly (readonly [name: string, claims: ProofClaims])[] = [
    ["without a token", CLAIMS],
    ["of a GET", { ...CLAIMS, htm: "GET" }],
    ["beside a token", { ...CLAIMS, token: TOKEN }],
    ["beside a token, for a tool call", { ...CLAIMS, token: TOKEN, arguments: ARGUMENTS }],
    ["at 999 milliseconds", { ...CLAIMS, now: NOW + 999 }],
  ];
  return rows.map(([name, claims]) => {
    const proof = createProof(engine, keypairOf("alice"), claims);
    const [header, payload] = proof.split(".").map((part) => Buffer.from(part, "base64url").toString());
    const input = { seedHex: hex(seedOf("alice")), ...claims };
    return { name: `create: ${name}`, operation: "create", input, expected: { header, payload, proof } };
  });
}

function digests(): VectorCase[] {
  return [{}, ARGUMENTS, { b: 1, a: [null, "\u20ac"] }].map((value) => ({
    name: `ard of ${JSON.stringify(value)}`,
    operation: "arguments-digest",
    input: { arguments: value },
    expected: { ard: argumentsDigest(engine, value) },
  }));
}

type CheckRow = readonly [name: string, proof: string, expected?: Partial<ExpectedCall>];

const BESIDE = { token: TOKEN, principal: principalOf("alice") };
const ATH = tokenDigest(engine, TOKEN);
const ARD = argumentsDigest(engine, ARGUMENTS);
const OTHER_ARD = argumentsDigest(engine, {});

const CHECKS: readonly CheckRow[] = [
  ["an honest proof", jws({})],
  ["alg Ed25519", jws({}, { alg: "Ed25519" })],
  [
    "a payload in another order, with white space",
    jwsOfText(JSON.stringify({ ...PAYLOAD, extra: 1 }, null, 1)),
  ],
  [
    "a key with its optional members",
    jws({}, withKey({ kid: "k", use: "sig", alg: "EdDSA", key_ops: ["verify"], ext: true })),
  ],
  ["beside a token", jws({ ath: ATH }), BESIDE],
  ["for a tool call", jws({ ath: ATH, ard: ARD }), { ...BESIDE, ard: ARD }],
  ["no proof", ""],
  ["two parts", jws({}).split(".").slice(0, 2).join(".")],
  ["padding", `${jws({})}=`],
  ["more than 4,096 characters", jws({ extra: "x".repeat(4096) })],
  ["a repeated claim", jwsOfText(JSON.stringify(PAYLOAD).replace('{"htm"', '{"htm":"GET","htm"'))],
  ["a payload that is an array", jwsOfText("[]")],
  ["a header of another type", jws({}, { typ: "JWT" })],
  ["a header without a type", jws({}, { typ: undefined })],
  ["alg none", jws({}, { alg: "none" })],
  ["alg ES256", jws({}, { alg: "ES256" })],
  ["a critical extension", jws({}, { crit: ["b64"] })],
  ["a private key in the header", jws({}, withKey({ d: "AA" }))],
  ["a key for encryption", jws({}, withKey({ use: "enc" }))],
  ["a key of small order", jws({}, withKey({ x: `AQ${"A".repeat(41)}` }))],
  ["the key of another principal", jws({}), { principal: principalOf("bob") }],
  ["a signature of another key", jws({}, {}, "mallory")],
  ["an altered payload", altered()],
  ["another method", jws({ htm: "GET" })],
  ["a method in lower case", jws({ htm: "post" })],
  ["another path", jws({ htu: "https://depute.example/depute.tasks.v1.TaskService/ListTasks" })],
  ["another host", jws({ htu: CALL.htu.replace("depute.example", "evil.example") })],
  [
    "another spelling of the address",
    jws({ htu: CALL.htu.replace("https://depute.example", "HTTPS://Depute.Example:443") }),
  ],
  ["an address with a query", jws({ htu: `${CALL.htu}?x=1` })],
  ["a jti of 7 characters", jws({ jti: "1234567" })],
  ["a jti of 8 characters", jws({ jti: "12345678" })],
  ["a jti of 129 characters", jws({ jti: "j".repeat(129) })],
  ["a jti with a space", jws({ jti: "proof 0001" })],
  ["no jti", jws({ jti: undefined })],
  ["a time with a fraction", jws({ iat: NOW / 1000 + 0.5 })],
  ["a time as a text", jws({ iat: String(NOW / 1000) })],
  ["a time in milliseconds", jws({ iat: NOW })],
  ["an age of 60 seconds", jws({}), { now: NOW + 60_000 }],
  ["an age of more than 60 seconds", jws({}), { now: NOW + 60_001 }],
  ["30 seconds in the future", jws({}), { now: NOW - 30_000 }],
  ["more than 30 seconds in the future", jws({}), { now: NOW - 30_001 }],
  ["no ath beside a token", jws({}), BESIDE],
  ["ath of another token", jws({ ath: tokenDigest(engine, "other") }), BESIDE],
  ["ath without a token", jws({ ath: ATH })],
  ["no ard for a tool call", jws({ ath: ATH }), { ...BESIDE, ard: ARD }],
  ["ard of other arguments", jws({ ath: ATH, ard: OTHER_ARD }), { ...BESIDE, ard: ARD }],
  ["ard where none is expected", jws({ ath: ATH, ard: ARD }), BESIDE],
  ["a proof that opens a session", jws({ epk: principalOf("bob"), aud: "https://depute.example" })],
];

function checked(): VectorCase[] {
  return CHECKS.map(([name, proof, more]) => {
    const expected = { ...EXPECTED, ...more };
    const result = checkProof(engine, proof, { ...expected, isSameTarget });
    const row = { name: `check: ${name}`, operation: "check", input: { proof, expected } };
    return { ...row, ...answerOf(result) };
  });
}

/** Returns the result of a check in the form of a case. */
export function answerOf(
  result: { ok: true; proof: AcceptedProof } | { ok: false; denial: DenialReason },
): Pick<VectorCase, "expected" | "refusal" | "fault"> {
  if (result.ok) return { expected: result.proof };
  const { type, detail } = result.denial;
  return { refusal: type, ...(detail !== undefined && { fault: detail }) };
}

function sameTargets(): VectorCase[] {
  const rows: readonly (readonly [one: string, other: string])[] = [
    ["https://host", "https://host/"],
    ["https://host:443/a", "https://host/a"],
    ["http://host:80/a", "http://host/a"],
    ["https://host:8443/a", "https://host/a"],
    ["HTTPS://HOST/a", "https://host/a"],
    ["https://host/A", "https://host/a"],
    ["https://host/a?query=1", "https://host/a"],
    ["https://host/a#fragment", "https://host/a"],
    ["https://host/a/./b/../c", "https://host/a/c"],
    ["https://host/a/%2e%2e/b", "https://host/b"],
    ["https://host/%7euser", "https://host/~user"],
    ["https://host/%c3%a4", "https://host/%C3%A4"],
    ["https://host/a%2Fb", "https://host/a/b"],
    ["https://host/a/", "https://host/a"],
    ["http://host/a", "https://host/a"],
    ["https://user@host/a", "https://host/a"],
    ["https://host\\a", "https://host/a"],
    [" https://host/a", "https://host/a"],
    ["urn:tools", "urn:Tools"],
  ];
  return rows.map(([claimed, htu]) => ({
    name: `same target: ${claimed} and ${htu}`,
    operation: "same-target",
    input: { claimed, htu },
    expected: { isSame: isSameTarget(claimed, htu) },
  }));
}

/**
 * Returns cases of proofs that one verifier receives in order. The verifier accepts each proof only once for
 * each key.
 */
function replays(): VectorCase[] {
  const ownProof = jws({});
  const presentations = [
    { proof: ownProof, now: NOW },
    { proof: ownProof, now: NOW + 1 },
    { proof: jws({ jti: "proof-0002" }), now: NOW + 2 },
    { proof: jws({ htm: "GET" }), now: NOW + 3 },
    { proof: jws({}, withKey({ x: principalOf("bob") }), "bob"), now: NOW + 4 },
    { proof: jws({ iat: NOW / 1000 + 1 }), now: NOW + 1000 },
    { proof: ownProof, now: NOW + 60_001 },
  ];
  const answers = [
    "accepted",
    "replayed_proof",
    "accepted",
    "invalid_proof",
    "accepted",
    "replayed_proof",
    "invalid_proof",
  ];
  return [
    {
      name: "a proof counts once",
      operation: "check-in-order",
      input: { htm: CALL.htm, htu: CALL.htu, presentations },
      expected: { answers },
    },
  ];
}

function withKey(more: object): object {
  return { jwk: { ...HEADER.jwk, ...more } };
}

/** Returns a JWS with the given content and a valid signature. An undefined member is removed. */
function jws(payload: object, header: object = {}, signer: "alice" | "bob" | "mallory" = "alice"): string {
  return sign(
    encodeJson(defined({ ...HEADER, ...header })),
    encodeJson(defined({ ...PAYLOAD, ...payload })),
    signer,
  );
}

function jwsOfText(payload: string): string {
  return sign(encodeJson(HEADER), encodeText(payload), "alice");
}

function sign(header: string, payload: string, signer: "alice" | "bob" | "mallory"): string {
  const signed = `${header}.${payload}`;
  return `${signed}.${encodeBase64Url(engine.sign(utf8(signed), seedOf(signer)))}`;
}

/** Returns a proof whose payload was replaced after it was signed. */
function altered(): string {
  const [header, , signature] = jws({}).split(".");
  return `${header}.${encodeBase64Url(canonicalBytes({ ...PAYLOAD, jti: "proof-0009" }))}.${signature}`;
}

function defined(value: object): object {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined));
}
