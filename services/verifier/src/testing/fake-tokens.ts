import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { RevocationEntrySchema } from "@depute/contracts/delegateos/v0/revocation_pb";
import { RevocationService } from "@depute/contracts/depute/tokens/v1/revocation_service_pb";
import type { RevocationEntry } from "@depute/dct";
import { defineService } from "@depute/service";
import { decode } from "@depute/wire";

/** A tokens service with no more than a log of revocations. */
export function fakeTokens() {
  const entries: MessageInitShape<typeof RevocationEntrySchema>[] = [];
  let wake: () => void = () => {};
  const module = defineService({
    name: "tokens",
    settings: {},
    descriptors: [RevocationService],
    async start() {
      return {
        routes: (router) =>
          router.service(RevocationService, {
            async *watchRevocations({ afterSequence }, { signal }) {
              for (let at = Number(afterSequence); !signal.aborted; ) {
                const entry = entries[at];
                if (entry !== undefined) {
                  at += 1;
                  yield { revocation: { sequence: BigInt(at), entry } };
                  continue;
                }
                await new Promise<void>((resolve) => {
                  wake = resolve;
                  signal.addEventListener("abort", () => resolve(), { once: true });
                });
              }
            },
          }),
        async close() {},
      };
    },
  });
  return {
    module,
    revoke(entry: RevocationEntry) {
      const decoded = decode(RevocationEntrySchema, entry);
      if (!decoded.ok) throw new Error(decoded.error.message);
      entries.push(create(RevocationEntrySchema, decoded.message));
      wake();
    },
  };
}

export type FakeTokens = ReturnType<typeof fakeTokens>;
