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
import {
  DeadlineLoop,
  type Logger,
  type SealedSecrets,
  SettingsError,
  type WorkLease,
} from "@depute/service";
import type { Store, WriteTx } from "@depute/store";
import type { AuditLog } from "./audit-log.ts";
import { assertUsable, type KeyUse, MAX_KEYS_OF_ONE } from "./rules/kept-key.ts";
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
/** The prefix of the request ids that the service itself creates. The service refuses callers' ids with this prefix. */
const OWN = "\u0001";

interface KeyStoreOptions {
  engine: CryptoEngine;
  store: Store;
  clock: Clock;
  timers: Timers;
  log: Logger;
  audit: AuditLog;
  secrets: SealedSecrets;
  /** The age, in milliseconds, at which the service replaces an active key; 0 means never. */
  maxAgeMs: number;
  /** Called after the commit that replaces an agent's key. */
  onAgentKey?: () => void;
  /** The lease of the replica that replaces old keys; undefined without replicas. */
  lease?: WorkLease | undefined;
}

/** The kept keys. A private key is decrypted only while it signs. */
export class KeyStore {
  readonly #options: KeyStoreOptions;
  readonly #rotation: DeadlineLoop;

  constructor(options: KeyStoreOptions) {
    this.#options = options;
    const { clock, timers, log, lease } = options;
    this.#rotation = new DeadlineLoop({
      clock,
      timers,
      log,
      failureMessage: "old keys cannot be replaced",
      maxWaitMs: ROTATE_EVERY_MS,
      lease,
      runDueWork: () => this.#rotateOld(),
    });
  }

  /**
   * Checks that the master key decrypts the kept keys, and starts the replacement of old keys.
   *
   * @throws SettingsError if the master key does not decrypt the kept keys
   */
  async start(): Promise<void> {
    const [any] = await this.#options.store.read((tx) => keysOlderThan(tx, Number.MAX_SAFE_INTEGER, 1));
    if (any !== undefined && this.#open(any) === undefined) {
      throw new SettingsError(
        "the master key did not seal the kept keys; set the master key that sealed them",
      );
    }
    if (this.#options.maxAgeMs > 0) this.#rotation.start(ROTATE_EVERY_MS);
  }

  async close(): Promise<void> {
    await this.#rotation.close();
    this.#options.secrets.close();
  }

  /**
   * Creates a key. A replay returns the existing key.
   *
   * @throws DeputeError REQUEST_ID_REUSED, LIMIT_EXCEEDED; INVALID_REQUEST for a request id with the prefix OWN
   */
  async create(
    owner: string,
    details: Pick<StoredKey, "requestId" | "digest" | "agentId" | "organization">,
  ): Promise<StoredKey> {
    const { requestId, digest } = details;
    if (requestId.startsWith(OWN)) throw invalid("request_id", "must not begin with a control character");
    return this.#options.store.write(async (tx) => {
      const before = await findKeyByRequest(tx, owner, requestId);
      if (before !== undefined && before.digest !== digest) {
        throw requestIdReused(requestId);
      }
      if (before !== undefined) return before;
      if ((await countKeys(tx, owner)) >= MAX_KEYS_OF_ONE) {
        throw new DeputeError(ErrorReason.LIMIT_EXCEEDED, "the caller has reached the limit of keys", {
          metadata: { limit: "keys", max: String(MAX_KEYS_OF_ONE) },
        });
      }
      return this.#make(tx, { owner, ...details });
    });
  }

  /**
   * Returns a key, if the caller's principal owns it.
   *
   * @throws DeputeError KEY_NOT_FOUND, also for another owner's key
   */
  async find(id: string, owner: string): Promise<StoredKey> {
    return requireOwnKey(await this.#options.store.read((tx) => findKey(tx, id)), id, owner);
  }

  /**
   * Signs with a key, for its owner.
   *
   * @param sign receives the keypair, which is erased when the returned promise settles
   * @throws DeputeError KEY_NOT_FOUND, KEY_NOT_USABLE; INTERNAL if the key cannot be decrypted
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
   * Signs the statement that a key was replaced, and returns it as a JWS. The replaced key signs even if it was revoked
   * after the replacement. Otherwise the registry would keep a revoked key for the agent.
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

  /**
   * Replaces a key by a new key. A key that is already replaced keeps its successor.
   *
   * @throws DeputeError KEY_NOT_FOUND, KEY_NOT_USABLE
   */
  async rotate(id: string, owner: string): Promise<{ replaced: StoredKey; key: StoredKey }> {
    return this.#options.store.write(async (tx) => {
      const key = requireOwnKey(await findKey(tx, id), id, owner);
      assertUsable(key, "rotate", this.#options.clock.now());
      return this.#replace(tx, key, owner);
    });
  }

  /** Revokes a key permanently. A revoked key signs only revocations, and the statement that it was replaced. */
  async revoke(id: string, owner: string): Promise<StoredKey> {
    return this.#options.store.write(async (tx) => {
      const key = requireOwnKey(await findKey(tx, id), id, owner);
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
    details: Pick<StoredKey, "owner" | "requestId" | "digest" | "agentId" | "organization">,
  ): Promise<StoredKey> {
    const { engine, clock, secrets, audit } = this.#options;
    const keypair = generateKeypair(engine);
    const id = newId(clock.now());
    const principal = keypair.principal.id;
    const sealed = secrets.seal(
      keypair.privateKey,
      contextOfKeptKey({ id, owner: details.owner, principal }),
    );
    keypair.privateKey.fill(0);
    await audit.write(tx, {
      ...{
        kind: "create_key",
        caller: details.owner,
        principal,
        decision: "allowed",
        reason: "",
        blocks: [],
      },
    });
    return insertKey(tx, {
      ...{ ...details, id, principal, sealed, state: "active", successorId: "" },
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
    const { owner, agentId, organization, principal } = key;
    // `create` refuses this prefix in callers' ids. So this request id differs from the request ids of all callers.
    const details = { owner, agentId, organization, requestId: `${OWN}${key.id}`, digest: "" };
    const successor = await this.#make(tx, details);
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
    if (seed === undefined) throw new DeputeError(ErrorReason.INTERNAL, "the kept key cannot be decrypted");
    const keypair = keypairFromSeed(this.#options.engine, seed);
    seed.fill(0);
    return keypair;
  }

  #open({ sealed, id, owner, principal }: StoredKey): Uint8Array | undefined {
    return this.#options.secrets.open(sealed, contextOfKeptKey({ id, owner, principal }));
  }

  async #rotateOld(): Promise<void> {
    const { store, clock, maxAgeMs } = this.#options;
    await store.write(async (tx) => {
      const old = await keysOlderThan(tx, clock.now() - maxAgeMs, ROTATED_AT_ONCE);
      for (const key of old) await this.#replace(tx, key, "");
    });
  }
}

function requireOwnKey(key: StoredKey | undefined, id: string, owner: string): StoredKey {
  if (key !== undefined && key.owner === owner) return key;
  throw new DeputeError(
    ErrorReason.KEY_NOT_FOUND,
    "the key does not exist, or it belongs to another principal; check the id",
    { metadata: { key: id } },
  );
}

/** Returns the context to which a kept key's sealed secret is bound. Another context cannot open the secret. */
export function contextOfKeptKey({ id, owner, principal }: Pick<StoredKey, "id" | "owner" | "principal">) {
  return { id, owner, principal };
}
