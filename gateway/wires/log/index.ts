import { hash } from "node:crypto";
import type { Client } from "@connectrpc/connect";
import type { LogService } from "@depute/contracts/depute/verifier/v1/log_service_pb";
import { type HttpRequest, type HttpResponse, type HttpRoute, ownHeaders } from "@depute/service";
import type { WireDeps } from "../../src/json-rpc-route.ts";
import { sendValidated, type Validated } from "../../src/validated.ts";
import { wireCall } from "../../src/wire-call.ts";
import { type Answer, LogMethods, type LogRequest } from "./methods.ts";

/** What was proved once stays so; what is present has to be asked for again. */
const FOREVER = "public, max-age=31536000, immutable";
const ASK_AGAIN = "no-cache";

/**
 * The transparency log as JSON documents over plain HTTP, for monitors and caches: everybody may read it, credentials or
 * not, since a leaf holds a digest and nothing else of what it is about.
 */
export function logRoutes(log: Client<typeof LogService>, deps: Pick<WireDeps, "publicUrl">): HttpRoute[] {
  const methods = new LogMethods(log);
  const route = (path: string, answer: (request: LogRequest) => Promise<Answer>): HttpRoute => ({
    methods: ["GET"],
    path,
    async handle(request: HttpRequest, response: HttpResponse, parameters) {
      const { signal, requestId } = wireCall(request, response, deps.publicUrl);
      const query = new URLSearchParams(request.url?.split("?").slice(1).join("?"));
      const options = { signal, headers: ownHeaders(requestId) };
      sendValidated(request, response, documentOf(await answer({ query, parameters, options })));
    },
  });
  return [
    route("/log/head", (request) => methods.head(request)),
    route("/log/entries", (request) => methods.entries(request)),
    route("/log/entries/{index}", (request) => methods.entry(request)),
    route("/log/proofs/inclusion", (request) => methods.inclusion(request)),
    route("/log/proofs/consistency", (request) => methods.consistency(request)),
  ];
}

function documentOf({ body, immutable }: Answer): Validated {
  const bytes = Buffer.from(JSON.stringify(body));
  return {
    bytes,
    contentType: "application/json",
    cacheControl: immutable ? FOREVER : ASK_AGAIN,
    etag: `"${hash("sha256", bytes, "base64url")}"`,
  };
}
