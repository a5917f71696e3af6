import { createClient } from "@connectrpc/connect";
import { useTransport } from "@connectrpc/connect-query";
import { RevocationService } from "@depute/contracts/depute/tokens/v1/revocation_service_pb";
import { useMemo } from "react";
import type { Connection } from "./follow.ts";
import { useWake } from "./wake.ts";

/**
 * Reads the data of the open page again soon after each new revocation. Ignores revocations from before the page was
 * opened.
 */
export function useRevocationWake(): Connection {
  const transport = useTransport();
  const client = useMemo(() => createClient(RevocationService, transport), [transport]);
  return useWake("revocations", async function* (signal) {
    const { checkpoint } = await client.getRevocationCheckpoint({}, { signal });
    const afterSequence = checkpoint?.sequence ?? 0n;
    yield* client.watchRevocations({ afterSequence, sendStart: true }, { signal });
  });
}
