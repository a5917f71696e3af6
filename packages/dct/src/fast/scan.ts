import { decodeBase64Url } from "@depute/core";
import { isId } from "../ids.ts";
import { MAX_ATTENUATIONS, MAX_CAPABILITIES, MAX_RESOURCE_CHARS } from "../limits.ts";
import { isName } from "../namespaces.ts";
import type { ShapeRules } from "../shape.ts";
import { parseTime } from "../time.ts";
import {
  type Attenuation,
  type Authority,
  type Capability,
  ROOT_DELEGATION_ID,
  type SignedJSONToken,
  SJT_FORMAT,
  type TokenSignature,
} from "../types.ts";
import { rememberedKey, rememberedPattern } from "./words.ts";

/** A token as scanned, with its blocks as they stand in the text: what is hashed and signed. */
export interface ScannedToken {
  readonly token: SignedJSONToken;
  readonly authority: string;
  readonly attenuations: readonly string[];
}

const PRINCIPAL_CHARS = 43;
const SIGNATURE_CHARS = 86;
/** Digits of 2^53 - 1. */
const MAX_DIGITS = 16;

/** The text is not of the one form that is looked for. Carries nothing: whoever catches it reads in the slow way. */
const NO_MATCH = new Error("not of the fixed form");

/**
 * Reads the canonical JSON text of a well-formed token in one pass, or returns undefined.
 *
 * The members of a block are known, so that their canonical order is too (RFC 8785): what stands between two values
 * is compared with what a writer would put there, character by character, and a value is taken in its one canonical
 * spelling only. So whatever is returned is what the general reader returns for the same text, and the text is its
 * canonical form. Whatever else there may be - another order, an escape, a character beyond ASCII, a value out of its
 * limits - is left to the general reader, which knows what to say of it.
 */
export function scanToken(json: string, rules: ShapeRules): ScannedToken | undefined {
  try {
    return new Scanner(json, rules).token();
  } catch {
    return undefined;
  }
}

class Scanner {
  readonly #json: string;
  readonly #rules: ShapeRules;
  #at = 0;

  constructor(json: string, rules: ShapeRules) {
    this.#json = json;
    this.#rules = rules;
  }

  token(): ScannedToken {
    const texts: string[] = [];
    const attenuations: Attenuation[] = [];
    this.#expect('{"attenuations":[');
    if (!this.#has("]")) {
      do {
        if (attenuations.length >= MAX_ATTENUATIONS) throw NO_MATCH;
        const start = this.#at;
        attenuations.push(this.#attenuation());
        texts.push(this.#json.slice(start, this.#at));
      } while (this.#has(","));
      this.#expect("]");
    }
    this.#expect(',"authority":');
    const start = this.#at;
    const authority = this.#authority();
    const text = this.#json.slice(start, this.#at);
    this.#expect(`,"format":"${SJT_FORMAT}","signatures":[`);
    const signatures = this.#signatures();
    this.#expect("}");
    if (this.#at !== this.#json.length) throw NO_MATCH;
    return {
      token: { attenuations, authority, format: SJT_FORMAT, signatures },
      authority: text,
      attenuations: texts,
    };
  }

  #authority(): Authority {
    this.#expect('{"capabilities":[');
    const capabilities = this.#capabilities();
    this.#expect(',"chainDepth":');
    const chainDepth = this.#count();
    this.#expect(',"contractId":"');
    const contractId = this.#id("ct");
    this.#expect(',"delegatee":"');
    const delegatee = this.#principal();
    this.#expect(',"delegationId":"');
    const delegationId = this.#delegationId();
    this.#expect(',"expiresAt":"');
    const expiresAt = this.#time();
    this.#expect(',"issuedAt":"');
    const issuedAt = this.#time();
    this.#expect(',"issuer":"');
    const issuer = this.#principal();
    this.#expect(',"maxBudgetMicrocents":');
    const maxBudgetMicrocents = this.#count();
    this.#expect(',"maxChainDepth":');
    const maxChainDepth = this.#count();
    this.#expect(',"parentDelegationId":"');
    const parentDelegationId = this.#id("del");
    this.#expect("}");
    return {
      capabilities,
      chainDepth,
      contractId,
      delegatee,
      delegationId,
      expiresAt,
      issuedAt,
      issuer,
      maxBudgetMicrocents,
      maxChainDepth,
      parentDelegationId,
    };
  }

  #attenuation(): Attenuation {
    this.#expect("{");
    const allowed = this.#has('"allowedCapabilities":[') ? this.#capabilities() : undefined;
    this.#expect(allowed === undefined ? '"attenuator":"' : ',"attenuator":"');
    const attenuator = this.#principal();
    this.#expect(',"contractId":"');
    const contractId = this.#id("ct");
    this.#expect(',"delegatee":"');
    const delegatee = this.#principal();
    this.#expect(',"delegationId":"');
    const delegationId = this.#delegationId();
    const block: Attenuation =
      allowed === undefined
        ? { attenuator, contractId, delegatee, delegationId }
        : { allowedCapabilities: allowed, attenuator, contractId, delegatee, delegationId };
    if (this.#has(',"expiresAt":"')) block.expiresAt = this.#time();
    if (this.#has(',"maxBudgetMicrocents":')) block.maxBudgetMicrocents = this.#count();
    if (this.#has(',"maxChainDepth":')) block.maxChainDepth = this.#count();
    this.#expect("}");
    return block;
  }

  #capabilities(): Capability[] {
    const found: Capability[] = [];
    if (this.#has("]")) return found;
    do {
      if (found.length >= MAX_CAPABILITIES) throw NO_MATCH;
      this.#expect('{"action":"');
      const action = this.#name();
      this.#expect(',"namespace":"');
      const namespace = this.#name();
      this.#expect(',"resource":"');
      const resource = this.#text();
      this.#expect("}");
      // What is well formed has neither a quote that is left out nor an escape, see #text.
      if (resource.length > MAX_RESOURCE_CHARS || rememberedPattern(resource, namespace) === undefined) {
        throw NO_MATCH;
      }
      found.push({ action, namespace, resource });
    } while (this.#has(","));
    this.#expect("]");
    return found;
  }

  #signatures(): TokenSignature[] {
    const found: TokenSignature[] = [];
    if (this.#has("]")) return found;
    do {
      if (found.length > MAX_ATTENUATIONS) throw NO_MATCH;
      this.#expect('{"covers":');
      const covers = this.#has('"authority"') ? "authority" : this.#count();
      this.#expect(',"signature":"');
      const signature = this.#fixed(SIGNATURE_CHARS);
      if (decodeBase64Url(signature) === undefined) throw NO_MATCH;
      this.#expect(',"signer":"');
      const signer = this.#principal();
      this.#expect("}");
      found.push({ covers, signature, signer });
    } while (this.#has(","));
    this.#expect("]");
    return found;
  }

  #principal(): string {
    const id = this.#fixed(PRINCIPAL_CHARS);
    if (rememberedKey(id) === undefined) throw NO_MATCH;
    return id;
  }

  #id(kind: "ct" | "del"): string {
    const id = this.#text();
    if (!isId(kind, id, this.#rules.ids)) throw NO_MATCH;
    return id;
  }

  #delegationId(): string {
    const id = this.#id("del");
    if (id === ROOT_DELEGATION_ID) throw NO_MATCH;
    return id;
  }

  #name(): string {
    const name = this.#text();
    if (!isName(name)) throw NO_MATCH;
    return name;
  }

  #time(): string {
    const time = this.#text();
    if (parseTime(time) === undefined) throw NO_MATCH;
    return time;
  }

  /** An integer from 0 to 2^53 - 1 as ECMAScript writes it: no sign, no leading zero, no fraction. */
  #count(): number {
    const start = this.#at;
    let value = 0;
    for (;;) {
      const digit = this.#json.charCodeAt(this.#at) - 48;
      if (!(digit >= 0 && digit <= 9)) break;
      value = value * 10 + digit;
      this.#at++;
    }
    const digits = this.#at - start;
    const leadsWithZero = digits > 1 && this.#json.charCodeAt(start) === 48;
    if (digits === 0 || digits > MAX_DIGITS || leadsWithZero || !Number.isSafeInteger(value)) throw NO_MATCH;
    return value;
  }

  /**
   * The characters up to the next quote, and the quote. An escape is not read: each value is checked against a grammar
   * that has no backslash, no control character and nothing beyond ASCII.
   */
  #text(): string {
    const end = this.#json.indexOf('"', this.#at);
    if (end < 0) throw NO_MATCH;
    const text = this.#json.slice(this.#at, end);
    this.#at = end + 1;
    return text;
  }

  /** As #text, where the length is known; the caller's grammar has no quote. */
  #fixed(chars: number): string {
    const text = this.#json.slice(this.#at, this.#at + chars);
    this.#at += chars;
    this.#expect('"');
    return text;
  }

  #has(text: string): boolean {
    if (!this.#json.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }

  #expect(text: string): void {
    if (!this.#has(text)) throw NO_MATCH;
  }
}
