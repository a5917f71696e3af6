import { LogEntryKind, LogService } from "@depute/contracts/depute/verifier/v1/log_service_pb";
import { type Clock, DeputeError, ErrorReason, toTimestamp } from "@depute/core";
import { keypairFromSeed } from "@depute/dct";
import { nativeEngine } from "@depute/dct/native";
import { leafHash, logEntryBytes, sessionHeadBytes, signLogHead } from "@depute/dct/transparency";
import { defineService } from "@depute/service";

const { sha256 } = nativeEngine;
const keypair = keypairFromSeed(nativeEngine, sha256(new TextEncoder().encode("log")));

/** A fake verifier whose transparency log has at most one leaf: the latest transcript head. */
export class FakeLog {
  /** Whether the log answers; a test can set it to false. */
  isUp = true;
  readonly #clock: Clock;
  #leaf = new Uint8Array();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  module() {
    return defineService({
      name: "verifier",
      settings: {},
      descriptors: [],
      start: async () => ({
        routes: (router) => {
          router.service(LogService, {
            getLogHead: () => ({ head: this.#head() }),
            appendSessionHead: (head) => {
              const digest = sha256(sessionHeadBytes(head));
              const time = this.#clock.now();
              this.#leaf = Uint8Array.from(logEntryBytes({ kind: "session_head", digest, time }));
              const kind = LogEntryKind.SESSION_HEAD;
              const entry = { index: 0n, kind, digest, appendTime: toTimestamp(time), leaf: this.#leaf };
              return { entry, hashes: [], head: this.#head() };
            },
          });
        },
        close: async () => {},
      }),
    });
  }

  #head() {
    if (!this.isUp) throw new DeputeError(ErrorReason.SHUTTING_DOWN, "the process drains");
    const log = keypair.principal.id;
    const time = this.#clock.now();
    const head = { log, treeSize: 1, rootHash: leafHash(sha256, this.#leaf), time };
    return {
      log,
      treeSize: 1n,
      rootHash: head.rootHash,
      headTime: toTimestamp(time),
      signature: signLogHead(nativeEngine, head, keypair),
    };
  }
}
