import {
  create,
  type DescMessage,
  type DescMethod,
  fromBinary,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { ConnectError, createContextValues, type Interceptor, type Transport } from "@connectrpc/connect";
import { runStreamingCall, runUnaryCall } from "@connectrpc/connect/protocol";
import { findTrailerError } from "@connectrpc/connect/protocol-grpc";
import * as grpc from "@grpc/grpc-js";

export interface GrpcJsOptions {
  readonly interceptors?: Interceptor[];
  /** Whether the connection uses TLS with the system's root certificates. Default: false. */
  readonly isSecure?: boolean;
  /** Channel options of grpc-js, by their names. */
  readonly channel?: Readonly<Record<string, string | number>>;
}

/**
 * A Connect transport over @grpc/grpc-js, a client that shares no code with the platform. The transport needs
 * only the descriptors.
 *
 * @param address `host:port`, or another grpc-js target
 */
export function createGrpcJsTransport(
  address: string,
  { interceptors = [], isSecure = false, channel = {} }: GrpcJsOptions = {},
): Transport & { close(): void } {
  const credentials = isSecure ? grpc.credentials.createSsl() : grpc.credentials.createInsecure();
  const client = new grpc.Client(address, credentials, { ...channel });
  return {
    close: () => client.close(),
    unary(method, signal, timeoutMs, header, input, contextValues) {
      return runUnaryCall({
        interceptors,
        ...(signal === undefined ? {} : { signal }),
        req: { ...common(method, header, contextValues), stream: false, method, message: input },
        next: (request) =>
          new Promise((resolve, reject) => {
            const received = new Headers();
            const trailer = new Headers();
            const call = client.makeUnaryRequest(
              pathOf(method),
              serialize(method.input),
              deserialize(method.output),
              request.message,
              toMetadata(request.header),
              deadline(timeoutMs),
              (error, message) => {
                if (error) reject(toError(error));
                else if (message === undefined)
                  reject(new Error("the stream ended with neither an error nor a message"));
                else
                  resolve({
                    stream: false,
                    service: method.parent,
                    method,
                    header: received,
                    trailer,
                    message,
                  });
              },
            );
            call.on("metadata", (metadata: grpc.Metadata) => copy(metadata, received));
            call.on("status", (status: grpc.StatusObject) => copy(status.metadata, trailer));
            request.signal.addEventListener("abort", () => call.cancel());
          }),
      });
    },
    stream(method, signal, timeoutMs, header, input, contextValues) {
      return runStreamingCall({
        interceptors,
        ...(signal === undefined ? {} : { signal }),
        req: { ...common(method, header, contextValues), stream: true, method, message: input },
        next: async (request) => {
          const received = new Headers();
          const trailer = new Headers();
          const call = client.makeBidiStreamRequest(
            pathOf(method),
            serialize(method.input),
            deserialize(method.output),
            toMetadata(request.header),
            deadline(timeoutMs),
          );
          call.on("metadata", (metadata: grpc.Metadata) => copy(metadata, received));
          call.on("status", (status: grpc.StatusObject) => copy(status.metadata, trailer));
          call.on("error", () => {});
          request.signal.addEventListener("abort", () => call.cancel());
          pump(request.message, call).catch(() => call.cancel());
          return {
            stream: true,
            service: method.parent,
            method,
            header: received,
            trailer,
            message: messages(call),
          };
        },
      });
    },
  };
}

function common(
  method: DescMethod,
  header: ConstructorParameters<typeof Headers>[0],
  contextValues: ReturnType<typeof createContextValues> | undefined,
) {
  return {
    service: method.parent,
    requestMethod: "POST",
    url: `http://grpc-js${pathOf(method)}`,
    header: new Headers(header),
    contextValues: contextValues ?? createContextValues(),
  };
}

async function pump<T>(source: AsyncIterable<T>, call: grpc.ClientDuplexStream<T, unknown>): Promise<void> {
  for await (const message of source) {
    if (!call.write(message)) await new Promise((resolve) => call.once("drain", resolve));
  }
  call.end();
}

async function* messages<T>(call: grpc.ClientReadableStream<T>): AsyncIterable<T> {
  try {
    for await (const message of call) yield message as T;
  } catch (error) {
    throw toError(error as grpc.ServiceError);
  }
}

function pathOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

function serialize<Desc extends DescMessage>(schema: Desc) {
  return (message: MessageShape<Desc>) => Buffer.from(toBinary(schema, message));
}

function deserialize<Desc extends DescMessage>(schema: Desc) {
  return (bytes: Buffer) => (bytes.length === 0 ? create(schema) : fromBinary(schema, bytes));
}

function deadline(timeoutMs: number | undefined): grpc.CallOptions {
  return timeoutMs === undefined ? {} : { deadline: Date.now() + timeoutMs };
}

function toMetadata(headers: Headers): grpc.Metadata {
  const metadata = new grpc.Metadata();
  headers.forEach((value, name) => {
    metadata.set(name, value);
  });
  return metadata;
}

function copy(metadata: grpc.Metadata, headers: Headers): void {
  for (const [name, value] of Object.entries(metadata.getMap())) {
    headers.set(name, typeof value === "string" ? value : value.toString("base64"));
  }
}

/**
 * Returns the error that Connect reads from the trailer, with its details. grpc-js has removed the code and the message
 * from the trailer, so this function adds both again.
 */
function toError(error: grpc.ServiceError): Error {
  const trailer = new Headers();
  copy(error.metadata, trailer);
  if (!trailer.has("grpc-status")) trailer.set("grpc-status", String(error.code));
  if (!trailer.has("grpc-message")) trailer.set("grpc-message", encodeURIComponent(error.details));
  return findTrailerError(trailer) ?? new ConnectError(error.details, error.code as number);
}
