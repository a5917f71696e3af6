import { DeputeError, ErrorReason } from "@depute/core";
import { type AllowedHosts, type Outbound, readText } from "@depute/service";

/** What proves that a principal belongs to an authority: the keys that the authority publishes. */
export interface AuthorityKeys {
  /** Whether an authority is asked at all. */
  covers(authority: string): boolean;
  /**
   * The Ed25519 keys that an authority publishes, base64url.
   *
   * @throws DeputeError DEPENDENCY_UNAVAILABLE
   */
  of(authority: string, signal: AbortSignal): Promise<readonly string[]>;
}

/** Where the address of an authority's keys names the authority. */
export const PLACEHOLDER = "{authority}";
/** How long the domain may be silent, milliseconds, and how much it may answer, bytes. */
const IDLE_MS = 5_000;
const MAX_BYTES = 65_536;
/** Keys that are read of one document. */
const MAX_KEYS = 1_000;

export interface PublishedKeysOptions {
  readonly hosts: AllowedHosts;
  readonly outbound: Pick<Outbound, "send">;
  /** The address of a JSON Web Key Set, with {authority} in it. */
  readonly address: string;
}

/** Asks domains over HTTP for a JSON Web Key Set (RFC 7517 5), of those hosts alone that configuration lists. */
export class PublishedKeys implements AuthorityKeys {
  readonly #hosts: AllowedHosts;
  readonly #outbound: Pick<Outbound, "send">;
  readonly #address: string;

  constructor({ hosts, outbound, address }: PublishedKeysOptions) {
    this.#hosts = hosts;
    this.#outbound = outbound;
    this.#address = address;
  }

  covers(authority: string): boolean {
    if (this.#hosts.isEmpty) return false;
    try {
      this.#hosts.check(this.#addressOf(authority));
      return true;
    } catch {
      return false;
    }
  }

  async of(authority: string, signal: AbortSignal): Promise<readonly string[]> {
    try {
      const options = {
        signal,
        idleMs: IDLE_MS,
        maxBytes: MAX_BYTES,
        headers: { accept: "application/json" },
      };
      const answer = await this.#outbound.send(this.#addressOf(authority), options);
      const text = await readText(answer.body);
      // A domain that publishes nothing proves nothing.
      if (answer.status === 404 || answer.status === 410) return [];
      if (answer.status !== 200) throw new Error(`the domain answered ${answer.status}`);
      return keysIn(JSON.parse(text));
    } catch (cause) {
      throw new DeputeError(
        ErrorReason.DEPENDENCY_UNAVAILABLE,
        `${authority} does not tell its keys now: try again later`,
        { metadata: { service: "authority" }, cause },
      );
    }
  }

  #addressOf(authority: string): string {
    return this.#address.replaceAll(PLACEHOLDER, authority);
  }
}

/** The Ed25519 keys of a JSON Web Key Set; others say nothing here. @throws Error for what is no set */
function keysIn(document: unknown): string[] {
  const keys = isObject(document) ? document.keys : undefined;
  if (!Array.isArray(keys)) throw new Error("the domain's answer is no JSON Web Key Set");
  return keys.slice(0, MAX_KEYS).flatMap((key: unknown) => {
    if (!isObject(key) || key.kty !== "OKP" || key.crv !== "Ed25519") return [];
    return typeof key.x === "string" ? [key.x] : [];
  });
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
