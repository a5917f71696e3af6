import { isIP } from "node:net";
import { toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { ErrorInfoSchema } from "@depute/contracts/google/rpc/error_details_pb";
import { type DelegateEvent, DelegateEventSchema, Nekte } from "@depute/contracts/nekte/v1/nekte_pb";
import { DeputeError } from "@depute/core";
import { createGrpcJsTransport } from "@depute/grpc-js";
import type { Outbound } from "@depute/service";
import { encode } from "@depute/wire";
import type { Endpoint } from "../rules/endpoint.ts";
import { type Numbered, type PeerEvent, readPeerEvent } from "../rules/peer-event.ts";
import {
  MALFORMED,
  NOT_ALLOWED,
  PeerFault,
  REFUSED,
  refusalOf,
  TASK_NOT_FOUND,
  TOO_MUCH,
  UNREACHABLE,
} from "../rules/refusal.ts";
import { CALL_MS, MAX_STREAM_BYTES, type Peer, readAnswer } from "./peer.ts";

/** Milliseconds between signs of life of a connection on which nothing comes. */
const KEEPALIVE_MS = 20_000;

/**
 * NEKTE over gRPC, as its proto was published.
 *
 * @throws PeerFault ADDRESS_NOT_ALLOWED, ENDPOINT_UNREACHABLE
 */
export async function grpcPeer(
  outbound: Outbound,
  { url, authority, isSecure, agentId }: Endpoint,
  credentials: Readonly<Record<string, string>>,
): Promise<Peer> {
  const { address, family } = await outbound.pin(url).catch((thrown: unknown) => {
    throw toFault(thrown);
  });
  const { hostname } = new URL(url);
  const { port } = new URL(`http://${authority}`);
  const host = family === 6 ? `[${address}]` : address;
  // The address was judged, so the name is not asked again, and no proxy of the environment is asked at all.
  const transport = createGrpcJsTransport(`ipv${family}:${host}:${port || (isSecure ? "443" : "80")}`, {
    isSecure,
    channel: {
      "grpc.default_authority": authority,
      "grpc.enable_http_proxy": 0,
      "grpc.service_config_disable_resolution": 1,
      "grpc.keepalive_time_ms": KEEPALIVE_MS,
      "grpc.max_reconnect_backoff_ms": CALL_MS,
      // A certificate is for the name, or for the address itself where no name was given.
      ...(isSecure && !isAddress(hostname) ? { "grpc.ssl_target_name_override": hostname } : {}),
    },
  });
  const client = createClient(Nekte, transport);
  const headers = { ...credentials, ...(agentId === "" ? {} : { "nekte-agent": agentId }) };
  const soon = (signal: AbortSignal) => ({ headers, signal, timeoutMs: CALL_MS });

  return {
    async invoke(request, signal) {
      const answer = await told(client.invoke(request, { headers, signal }));
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
          if (bytes > MAX_STREAM_BYTES) throw new PeerFault(TOO_MUCH, "the endpoint sent more than is taken");
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
      await told(client.context(request, soon(signal)));
    },

    async cancel(request, signal) {
      await told(client.taskCancel(request, soon(signal)), TASK_NOT_FOUND);
    },

    async resume(request, signal) {
      await told(client.taskResume(request, soon(signal)), TASK_NOT_FOUND);
    },

    async status(taskId, signal) {
      const answer = await told(client.taskStatus({ taskId }, soon(signal)), TASK_NOT_FOUND);
      if (answer.taskId !== taskId) throw new PeerFault(MALFORMED, "the status of another task");
      return answer.status;
    },

    close: () => transport.close(),
  };
}

/** Whether a URL's host is an IP address. */
function isAddress(hostname: string): boolean {
  return isIP(hostname.replace(/^\[(.*)\]$/, "$1")) !== 0;
}

const FIELDS = new Map(DelegateEventSchema.oneofs[0]?.fields.map((field) => [field.localName, field]));

/** An event by its JSON, which is the same on every transport. */
function readMessage({ event }: DelegateEvent, taskId: string): PeerEvent {
  const field = FIELDS.get(event.case ?? "");
  if (field?.message === undefined || event.value === undefined) return { kind: "moved" };
  let data: ReturnType<typeof encode>;
  try {
    data = encode(field.message, event.value);
  } catch (thrown) {
    const why = thrown instanceof Error ? thrown.message : "an event without a JSON form";
    throw new PeerFault(MALFORMED, `the endpoint does not speak NEKTE: ${why}`);
  }
  return readPeerEvent(field.name, data, taskId);
}

/**
 * What a call gives, or its fault.
 *
 * @param notFound NEKTE's code for what gRPC calls not found, of an endpoint that gives no code of its own
 */
async function told<T>(call: Promise<T>, notFound?: number): Promise<T> {
  try {
    return await call;
  } catch (thrown) {
    throw toFault(thrown, notFound);
  }
}

const PASSING: ReadonlySet<Code> = new Set([
  Code.Unavailable,
  Code.DeadlineExceeded,
  Code.Internal,
  Code.Unknown,
  Code.Aborted,
  Code.Canceled,
]);

function toFault(thrown: unknown, notFound?: number): unknown {
  if (thrown instanceof PeerFault) return thrown;
  if (thrown instanceof DeputeError) return new PeerFault(NOT_ALLOWED, thrown.message);
  if (!(thrown instanceof ConnectError)) {
    const why = thrown instanceof Error ? thrown.message : "no answer";
    return new PeerFault(UNREACHABLE, `the endpoint cannot be reached: ${why}`);
  }
  const { code: status, rawMessage } = thrown;
  const [info] = thrown.findDetails(ErrorInfoSchema);
  const named = Number(info?.metadata.nekte_code);
  const code =
    Number.isSafeInteger(named) && named !== 0 ? named : status === Code.NotFound ? notFound : undefined;
  if (code !== undefined) return new PeerFault(refusalOf(code), rawMessage, { code, data: info?.metadata });
  if (status === Code.ResourceExhausted) return new PeerFault(TOO_MUCH, rawMessage);
  const refusal = PASSING.has(status) ? UNREACHABLE : REFUSED;
  return new PeerFault(refusal, `the endpoint answered ${Code[status]}: ${rawMessage}`);
}
