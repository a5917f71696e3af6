import { expect, test } from "vitest";
import type { VerificationContext } from "../context.ts";
import { nativeEngine } from "../engine/native.ts";
import { portableEngine } from "../engine/portable.ts";
import { revocationId } from "../payload.ts";
import { serialiseToken } from "../serialise.ts";
import type { TokenSignature } from "../types.ts";
import { verifyToken } from "../verify.ts";
import {
  alice,
  bob,
  CONTRACT,
  carol,
  context,
  delegation,
  encode,
  encodeText,
  engine,
  id,
  mallory,
  root,
  rootToken,
  sign,
} from "./fixtures.ts";

/** A valid token. The functions below change it into forged tokens. */
export const honest = rootToken();
export const { authority } = honest;
export const { signature } = honest.signatures[0] as TokenSignature;
export const text = serialiseToken(honest).token;
export const read = { namespace: "docs", action: "read", resource: "/project/a" };
/** A signature whose point R is the curve's identity element. */
export const SMALL_R = `AQ${"A".repeat(84)}`;

/** Returns attenuation `n` of a chain whose holders are alice, bob, carol and mallory, in this order. */
export function link(n: number, more: object = {}) {
  const holders = [alice, bob, carol, mallory, root];
  const [from, to] = [holders[n] ?? root, holders[n + 1] ?? root];
  return {
    attenuator: id(from),
    delegatee: id(to),
    delegationId: delegation(n + 2),
    contractId: CONTRACT,
    ...more,
  };
}

/**
 * Returns the honest token with changes to its authority and with more attenuations. Each block is signed by the right
 * key.
 */
export const signed = (more: object = {}, attenuations: object[] = []) => {
  return encode(sign({ ...authority, ...more }, attenuations));
};

/** Returns a token in which one entry of `signatures` was changed after signing. */
export function patched(patch: object, from: { signatures: object[] } = honest, i = 0): string {
  return encode({
    ...from,
    signatures: from.signatures.map((entry, n) => (n === i ? { ...entry, ...patch } : entry)),
  });
}

/** Returns the honest token with its JSON text changed. */
export function raw(change: (json: string) => string): string {
  const json = Buffer.from(text, "base64url").toString();
  const changed = change(json);
  expect(changed).not.toBe(json);
  return encodeText(changed);
}

export const replaced = (from: string, to: string) => raw((json) => json.replace(from, to));

export function plusL(signature: string): string {
  const bytes = Buffer.from(signature, "base64url");
  const L = 2n ** 252n + 27742317777372353535851937790883648493n;
  const s = BigInt(`0x${Buffer.from(bytes.subarray(32)).reverse().toString("hex")}`) + L;
  return Buffer.concat([
    bytes.subarray(0, 32),
    Buffer.from(s.toString(16).padStart(64, "0"), "hex").reverse(),
  ]).toString("base64url");
}

export function nextChar(text: string): string {
  return String.fromCharCode(text.charCodeAt(text.length - 1) + 1);
}

export function spentAtRoot(spent: number): (revocationId: string) => number {
  const rootBlock = revocationId(engine, authority);
  return (block) => (block === rootBlock ? spent : 0);
}

export type Case = [name: string, input: unknown, denial: object, ctx?: Partial<VerificationContext>];

export const malformed = { type: "malformed_token" };
export const tooLarge = { type: "token_too_large" };
export const badSignature = { type: "invalid_signature" };
export const violation = { type: "attenuation_violation" };

/**
 * Tests that both engines give each case the expected denial. The denial must contain no text that was sent or granted.
 */
export function expectDenials(cases: Case[]): void {
  const table = [nativeEngine, portableEngine].flatMap((one) => cases.map((row) => [one, ...row] as const));
  test.each(table.map(([one, name, ...row]) => [`${name} (${one.name})`, one, ...row] as const))(
    "%s",
    (_, one, input, denial, ctx) => {
      const result = verifyToken(one, input as string, context(ctx));
      expect(result).toMatchObject({ ok: false, denial });
      const plainly = verifyToken(one, input as string, context(ctx), { path: "reference" });
      expect(plainly).toEqual(result);
      const { requested, ...rest } = (result as { denial: { requested?: object } }).denial;
      expect(JSON.stringify(rest)).not.toContain("project");
      expect(rest).not.toHaveProperty("granted");
    },
  );
}
