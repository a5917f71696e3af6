import type { DescService } from "@bufbuild/protobuf";
import {
  type ConnectRouter,
  createMethodImplSpec,
  createServiceImplSpec,
  type MethodImplSpec,
} from "@connectrpc/connect";
import { createMethodSerializationLookup, createMethodUrl } from "@connectrpc/connect/protocol";
import { maxFieldsOf } from "../field-limit/with-field-limit.ts";
import { jsonOptionsOf } from "../json-options.ts";
import { createHandlers, type RpcHandlerOptions, type RpcMethod } from "../rpc-handler.ts";

export type UnarySpec = Extract<MethodImplSpec, { kind: "unary" }>;
export type ServerStreamSpec = Extract<MethodImplSpec, { kind: "server_streaming" }>;
type Serialization = ReturnType<typeof createMethodSerializationLookup>;

/** A method that the fast path can serve: its requests are one message. */
export interface FastMethod {
  readonly path: string;
  readonly spec: UnarySpec | ServerStreamSpec;
  readonly serialization: Serialization;
  /** How many fields a request may hold; undefined for any number. */
  readonly maxFields: number | undefined;
  /** What answers when the request turns out to be none for the fast path after its body was begun. */
  readonly adapter: RpcMethod;
  /** The authority of the last call, and the address that it makes with the path. */
  last: { authority: string; url: string };
}

/** The methods of what `routes` registers that the fast path can serve, by their paths. */
export function collectMethods(options: RpcHandlerOptions): Map<string, FastMethod> {
  const adapters = createHandlers(options);
  const methods = new Map<string, FastMethod>();
  const limits = { readMaxBytes: options.maxRequestBytes, writeMaxBytes: 0xffff_ffff };
  const add = (spec: MethodImplSpec) => {
    if (spec.kind !== "unary" && spec.kind !== "server_streaming") return;
    const path = createMethodUrl("/", spec.method);
    const adapter = adapters.get(path);
    if (adapter === undefined) return;
    const serialization = createMethodSerializationLookup(
      spec.method,
      undefined,
      jsonOptionsOf(spec.method),
      limits,
    );
    // The adapter counts the fields of unary requests only.
    const maxFields = spec.kind === "unary" ? maxFieldsOf(spec.method) : undefined;
    methods.set(path, { path, spec, serialization, maxFields, adapter, last: { authority: "", url: "" } });
  };
  const router: ConnectRouter = {
    handlers: [],
    // A registration with options of its own is left to the adapter, which knows what they mean.
    service(service: DescService, implementation, own) {
      if (own === undefined)
        Object.values(createServiceImplSpec(service, implementation).methods).forEach(add);
      return router;
    },
    rpc(method, implementation, own) {
      if (own === undefined) add(createMethodImplSpec(method, implementation));
      return router;
    },
  };
  options.routes(router);
  return methods;
}
