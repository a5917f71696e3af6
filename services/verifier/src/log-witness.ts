import { decodeBase64Url, encodeBase64Url, type Timers } from "@depute/core";
import type { CryptoEngine } from "@depute/dct";
import { type LogHead, verifyConsistency, verifyLogHead } from "@depute/dct/transparency";
import { type Logger, type Verdict, Witness, type WitnessPlace } from "@depute/service";
import type { Store } from "@depute/store";
import type { SignedHead, TransparencyLog } from "./transparency-log.ts";

interface LogWitnessOptions {
  readonly place: WitnessPlace | undefined;
  readonly engine: CryptoEngine;
  readonly transparency: TransparencyLog;
  readonly store: Store;
  readonly timers: Timers;
  readonly log: Logger;
}

/**
 * Compares the transparency log with its published head, and publishes later heads.
 *
 * @returns undefined without a place
 * @throws SettingsError as `Witness.check`; the store is then closed
 */
export async function openLogWitness({
  place,
  engine,
  transparency,
  store,
  timers,
  log,
}: LogWitnessOptions): Promise<Witness | undefined> {
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
  const witness = new Witness({ place, subject: "transparency log", timers, log, head, judge });
  try {
    await witness.check();
  } catch (error) {
    await store.close();
    throw error;
  }
  transparency.onAppend(() => witness.note());
  return witness;
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
