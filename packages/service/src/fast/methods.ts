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

/** A method that the fast path can serve, because its request is one message. */
export interface FastMethod {
  readonly path: string;
  readonly spec: UnarySpec | ServerStreamSpec;
  readonly serialization: Serialization;
  /** Maximum number of fields in a request; undefined for no limit. */
  readonly maxFields: number | undefined;
  /**
   * The handler of Connect's adapter for the method. It serves a call whose body shows that the fast path cannot serve
   * this call.
   */
  readonly adapter: RpcMethod;
  /** The scheme, the authority and the URL of the last call. */
  last: { scheme: string; authority: string; url: string };
}

const NO_CALL = { scheme: "", authority: "", url: "" };

/** Collects the methods that `routes` registers and that the fast path can serve, by path. */
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
    methods.set(path, { path, spec, serialization, maxFields, adapter, last: NO_CALL });
  };
  const router: ConnectRouter = {
    handlers: [],
    // The fast path ignores options of a registration, so the adapter serves a service that was registered with
    // options.
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
