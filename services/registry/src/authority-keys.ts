import { DeputeError, ErrorReason } from "@depute/core";
import { type AllowedHosts, type Outbound, readText } from "@depute/service";

/** Finds the keys that an authority publishes. Each published key may hold the authority. */
export interface AuthorityKeys {
  /** Whether the settings allow requests to the authority's domain. */
  isConfigured(authority: string): boolean;
  /**
   * Returns the Ed25519 keys that an authority publishes, in base64url; empty if it publishes none.
   *
   * @throws DeputeError DEPENDENCY_UNAVAILABLE
   */
  listKeys(authority: string, signal: AbortSignal): Promise<readonly string[]>;
}

/** The placeholder in the configured URL. The name of the authority replaces it. */
export const PLACEHOLDER = "{authority}";
/** Limits of a domain's HTTP response: milliseconds without data (IDLE_MS), and size in bytes (MAX_BYTES). */
const IDLE_MS = 5_000;
const MAX_BYTES = 65_536;
/** Maximum number of keys that the registry reads from one document. */
const MAX_KEYS = 1_000;

export interface PublishedKeysOptions {
  readonly hosts: AllowedHosts;
  readonly outbound: Pick<Outbound, "send">;
  /** The URL of a JSON Web Key Set, with {authority} as placeholder. */
  readonly address: string;
}

/** Fetches a JSON Web Key Set (RFC 7517 5) over HTTP, only from configured hosts. */
export class PublishedKeys implements AuthorityKeys {
  readonly #hosts: AllowedHosts;
  readonly #outbound: Pick<Outbound, "send">;
  readonly #address: string;

  constructor({ hosts, outbound, address }: PublishedKeysOptions) {
    this.#hosts = hosts;
    this.#outbound = outbound;
    this.#address = address;
  }

  isConfigured(authority: string): boolean {
    if (this.#hosts.isEmpty) return false;
    try {
      this.#hosts.check(this.#addressOf(authority));
      return true;
    } catch {
      return false;
    }
  }

  async listKeys(authority: string, signal: AbortSignal): Promise<readonly string[]> {
    try {
      const options = {
        signal,
        idleMs: IDLE_MS,
        maxBytes: MAX_BYTES,
        headers: { accept: "application/json" },
      };
      const answer = await this.#outbound.send(this.#addressOf(authority), options);
      const text = await readText(answer.body);
      // These statuses mean that the domain publishes no keys.
      if (answer.status === 404 || answer.status === 410) return [];
      if (answer.status !== 200) throw new Error(`the domain answered with the status ${answer.status}`);
      return readEd25519Keys(JSON.parse(text));
    } catch (cause) {
      throw new DeputeError(
        ErrorReason.DEPENDENCY_UNAVAILABLE,
        `${authority} does not publish its keys now; try again later`,
        { metadata: { service: "authority" }, cause },
      );
    }
  }

  #addressOf(authority: string): string {
    return this.#address.replaceAll(PLACEHOLDER, authority);
  }
}

/**
 * Returns the Ed25519 keys of a JSON Web Key Set. Ignores other keys.
 *
 * @throws Error for a malformed set
 */
function readEd25519Keys(document: unknown): string[] {
  const keys = isObject(document) ? document.keys : undefined;
  if (!Array.isArray(keys)) throw new Error("the domain's answer is not a JSON Web Key Set");
  return keys.slice(0, MAX_KEYS).flatMap((key: unknown) => {
    if (!isObject(key) || key.kty !== "OKP" || key.crv !== "Ed25519") return [];
    return typeof key.x === "string" ? [key.x] : [];
  });
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
