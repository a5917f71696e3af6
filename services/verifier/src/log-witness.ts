import { decodeBase64Url, encodeBase64Url } from "@depute/core";
import { type CryptoEngine, createProof, keypairFromSeed } from "@depute/dct";
import { type LogHead, verifyConsistency, verifyLogHead } from "@depute/dct/transparency";
import { type ServiceDeps, type Verdict, Witness } from "@depute/service";
import type { Store } from "@depute/store";
import type { SignedHead, TransparencyLog } from "./transparency-log.ts";

interface LogWitnessOptions {
  readonly deps: Pick<ServiceDeps, "witnessFor" | "clock" | "timers" | "log">;
  readonly engine: CryptoEngine;
  readonly transparency: TransparencyLog;
  readonly store: Store;
}

/**
 * Opens the witness of the transparency log. Compares the log with the last published head, and from then on publishes
 * each new head.
 *
 * @returns undefined if the settings name no place
 * @throws SettingsError as `witnessFor` and `Witness.check`; the store is then closed
 */
export async function openLogWitness(options: LogWitnessOptions): Promise<Witness | undefined> {
  const { store, transparency } = options;
  try {
    const witness = witnessOf(options);
    await witness?.check();
    if (witness !== undefined) transparency.onAppend(() => witness.note());
    return witness;
  } catch (error) {
    await store.close();
    throw error;
  }
}

function witnessOf({ deps, engine, transparency, store }: LogWitnessOptions): Witness | undefined {
  const { clock, timers, log } = deps;
  const place = deps.witnessFor("transparency", {
    holderProof: (seed, claims) =>
      createProof(engine, keypairFromSeed(engine, seed), { ...claims, now: clock.now() }),
    consistency: (first, second) => store.read((tx) => transparency.consistency(tx, first, second)),
  });
  if (place === undefined) return undefined;
  const judge = async (published: string): Promise<Verdict> => {
    const signed = parseHead(published);
    if (signed?.head.log !== transparency.principal || !verifyLogHead(engine, signed.head, signed.signature))
      return "foreign";
    const { treeSize: firstSize, rootHash: firstRoot } = signed.head;
    return store.read(async (tx) => {
      const { treeSize: secondSize, rootHash: secondRoot } = (await transparency.head(tx)).head;
      if (firstSize > secondSize) return "older";
      const proof = await transparency.consistency(tx, firstSize, secondSize);
      const claim = { firstSize, firstRoot, secondSize, secondRoot, proof };
      return verifyConsistency(engine.sha256, claim) ? "continued" : "older";
    });
  };
  const head = async () => printedHead(await store.read((tx) => transparency.head(tx)));
  return new Witness({ place, subject: "transparency log", timers, log, head, judge });
}

function printedHead({ head, signature }: SignedHead): string {
  const { log, treeSize, rootHash, time } = head;
  return JSON.stringify({
    log,
    treeSize,
    rootHash: encodeBase64Url(rootHash),
    time,
    signature: encodeBase64Url(signature),
  });
}

function parseHead(text: string): { head: LogHead; signature: Uint8Array } | undefined {
  try {
    const { log, treeSize, time, rootHash, signature } = JSON.parse(text) as Record<string, unknown>;
    const [root, signed] = [decodeBase64Url(String(rootHash)), decodeBase64Url(String(signature))];
    if (typeof log !== "string" || !Number.isSafeInteger(treeSize) || !Number.isSafeInteger(time))
      return undefined;
    if (root === undefined || signed === undefined) return undefined;
    return {
      head: { log, treeSize: Number(treeSize), time: Number(time), rootHash: root },
      signature: signed,
    };
  } catch {
    return undefined;
  }
}
