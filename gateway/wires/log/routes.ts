import type { Client } from "@connectrpc/connect";
import type { LogService } from "@depute/contracts/depute/verifier/v1/log_service_pb";
import { ownHeaders } from "@depute/service";
import type { Route, Wire } from "../../edge/route.ts";
import { type Answer, validatedDocument } from "./documents.ts";
import { LogMethods, type LogRequest } from "./methods.ts";

/**
 * Serves the transparency log as JSON documents over plain HTTP, for monitors and caches. Credentials are not needed,
 * because a leaf contains only the digest of a document, the document's kind and the time of the append.
 */
export function logWire(log: Client<typeof LogService>): Wire {
  const methods = new LogMethods(log);
  const route = (
    path: string,
    query: readonly string[],
    answer: (request: LogRequest) => Promise<Answer>,
  ): Route => ({
    method: "GET",
    path,
    query,
    answer: async ({ query: given, parameters, call: { signal, requestId } }) => {
      const options = { signal, headers: ownHeaders(requestId) };
      return {
        kind: "document",
        document: validatedDocument(await answer({ query: given, parameters, options })),
      };
    },
  });
  return {
    name: "log",
    claims: ["/log"],
    routes: [
      route("/log/head", [], (request) => methods.head(request)),
      route("/log/entries", ["first", "count"], (request) => methods.entries(request)),
      route("/log/entries/{index}", [], (request) => methods.entry(request)),
      route("/log/proofs/inclusion", ["index", "digest", "attestation", "tree_size"], (request) =>
        methods.inclusion(request),
      ),
      route("/log/proofs/consistency", ["first", "second"], (request) => methods.consistency(request)),
    ],
  };
}
