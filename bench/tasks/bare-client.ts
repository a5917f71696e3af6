import { promisify } from "node:util";
import { create, type DescService, fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import {
  type Client,
  type ClientReadableStream,
  credentials,
  makeGenericClientConstructor,
  type ServiceDefinition,
} from "@grpc/grpc-js";

type Unary = (request: object, done: (error: unknown, answer?: unknown) => void) => void;

/**
 * Makes a plain @grpc/grpc-js client, so that all compared servers have the same kind of client. Clients of one address
 * share a connection unless `ownConnection` is true.
 */
export function bareClient(
  service: DescService,
  address: string,
  { ownConnection = false }: { readonly ownConnection?: boolean } = {},
) {
  const definition: Record<string, unknown> = {};
  for (const { name, input, output, methodKind } of service.methods) {
    definition[name] = {
      path: `/${service.typeName}/${name}`,
      requestStream: false,
      responseStream: methodKind === "server_streaming",
      requestSerialize: (request: object) => Buffer.from(toBinary(input, create(input, request as Message))),
      requestDeserialize: (bytes: Buffer) => fromBinary(input, bytes),
      responseSerialize: (answer: Message) => Buffer.from(toBinary(output, answer)),
      responseDeserialize: (bytes: Buffer) => fromBinary(output, bytes),
    };
  }
  const Constructor = makeGenericClientConstructor(definition as ServiceDefinition, service.name);
  const client = new Constructor(address, credentials.createInsecure(), {
    "grpc.use_local_subchannel_pool": ownConnection ? 1 : 0,
  }) as Client & Record<string, (...args: unknown[]) => unknown>;
  return {
    /** Returns a function that calls the named method, which has a single answer. */
    unary<Answer>(name: string): (request: object) => Promise<Answer> {
      const call = promisify<object, unknown>((client[name] as Unary).bind(client));
      return (request) => call(request) as Promise<Answer>;
    },
    /** Calls a method that answers with a stream. */
    stream(name: string, request: object): ClientReadableStream<unknown> {
      return (client[name] as (request: object) => unknown).call(
        client,
        request,
      ) as ClientReadableStream<unknown>;
    },
    close: () => client.close(),
  };
}
