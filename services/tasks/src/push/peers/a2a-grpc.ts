import { toBinary } from "@bufbuild/protobuf";
import { ConnectError, createClient } from "@connectrpc/connect";
import { ErrorInfoSchema } from "@depute/contracts/google/rpc/error_details_pb";
import { A2AService, type StreamResponse, StreamResponseSchema } from "@depute/contracts/lf/a2a/v1/a2a_pb";
import type { Outbound } from "@depute/service";
import { A2A_DOMAIN, faultOfReason } from "../rules/a2a-refusal.ts";
import type { A2aAddress } from "../rules/agent-address.ts";
import type { Endpoint } from "../rules/endpoint.ts";
import { PeerFault, TOO_MUCH } from "../rules/refusal.ts";
import type { A2aPeer } from "./a2a-peer.ts";
import { A2A_HEADERS } from "./a2a-wire.ts";
import { CALL_MS, MAX_STREAM_BYTES } from "./peer.ts";
import { faultOfTransport, pinnedTransport } from "./pinned-transport.ts";

/**
 * Connects to an A2A agent over gRPC. (A2A 10)
 *
 * @throws PeerFault ADDRESS_NOT_ALLOWED, ENDPOINT_UNREACHABLE
 */
export async function a2aGrpcPeer(
  outbound: Outbound,
  { tenant, streaming }: A2aAddress,
  endpoint: Endpoint,
  credentials: Readonly<Record<string, string>>,
): Promise<A2aPeer> {
  const transport = await pinnedTransport(outbound, endpoint);
  const client = createClient(A2AService, transport);
  const headers = { ...A2A_HEADERS, ...credentials };
  const soon = (signal: AbortSignal) => ({ headers, signal, timeoutMs: CALL_MS });

  return {
    async *send(request, signal) {
      if (streaming) {
        return yield* bounded(client.sendStreamingMessage(request, { headers, signal }));
      }
      const { payload } = await orFault(client.sendMessage(request, soon(signal)));
      yield { $typeName: StreamResponseSchema.typeName, payload } as StreamResponse;
    },
    subscribe: (id, signal) => bounded(client.subscribeToTask({ tenant, id }, { headers, signal })),
    get: (id, signal) => orFault(client.getTask({ tenant, id, historyLength: 0 }, soon(signal))),
    async cancel(id, signal) {
      await orFault(client.cancelTask({ tenant, id }, soon(signal)));
    },
    close: () => transport.close(),
  };
}

/** Yields the elements of a stream. Throws if their total size exceeds MAX_STREAM_BYTES. */
async function* bounded(elements: AsyncIterable<StreamResponse>): AsyncGenerator<StreamResponse> {
  let bytes = 0;
  try {
    for await (const element of elements) {
      bytes += toBinary(StreamResponseSchema, element).length;
      if (bytes > MAX_STREAM_BYTES)
        throw new PeerFault(TOO_MUCH, "the agent sent more bytes than the limit allows");
      yield element;
    }
  } catch (thrown) {
    throw toFault(thrown);
  }
}

async function orFault<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (thrown) {
    throw toFault(thrown);
  }
}

function toFault(thrown: unknown): PeerFault {
  if (thrown instanceof ConnectError) {
    for (const { domain, reason } of thrown.findDetails(ErrorInfoSchema)) {
      const fault = domain === A2A_DOMAIN ? faultOfReason(reason, thrown.rawMessage) : undefined;
      if (fault !== undefined) return fault;
    }
  }
  return faultOfTransport(thrown);
}
