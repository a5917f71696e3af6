import type { Timers } from "@depute/core";
import {
  isJSONRPCRequest,
  StreamableHTTPClientTransport,
  type Transport,
} from "@modelcontextprotocol/client";
import { limitedAnswer } from "./limited-answer.ts";
import type { UpstreamAddress } from "./rules/read-config.ts";
import { StdioTransport } from "./stdio-transport.ts";

/**
 * Creates the transport to a server.
 *
 * @param maxAnswerBytes maximum size in bytes of one message from the server
 * @param timers limit the wait for the end of a server process
 */
export function transportTo(address: UpstreamAddress, maxAnswerBytes: number, timers: Timers): Transport {
  if (address.kind === "stdio") return new StdioTransport({ address, maxAnswerBytes, timers });
  const { origin } = new URL(address.url);
  return new StreamableHTTPClientTransport(new URL(address.url), {
    requestInit: { headers: { ...address.headers }, redirect: "error" },
    fetch: async (input, init) => {
      const target = new URL(input instanceof Request ? input.url : input);
      // A redirect must not send requests to an origin that the configuration does not name.
      if (target.origin !== origin)
        throw new Error(
          `the proxy sends no request to ${target.origin}, because the configuration does not name this origin`,
        );
      const answer = await fetch(input, { ...init, redirect: "error" });
      return limitedAnswer(answer, maxAnswerBytes, requestIn(init?.body));
    },
  });
}

function requestIn(body: unknown) {
  if (typeof body !== "string") return undefined;
  const message: unknown = JSON.parse(body);
  return isJSONRPCRequest(message) ? message.id : undefined;
}
