import type { CallOptions } from "@connectrpc/connect";
import type { SerializedDCT } from "@depute/contracts/delegateos/v0/token_pb";
import { createProof, createRevocation, type Keypair, keypairFromSeed, type ProofClaims } from "@depute/dct";
import { nativeEngine } from "@depute/dct/native";
import { fromEntry } from "../rules/documents.ts";
import type { Platform } from "./platform.ts";

export const engine = nativeEngine;

/** Keypairs of holders outside the platform. */
export const [alice, bob, carol, mallory, otherRoot] = [11, 12, 13, 14, 15].map((n) => {
  return keypairFromSeed(engine, new Uint8Array(32).fill(n));
}) as [Keypair, Keypair, Keypair, Keypair, Keypair];

export const id = ({ principal }: Keypair): string => principal.id;

export const CONTRACT = "ct_a1b2c3d4e5f6";
export const READ = { namespace: "docs", action: "read", resource: "/project/**" };
export const SEARCH = { namespace: "web", action: "search", resource: "*" };
/** Returns the capability that most tests request: to read one resource. */
export const readFile = (resource = "/project/plan") => ({ ...READ, resource });

/** The call for which most proofs are made. */
export const CALL = { htm: "POST", htu: "https://depute.example/depute.tasks.v1.TaskService/CreateTask" };

let requests = 0;
export const newRequest = () => `request-${++requests}`;

/** Mints a root token for alice. */
export function mint(platform: Platform, more: object = {}, options: CallOptions = {}) {
  const request = {
    requestId: newRequest(),
    delegatee: id(alice),
    capabilities: [READ, SEARCH],
    contractId: CONTRACT,
    maxChainDepth: 3,
    maxBudgetMicrocents: 1000n,
    ...more,
  };
  return platform.tokens.mintToken(request, options);
}

/** Attenuates a token: the service prepares the bytes to sign, and the test signs them. */
export async function attenuate(
  platform: Platform,
  token: SerializedDCT | undefined,
  from: Keypair,
  to: Keypair,
  more: object = {},
) {
  const { attenuation, digest } = await platform.tokens.prepareAttenuation({
    token: requirePresent(token),
    attenuation: { delegatee: id(to), ...more },
  });
  const signature = engine.sign(digest, from.privateKey);
  return platform.tokens.attenuateToken({
    token: requirePresent(token),
    attenuation: requirePresent(attenuation),
    signature,
  });
}

/** Creates a holder's proof for CALL. */
export function prove(platform: Platform, holder: Keypair, claims: Partial<ProofClaims> = {}): string {
  return createProof(engine, holder, { ...CALL, now: platform.clock.now(), ...claims });
}

/** Presents a token with a proof of its holder, and returns the decision. */
export function verify(
  platform: Platform,
  token: SerializedDCT | undefined,
  holder: Keypair,
  more: { jwt?: string; requested?: typeof READ; [field: string]: unknown } = {},
) {
  const { jwt, requested = readFile(), ...rest } = more;
  const proof = jwt ?? prove(platform, holder, { token: requirePresent(token).token });
  return platform.tokens.verifyToken({
    token: requirePresent(token),
    proof: { jwt: proof, method: CALL.htm, target: CALL.htu },
    requested,
    ...rest,
  });
}

/** Creates a revocation signed by its revoker. */
export function revocation(
  platform: Platform,
  revocationId: string,
  revoker: Keypair,
  scope: "block" | "chain" = "block",
) {
  return fromEntry(createRevocation(engine, revocationId, scope, revoker, platform.clock.now()));
}

/** Returns the headers of a call with a proof of the caller's key. */
export function withProof(
  platform: Platform,
  caller: Keypair,
  method: string,
  claims: Partial<ProofClaims> = {},
) {
  const htu = `https://depute.example/depute.tokens.v1.${method}`;
  return { headers: { dpop: prove(platform, caller, { htm: "POST", htu, ...claims }) } };
}

export function requirePresent<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("there is none");
  return value;
}
