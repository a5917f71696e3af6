import type { Client } from "@connectrpc/connect";
import type { LogService } from "@depute/contracts/depute/verifier/v1/log_service_pb";
import { ownHeaders } from "@depute/service";
import type { Route, Wire } from "../../src/edge/route.ts";
import { type Answer, validatedDocument } from "./documents.ts";
import { LogMethods, type LogRequest } from "./methods.ts";

/**
 * The transparency log as JSON documents over plain HTTP, for monitors and caches. Every client may read it, with or without
 * credentials, because a leaf holds only a digest of its subject.
 */
export function logWire(log: Client<typeof LogService>): Wire {
  const methods = new LogMethods(log);
  const route = (path: string, answer: (request: LogRequest) => Promise<Answer>): Route => ({
    method: "GET",
    path,
    answer: async ({ query, parameters, call: { signal, requestId } }) => {
      const options = { signal, headers: ownHeaders(requestId) };
      return { kind: "document", document: validatedDocument(await answer({ query, parameters, options })) };
    },
  });
  return {
    name: "log",
    routes: [
      route("/log/head", (request) => methods.head(request)),
      route("/log/entries", (request) => methods.entries(request)),
      route("/log/entries/{index}", (request) => methods.entry(request)),
      route("/log/proofs/inclusion", (request) => methods.inclusion(request)),
      route("/log/proofs/consistency", (request) => methods.consistency(request)),
    ],
  };
}
