import { type Clock, DeputeError, ErrorReason, requestIdReused } from "@depute/core";
import { type CryptoEngine, formatTime, generateKeypair, type Keypair, keypairFromSeed } from "@depute/dct";
import { signRootSuccession } from "@depute/dct/transparency";
import { type SealedSecrets, SettingsError } from "@depute/service";
import type { ReadTx, Store, WriteTx } from "@depute/store";
import type { AuditLog } from "./audit-log.ts";
import { nextRetirement, retirementEnd, rootKeyState, rotationEnds } from "./rules/root-key.ts";
import {
  endRootKey,
  eraseRetired,
  insertRootKey,
  lastRootChange,
  type RootKeyRow,
  readRootKeys,
} from "./store/root-key-rows.ts";

/** The roots whose tokens the service accepts. */
export interface AcceptedRoots {
  /** Returns the roots whose tokens are accepted now. */
  trusted(): ReadonlySet<string>;
  /** Returns the roots of `trusted`, and the platform's retired roots. */
  everTrusted(): ReadonlySet<string>;
  /** Returns the time at which a root of the platform retired; undefined for every other principal. */
  retired(principal: string): number | undefined;
}

interface RootKeysOptions {
  readonly engine: CryptoEngine;
  readonly store: Store;
  readonly clock: Clock;
  readonly secrets: SealedSecrets;
  /** The key of the key file or of the platform's key `root`: the first root key. */
  readonly file: Keypair;
  /** Principals in the settings, besides the platform's own root keys, whose root tokens are accepted. */
  readonly configured: readonly string[];
  /** Called after a commit that changes a root key. */
  readonly onChange?: () => void;
}

/** A rotation that an operator asks for. */
export interface Rotation {
  readonly caller: string;
  readonly requestId: string;
  readonly digest: string;
  /** Milliseconds for which the earlier keys stay accepted; 0 for none. */
  readonly overlapMs: number;
}

interface Known {
  readonly change: number;
  readonly keys: readonly RootKeyRow[];
}

/**
 * The platform's root keys: the key that signs, the earlier keys in their overlap, and the retired keys. The key file
 * has the first key. Later keys are rows of the store, sealed by the master key. Replicas read them together with the
 * revocations; see RevocationReader.
 */
export class RootKeys implements AcceptedRoots {
  readonly #options: RootKeysOptions;
  readonly #keypairs = new Map<string, Keypair>();
  #known: Known = { change: 0, keys: [] };
  #byPrincipal: ReadonlyMap<string, RootKeyRow> = new Map();
  #accepted: { roots: ReadonlySet<string>; until: number } | undefined;

  constructor(options: RootKeysOptions) {
    this.#options = options;
  }

  /**
   * Records the key of the key file, and reads all keys. If the file has a new key, an operator has replaced a lost
   * key: all earlier keys then retire.
   *
   * @throws SettingsError for a master key that does not open the signing key
   */
  async start(): Promise<void> {
    const { store, clock, file } = this.#options;
    const known = await store.write(async (tx) => {
      const keys = await readRootKeys(tx);
      const principal = file.principal.id;
      if (!keys.some((key) => key.principal === principal)) {
        const now = clock.now();
        for (const { principal, retireTime } of keys) {
          if (retireTime === 0 || retireTime > now)
            await endRootKey(tx, { principal, retireTime: now, isRetired: true });
        }
        const none = { sealed: "", succession: "", caller: "", requestId: "", digest: "" };
        const number = keys.length + 1;
        await insertRootKey(tx, {
          ...{ ...none, number, principal, createTime: now, retireTime: 0, isRetired: false },
        });
        await eraseRetired(tx, now);
      }
      return readKnown(tx);
    });
    this.apply(known);
    if (this.#open(signingKey(this.keys)) === undefined) {
      throw new SettingsError("the master key is not the one that the root keys were sealed with");
    }
  }

  /** Erases the private keys from memory. */
  close(): void {
    for (const { privateKey } of this.#keypairs.values()) privateKey.fill(0);
    this.#keypairs.clear();
  }

  /** Returns the number of the last change that this process has read. */
  get change(): number {
    return this.#known.change;
  }

  /** Returns all keys, oldest first. */
  get keys(): readonly RootKeyRow[] {
    return this.#known.keys;
  }

  /**
   * Reads the keys if they have changed; otherwise returns undefined. Pass the result to `apply` after the transaction.
   */
  async readChanged(tx: ReadTx): Promise<Known | undefined> {
    return (await lastRootChange(tx)) === this.change ? undefined : readKnown(tx);
  }

  /**
   * Replaces the keys in memory by keys that a transaction has read. Returns false, and changes nothing, if `known` is
   * undefined or not newer than the keys in memory.
   */
  apply(known: Known | undefined): boolean {
    if (known === undefined || known.change <= this.change) return false;
    this.#known = known;
    this.#byPrincipal = new Map(known.keys.map((key) => [key.principal, key]));
    this.#accepted = undefined;
    return true;
  }

  /** Returns the keypair of the root key that signs new tokens. */
  current(): Keypair {
    return this.#require(signingKey(this.keys));
  }

  /**
   * Returns the keypair of the root key that signs new tokens, as a transaction sees it. Another replica may have
   * rotated the key.
   */
  async currentIn(tx: ReadTx): Promise<Keypair> {
    return this.#require(signingKey(await this.#keysIn(tx)));
  }

  async #keysIn(tx: ReadTx): Promise<readonly RootKeyRow[]> {
    return (await this.readChanged(tx))?.keys ?? this.keys;
  }

  /** Returns the keypairs of all keys that are not retired, newest first. The newest key signs new tokens. */
  signers(): Keypair[] {
    const now = this.#options.clock.now();
    const keys = this.keys.filter((key) => rootKeyState(key, now) !== "retired");
    return keys.toReversed().flatMap((key) => this.#open(key) ?? []);
  }

  /**
   * Returns the keypair of one of the platform's roots, as a transaction sees them, to repeat a signature.
   *
   * @returns undefined if the principal is not a root of the platform
   * @throws DeputeError KEY_NOT_USABLE for a retired key; INTERNAL if the key cannot be opened
   */
  async signerIn(tx: ReadTx, principal: string): Promise<Keypair | undefined> {
    const keys = await this.#keysIn(tx);
    const key = keys.find((one) => one.principal === principal);
    if (key === undefined) return undefined;
    const retireTime = this.#retiredAmong(keys, principal);
    if (retireTime === undefined) return this.#require(key);
    throw new DeputeError(
      ErrorReason.KEY_NOT_USABLE,
      `the root key that signed it retired at ${formatTime(retireTime)}, so its tokens are denied already`,
      { metadata: { key: principal, state: "retired" } },
    );
  }

  /** Whether a principal is or was the platform's root. */
  isOwn(principal: string): boolean {
    return this.#byPrincipal.has(principal);
  }

  trusted(): ReadonlySet<string> {
    const now = this.#options.clock.now();
    if (this.#accepted !== undefined && now < this.#accepted.until) return this.#accepted.roots;
    const states = new Map(this.keys.map((key) => [key.principal, rootKeyState(key, now)]));
    const own = this.keys.map(({ principal }) => principal).toReversed();
    // A retired root stays denied, even if a setting names it.
    const roots = new Set([...own, ...this.#options.configured]);
    for (const root of roots) {
      if (states.get(root) !== "retired") continue;
      roots.delete(root);
      this.#keypairs.get(root)?.privateKey.fill(0);
      this.#keypairs.delete(root);
    }
    this.#accepted = { roots, until: nextRetirement(this.keys, now) };
    return roots;
  }

  everTrusted(): ReadonlySet<string> {
    return new Set([...this.trusted(), ...this.keys.map(({ principal }) => principal)]);
  }

  retired(principal: string): number | undefined {
    const key = this.#byPrincipal.get(principal);
    return this.#retiredAmong(key === undefined ? [] : [key], principal);
  }

  /**
   * Returns the time at which a root of the platform retired, as a transaction sees it; undefined for every other
   * principal.
   */
  async retiredIn(tx: ReadTx, principal: string): Promise<number | undefined> {
    return this.#retiredAmong(await this.#keysIn(tx), principal);
  }

  #retiredAmong(keys: readonly RootKeyRow[], principal: string): number | undefined {
    const key = keys.find((one) => one.principal === principal);
    if (key === undefined || rootKeyState(key, this.#options.clock.now()) !== "retired") return undefined;
    return key.retireTime;
  }

  /**
   * Creates a key that signs from now on, and sets the ends of the earlier keys. A replay returns the key of the first
   * call.
   *
   * @throws DeputeError REQUEST_ID_REUSED, LIMIT_EXCEEDED; INTERNAL if the key that signs now cannot be opened
   */
  async rotate(
    { caller, requestId, digest, overlapMs }: Rotation,
    audit: AuditLog,
  ): Promise<{ key: RootKeyRow; replaced: RootKeyRow }> {
    return this.#options.store.write(async (tx) => {
      const { engine, clock, secrets } = this.#options;
      const keys = await readRootKeys(tx);
      const made = keys.find((key) => key.caller === caller && key.requestId === requestId);
      if (made !== undefined && made.digest !== digest) throw requestIdReused(requestId);
      // A replay also applies the keys: another replica may have made the rotation, and the checkpoint file must cover
      // that change.
      if (made !== undefined) return rotated(await this.#applyAfterCommit(tx), made.number);
      const now = clock.now();
      const ends = rotationEnds(keys, now, overlapMs);
      const before = this.#require(signingKey(keys));
      const next = generateKeypair(engine);
      const principal = next.principal.id;
      const succession = signRootSuccession(engine, before, next, formatTime(now));
      const number = keys.length + 1;
      for (const end of ends) await endRootKey(tx, end);
      await insertRootKey(tx, {
        ...{ number, principal, createTime: now, retireTime: 0, isRetired: false },
        ...{ caller, requestId, digest },
        sealed: secrets.seal(next.privateKey, contextOfRootKey(principal)),
        succession: JSON.stringify(succession),
      });
      next.privateKey.fill(0);
      await eraseRetired(tx, now);
      await audit.write(tx, {
        ...{ kind: "rotate_root", caller, principal: before.principal.id, decision: "allowed" },
        ...{ reason: principal, blocks: [] },
      });
      return rotated(await this.#applyAfterCommit(tx), number);
    });
  }

  /**
   * Ends the overlap of an earlier key now.
   *
   * @throws DeputeError KEY_NOT_FOUND, KEY_NOT_USABLE
   */
  async retire(principal: string, caller: string, audit: AuditLog): Promise<RootKeyRow> {
    const { store, clock } = this.#options;
    return store.write(async (tx) => {
      const now = clock.now();
      const keys = await readRootKeys(tx);
      const end = retirementEnd(keys, principal, now);
      if (end === undefined) return keyOf(await this.#applyAfterCommit(tx), principal);
      await endRootKey(tx, end);
      await eraseRetired(tx, now);
      await audit.write(tx, {
        ...{ kind: "retire_root", caller, principal, decision: "allowed", reason: "", blocks: [] },
      });
      return keyOf(await this.#applyAfterCommit(tx), principal);
    });
  }

  /** Returns the keys as the transaction leaves them. Applies these keys after the commit. */
  async #applyAfterCommit(tx: WriteTx): Promise<readonly RootKeyRow[]> {
    const known = await readKnown(tx);
    tx.afterCommit(() => {
      this.apply(known);
      this.#options.onChange?.();
    });
    return known.keys;
  }

  #require(key: RootKeyRow): Keypair {
    const keypair = this.#open(key);
    if (keypair === undefined) throw new DeputeError(ErrorReason.INTERNAL, "the root key does not open");
    return keypair;
  }

  #open({ principal, sealed }: RootKeyRow): Keypair | undefined {
    const { engine, secrets, file } = this.#options;
    if (principal === file.principal.id) return file;
    const known = this.#keypairs.get(principal);
    if (known !== undefined || sealed === "") return known;
    const seed = secrets.open(sealed, contextOfRootKey(principal));
    if (seed === undefined) return undefined;
    const keypair = keypairFromSeed(engine, seed);
    seed.fill(0);
    this.#keypairs.set(principal, keypair);
    return keypair;
  }
}

async function readKnown(tx: ReadTx): Promise<Known> {
  return { change: await lastRootChange(tx), keys: await readRootKeys(tx) };
}

function signingKey(keys: readonly RootKeyRow[]): RootKeyRow {
  const key = keys.findLast(({ retireTime }) => retireTime === 0);
  if (key === undefined) throw new Error("no root key signs");
  return key;
}

function keyOf(keys: readonly RootKeyRow[], principal: string): RootKeyRow {
  const key = keys.find((one) => one.principal === principal);
  if (key === undefined) throw new Error("the root key is missing");
  return key;
}

/** Returns the key that a rotation made, and the key before it. */
function rotated(
  keys: readonly RootKeyRow[],
  number: number,
): { readonly key: RootKeyRow; readonly replaced: RootKeyRow } {
  const [replaced, key] = keys.slice(number - 2, number);
  if (replaced === undefined || key === undefined) throw new Error("the rotated root keys are missing");
  return { replaced, key };
}

/** Returns the context to which a sealed root key is bound. Another context cannot open the key. */
export function contextOfRootKey(principal: string) {
  return { purpose: "root-key", principal };
}
