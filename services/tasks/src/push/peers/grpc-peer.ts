import { toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { ErrorInfoSchema } from "@depute/contracts/google/rpc/error_details_pb";
import { type DelegateEvent, DelegateEventSchema, Nekte } from "@depute/contracts/nekte/v1/nekte_pb";
import type { Outbound } from "@depute/service";
import { encode } from "@depute/wire";
import type { Endpoint } from "../rules/endpoint.ts";
import { type Numbered, type PeerEvent, readPeerEvent } from "../rules/peer-event.ts";
import { MALFORMED, PeerFault, refusalOf, TASK_NOT_FOUND, TOO_MUCH } from "../rules/refusal.ts";
import { CALL_MS, MAX_STREAM_BYTES, type Peer, readAnswer } from "./peer.ts";
import { faultOfTransport, pinnedTransport } from "./pinned-transport.ts";

/**
 * Connects to a NEKTE server over gRPC, by NEKTE's published proto.
 *
 * @throws PeerFault ADDRESS_NOT_ALLOWED, ENDPOINT_UNREACHABLE
 */
export async function grpcPeer(
  outbound: Outbound,
  { url, authority, isSecure, agentId }: Endpoint,
  credentials: Readonly<Record<string, string>>,
): Promise<Peer> {
  const transport = await pinnedTransport(outbound, { url, authority, isSecure });
  const client = createClient(Nekte, transport);
  const headers = { ...credentials, ...(agentId === "" ? {} : { "nekte-agent": agentId }) };
  const soon = (signal: AbortSignal) => ({ headers, signal, timeoutMs: CALL_MS });

  return {
    async invoke(request, signal) {
      const answer = await resultOrFault(client.invoke(request, { headers, signal }));
      const { error, output, resolvedLevel = "", meta } = answer;
      if (error !== undefined) {
        const { code, message, currentHash } = error;
        throw new PeerFault(refusalOf(code), message, { code, data: { current_hash: currentHash } });
      }
      return { output: readAnswer(output), level: resolvedLevel, tokensUsed: meta?.tokensUsed ?? 0 };
    },

    async *delegate(request, after, signal) {
      const taskId = request.task?.id ?? "";
      const more = after === undefined ? headers : { ...headers, "last-event-id": after };
      let bytes = 0;
      try {
        for await (const event of client.delegate(request, { headers: more, signal })) {
          bytes += toBinary(DelegateEventSchema, event).length;
          if (bytes > MAX_STREAM_BYTES)
            throw new PeerFault(TOO_MUCH, "the endpoint sent more bytes than the limit allows");
          const { sequence } = event;
          yield {
            event: readMessage(event, taskId),
            id: sequence === undefined ? undefined : String(sequence),
          } satisfies Numbered;
        }
      } catch (thrown) {
        throw toFault(thrown);
      }
    },

    async share(request, signal) {
      await resultOrFault(client.context(request, soon(signal)));
    },

    async cancel(request, signal) {
      await resultOrFault(client.taskCancel(request, soon(signal)), TASK_NOT_FOUND);
    },

    async resume(request, signal) {
      await resultOrFault(client.taskResume(request, soon(signal)), TASK_NOT_FOUND);
    },

    async status(taskId, signal) {
      const answer = await resultOrFault(client.taskStatus({ taskId }, soon(signal)), TASK_NOT_FOUND);
      if (answer.taskId !== taskId)
        throw new PeerFault(
          MALFORMED,
          "the endpoint does not conform to NEKTE: the status is about another task",
        );
      return answer.status;
    },

    close: () => transport.close(),
  };
}

const FIELDS = new Map(DelegateEventSchema.oneofs[0]?.fields.map((field) => [field.localName, field]));

/** Reads an event. Converts it to NEKTE's JSON form first, because that form is the same on every transport. */
function readMessage({ event }: DelegateEvent, taskId: string): PeerEvent {
  const field = FIELDS.get(event.case ?? "");
  if (field?.message === undefined || event.value === undefined) return { kind: "moved" };
  let data: ReturnType<typeof encode>;
  try {
    data = encode(field.message, event.value);
  } catch (thrown) {
    const why = thrown instanceof Error ? thrown.message : "an event has no JSON form";
    throw new PeerFault(MALFORMED, `the endpoint does not conform to NEKTE: ${why}`);
  }
  return readPeerEvent(field.name, data, taskId);
}

/**
 * Returns the result of a call, or throws its fault.
 *
 * @param notFound the NEKTE code that gRPC's NOT_FOUND stands for, if the endpoint sends no NEKTE codes
 */
async function resultOrFault<T>(call: Promise<T>, notFound?: number): Promise<T> {
  try {
    return await call;
  } catch (thrown) {
    throw toFault(thrown, notFound);
  }
}

function toFault(thrown: unknown, notFound?: number): unknown {
  if (!(thrown instanceof ConnectError)) return faultOfTransport(thrown);
  const { code: status, rawMessage } = thrown;
  const [info] = thrown.findDetails(ErrorInfoSchema);
  const codeNumber = Number(info?.metadata.nekte_code);
  const code =
    Number.isSafeInteger(codeNumber) && codeNumber !== 0
      ? codeNumber
      : status === Code.NotFound
        ? notFound
        : undefined;
  if (code !== undefined) return new PeerFault(refusalOf(code), rawMessage, { code, data: info?.metadata });
  return faultOfTransport(thrown);
}
