import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fromBinary } from "@bufbuild/protobuf";
import { ErrorInfoSchema } from "@depute/contracts/google/rpc/error_details_pb";
import { StatusSchema } from "@depute/contracts/google/rpc/status_pb";
import {
  type ChannelOptions,
  type Client,
  credentials,
  loadPackageDefinition,
  Metadata,
  type ServiceError,
} from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { PUBLISHED_PROTO } from "./published-proto.ts";

// biome-ignore lint/suspicious/noExplicitAny: what a foreign client does not look at, nobody looks at here
type Json = any;

/** A gRPC refusal. Contains NEKTE's code if the trailers have one. */
export class GrpcRefusal extends Error {
  readonly code: number;
  readonly nekteCode: string | undefined;

  constructor({ code, details, metadata }: ServiceError) {
    super(details);
    this.code = code;
    const [packed] = metadata.get("grpc-status-details-bin");
    const status = packed === undefined ? undefined : fromBinary(StatusSchema, packed as Buffer);
    const info = status?.details.find(({ typeUrl }) => typeUrl.endsWith("google.rpc.ErrorInfo"));
    this.nekteCode =
      info === undefined ? undefined : fromBinary(ErrorInfoSchema, info.value).metadata.nekte_code;
  }
}

type Method = (...given: unknown[]) => Json;

/** A client of `nekte.v1.Nekte` made of @grpc/grpc-js and the text of the published proto. */
export class PublishedGrpc {
  readonly #client: Client & Record<string, Method>;

  /**
   * @param url the gateway's address
   * @param authority the authority that the client sends; the address when absent
   * @param more further options of the gRPC channel
   */
  constructor(url: string, authority?: string, more: ChannelOptions = {}) {
    const folder = mkdtempSync(join(tmpdir(), "depute-proto-"));
    const file = join(folder, "nekte.proto");
    writeFileSync(file, PUBLISHED_PROTO);
    const loaded = loadPackageDefinition(
      loadSync(file, { keepCase: true, longs: Number, oneofs: true }),
    ) as Json;
    rmSync(folder, { recursive: true });
    const options = { ...(authority !== undefined && { "grpc.default_authority": authority }), ...more };
    this.#client = new loaded.nekte.v1.Nekte(new URL(url).host, credentials.createInsecure(), options);
  }

  /**
   * @param left the signal that cancels the call
   * @throws GrpcRefusal
   */
  call(
    name: string,
    request: object,
    headers: Record<string, string> = {},
    left?: AbortSignal,
  ): Promise<Json> {
    return new Promise((resolve, reject) => {
      const call = this.#method(name)(
        request,
        metadataOf(headers),
        (error: ServiceError | null, answer: Json) =>
          error === null ? resolve(answer) : reject(new GrpcRefusal(error)),
      );
      left?.addEventListener("abort", () => call.cancel(), { once: true });
    });
  }

  /** Calls a method that the published proto does not have. @throws GrpcRefusal */
  unknown(path: string): Promise<void> {
    const asItIs = (bytes: Buffer) => bytes;
    return new Promise((resolve, reject) => {
      this.#client.makeUnaryRequest(path, asItIs, asItIs, Buffer.alloc(0), (error) =>
        error === null ? resolve() : reject(new GrpcRefusal(error)),
      );
    });
  }

  /**
   * Returns the events of a delegation, in order.
   *
   * @throws GrpcRefusal
   */
  async delegate(request: object, headers: Record<string, string> = {}): Promise<Json[]> {
    const events: Json[] = [];
    try {
      for await (const event of this.#method("Delegate")(request, metadataOf(headers))) events.push(event);
    } catch (error) {
      throw new GrpcRefusal(error as ServiceError);
    }
    return events;
  }

  close(): void {
    this.#client.close();
  }

  #method(name: string): Method {
    const method = this.#client[name];
    if (method === undefined) throw new Error(`the published proto has no ${name}`);
    return method.bind(this.#client);
  }
}

function metadataOf(headers: Record<string, string>): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
  return metadata;
}
