import {
  type Clock,
  DeputeError,
  ErrorReason,
  encodeBase64Url,
  invalid,
  newId,
  requestIdReused,
  type Timers,
} from "@depute/core";
import { type CryptoEngine, generateKeypair, type Keypair, keypairFromSeed } from "@depute/dct";
import { DeadlineLoop, type Logger, SettingsError } from "@depute/service";
import type { Store, WriteTx } from "@depute/store";
import type { AuditLog } from "./audit-log.ts";
import { assertUsable, type KeyUse, MAX_KEYS_OF_ONE } from "./rules/kept-key.ts";
import type { SealedSecrets } from "./sealed-secrets.ts";
import { addKeyChange } from "./store/agent-key-rows.ts";
import {
  countKeys,
  endKey,
  findKey,
  findKeyByRequest,
  insertKey,
  keysOlderThan,
  type StoredKey,
} from "./store/kept-keys.ts";

const ROTATE_EVERY_MS = 60_000;
const ROTATED_AT_ONCE = 100;
/** How the request ids begin that the service gives itself, and nobody else may. */
const OWN = "\u0001";

interface KeyStoreOptions {
  engine: CryptoEngine;
  store: Store;
  clock: Clock;
  timers: Timers;
  log: Logger;
  audit: AuditLog;
  secrets: SealedSecrets;
  /** Milliseconds after which an active key is replaced by itself; 0 for never. */
  maxAgeMs: number;
  /** Told after an agent's key was replaced; the change is in the store. */
  onAgentKey?: () => void;
}

/** Keys that the service keeps for their owners. A secret is open only while it signs. */
export class KeyStore {
  readonly #options: KeyStoreOptions;
  readonly #rotation: DeadlineLoop;

  constructor(options: KeyStoreOptions) {
    this.#options = options;
    const { clock, timers, log } = options;
    this.#rotation = new DeadlineLoop({
      clock,
      timers,
      log,
      what: "old keys cannot be replaced",
      maxWaitMs: ROTATE_EVERY_MS,
      look: () => this.#rotateOld(),
    });
  }

  /**
   * Makes sure that the master key opens what is kept, and begins to replace keys that are too old.
   *
   * @throws SettingsError for another master key than the one that the keys were sealed with
   */
  async start(): Promise<void> {
    const [any] = await this.#options.store.read((tx) => keysOlderThan(tx, Number.MAX_SAFE_INTEGER, 1));
    if (any !== undefined && this.#open(any) === undefined) {
      throw new SettingsError("the master key is not the one that the kept keys were sealed with");
    }
    if (this.#options.maxAgeMs > 0) this.#rotation.start(ROTATE_EVERY_MS);
  }

  async close(): Promise<void> {
    await this.#rotation.close();
    this.#options.secrets.close();
  }

  /** @throws DeputeError REQUEST_ID_REUSED, LIMIT_EXCEEDED */
  async create(
    owner: string,
    about: { requestId: string; digest: string; agentId: string },
  ): Promise<StoredKey> {
    const { requestId, digest } = about;
    if (requestId.startsWith(OWN)) throw invalid("request_id", "begins with a control character");
    return this.#options.store.write(async (tx) => {
      const before = await findKeyByRequest(tx, owner, requestId);
      if (before !== undefined && before.digest !== digest) {
        throw requestIdReused(requestId);
      }
      if (before !== undefined) return before;
      if ((await countKeys(tx, owner)) >= MAX_KEYS_OF_ONE) {
        throw new DeputeError(ErrorReason.LIMIT_EXCEEDED, "the caller has too many keys", {
          metadata: { limit: "keys", max: String(MAX_KEYS_OF_ONE) },
        });
      }
      return this.#make(tx, { owner, ...about });
    });
  }

  /** @throws DeputeError KEY_NOT_FOUND, also for another owner's key */
  async find(id: string, owner: string): Promise<StoredKey> {
    return own(await this.#options.store.read((tx) => findKey(tx, id)), id, owner);
  }

  /**
   * Signs with a key, for its owner.
   *
   * @param sign is given the keypair for as long as it takes, and must not keep it
   * @throws DeputeError KEY_NOT_FOUND, KEY_NOT_USABLE
   */
  async use<T>(
    id: string,
    owner: string,
    use: KeyUse,
    sign: (keypair: Keypair) => Promise<T> | T,
  ): Promise<T> {
    const key = await this.find(id, owner);
    assertUsable(key, use, this.#options.clock.now());
    const keypair = this.#keypairOf(key);
    try {
      return await sign(keypair);
    } finally {
      keypair.privateKey.fill(0);
    }
  }

  /**
   * A key's word that it goes, or comes, as a JWS. What was begun by a rotation is ended whatever has become of the key
   * since: an agent is led away from one that was revoked, too.
   */
  signReplacement(key: StoredKey, input: string): string {
    const keypair = this.#keypairOf(key);
    try {
      const signature = this.#options.engine.sign(new TextEncoder().encode(input), keypair.privateKey);
      return `${input}.${encodeBase64Url(signature)}`;
    } finally {
      keypair.privateKey.fill(0);
    }
  }

  /** @throws DeputeError KEY_NOT_FOUND, KEY_NOT_USABLE */
  async rotate(id: string, owner: string): Promise<{ replaced: StoredKey; key: StoredKey }> {
    return this.#options.store.write(async (tx) => {
      const key = own(await findKey(tx, id), id, owner);
      assertUsable(key, "rotate", this.#options.clock.now());
      return this.#replace(tx, key, owner);
    });
  }

  /** Ends a key's use for good. */
  async revoke(id: string, owner: string): Promise<StoredKey> {
    return this.#options.store.write(async (tx) => {
      const key = own(await findKey(tx, id), id, owner);
      if (key.state === "revoked") return key;
      const end = {
        state: "revoked",
        successorId: key.successorId,
        endTime: this.#options.clock.now(),
      } as const;
      await endKey(tx, id, end);
      return { ...key, ...end };
    });
  }

  async #make(
    tx: WriteTx,
    about: { owner: string; requestId: string; digest: string; agentId: string },
  ): Promise<StoredKey> {
    const { engine, clock, secrets, audit } = this.#options;
    const keypair = generateKeypair(engine);
    const id = newId();
    const principal = keypair.principal.id;
    const sealed = secrets.seal(keypair.privateKey, { id, owner: about.owner, principal });
    keypair.privateKey.fill(0);
    await audit.write(tx, {
      ...{ kind: "create_key", caller: about.owner, principal, decision: "allowed", reason: "", blocks: [] },
    });
    return insertKey(tx, {
      ...{ ...about, id, principal, sealed, state: "active", successorId: "" },
      ...{ createTime: clock.now(), endTime: 0 },
    });
  }

  async #replace(
    tx: WriteTx,
    key: StoredKey,
    caller: string,
  ): Promise<{ replaced: StoredKey; key: StoredKey }> {
    const { clock, audit, onAgentKey } = this.#options;
    if (key.successorId !== "") {
      const successor = await findKey(tx, key.successorId);
      if (successor !== undefined) return { replaced: key, key: successor };
    }
    const { owner, agentId, principal } = key;
    // No caller's request id begins so: see create.
    const successor = await this.#make(tx, { owner, agentId, requestId: `${OWN}${key.id}`, digest: "" });
    const end = { state: "replaced", successorId: successor.id, endTime: clock.now() } as const;
    await endKey(tx, key.id, end);
    const decision = { kind: "rotate_key", caller, principal, decision: "allowed" } as const;
    await audit.write(tx, { ...decision, reason: successor.principal, blocks: [] });
    if (agentId !== "") {
      await addKeyChange(tx, { keyId: key.id, successorId: successor.id });
      tx.afterCommit(() => onAgentKey?.());
    }
    return { replaced: { ...key, ...end }, key: successor };
  }

  #keypairOf(key: StoredKey): Keypair {
    const seed = this.#open(key);
    if (seed === undefined) throw new DeputeError(ErrorReason.INTERNAL, "the kept key does not open");
    const keypair = keypairFromSeed(this.#options.engine, seed);
    seed.fill(0);
    return keypair;
  }

  #open({ sealed, id, owner, principal }: StoredKey): Uint8Array | undefined {
    return this.#options.secrets.open(sealed, { id, owner, principal });
  }

  async #rotateOld(): Promise<void> {
    const { store, clock, maxAgeMs } = this.#options;
    await store.write(async (tx) => {
      const old = await keysOlderThan(tx, clock.now() - maxAgeMs, ROTATED_AT_ONCE);
      for (const key of old) await this.#replace(tx, key, "");
    });
  }
}

function own(key: StoredKey | undefined, id: string, owner: string): StoredKey {
  if (key !== undefined && key.owner === owner) return key;
  throw new DeputeError(ErrorReason.KEY_NOT_FOUND, "there is no such key", { metadata: { key: id } });
}
