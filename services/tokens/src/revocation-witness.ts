import type { Timers } from "@depute/core";
import type { CryptoEngine } from "@depute/dct";
import { type Logger, type Verdict, Witness, type WitnessPlace } from "@depute/service";
import type { Store } from "@depute/store";
import { type Checkpoint, isContinued, isSignedCheckpoint, parseCheckpoint } from "./rules/checkpoint.ts";
import { headAt } from "./store/revocation-rows.ts";

interface RevocationWitnessOptions {
  readonly place: WitnessPlace | undefined;
  readonly engine: CryptoEngine;
  /** The principal that must have signed the head: the platform's root. */
  readonly signer: string;
  readonly store: Store;
  readonly timers: Timers;
  readonly log: Logger;
  /** Signs the current state of the log. */
  readonly sign: () => Checkpoint;
}

/** Returns the witness of the revocation log; undefined without a place. */
export function revocationWitness({
  place,
  engine,
  signer,
  store,
  timers,
  log,
  sign,
}: RevocationWitnessOptions): Witness | undefined {
  if (place === undefined) return undefined;
  const judge = async (published: string): Promise<Verdict> => {
    const checkpoint = parseCheckpoint(published);
    if (checkpoint === undefined || !isSignedCheckpoint(engine, checkpoint, signer)) return "foreign";
    const headThen = await store.read((tx) => headAt(tx, checkpoint.sequence));
    return isContinued(checkpoint, headThen) ? "continued" : "older";
  };
  const head = async () => JSON.stringify(sign());
  return new Witness({ place, subject: "revocation log", timers, log, head, judge });
}
