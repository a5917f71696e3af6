import type { RootSuccession } from "@depute/contracts/depute/tokens/v1/root_key_service_pb";
import { type CryptoEngine, createProof, keypairFromSeed } from "@depute/dct";
import { type ServiceDeps, type Verdict, Witness } from "@depute/service";
import type { Store } from "@depute/store";
import {
  isContinued,
  isSignedByItsSigner,
  type PublicCheckpoint,
  parseCheckpoint,
} from "./rules/checkpoint.ts";
import { headAt } from "./store/revocation-rows.ts";
import { lastRootChange } from "./store/root-key-rows.ts";

interface RevocationWitnessOptions {
  readonly deps: Pick<ServiceDeps, "witnessFor" | "clock" | "timers" | "log">;
  readonly engine: CryptoEngine;
  /** Whether a principal is or was the platform's root, which must have signed the head. */
  readonly isSigner: (principal: string) => boolean;
  /** Returns the signed statements that one root key follows another. */
  readonly successions: () => readonly RootSuccession[];
  readonly store: Store;
  /** Signs the current state of the log and of the root keys. */
  readonly sign: () => PublicCheckpoint;
}

/**
 * Returns the witness of the revocation log; undefined if the settings name no place for the log's head.
 *
 * @throws SettingsError as `witnessFor`
 */
export function revocationWitness(options: RevocationWitnessOptions): Witness | undefined {
  const { deps, engine, isSigner, successions, store, sign } = options;
  const { clock, timers, log } = deps;
  const place = deps.witnessFor("revocations", {
    successions,
    holderProof: (seed, claims) =>
      createProof(engine, keypairFromSeed(engine, seed), { ...claims, now: clock.now() }),
  });
  if (place === undefined) return undefined;
  const judge = async (published: string): Promise<Verdict> => {
    const checkpoint = parseCheckpoint(published);
    if (checkpoint === undefined || !isSigner(checkpoint.signer)) return "foreign";
    if (!isSignedByItsSigner(engine, checkpoint)) return "foreign";
    const { headThen, rootChange } = await store.read(async (tx) => ({
      headThen: await headAt(tx, checkpoint.sequence),
      rootChange: await lastRootChange(tx),
    }));
    if (!isContinued(checkpoint, headThen)) return "older";
    return rootChange < (checkpoint.rootChange ?? 0) ? "older root keys" : "continued";
  };
  const head = async () => JSON.stringify(sign());
  return new Witness({ place, subject: "revocation log", timers, log, head, judge });
}
