import { StreamableHTTPClientTransport, type Transport } from "@modelcontextprotocol/client";
import { getDefaultEnvironment, StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import type { UpstreamAddress } from "./rules/read-config.ts";

/** The way to a server. */
export function transportTo(address: UpstreamAddress): Transport {
  if (address.kind === "stdio") {
    const { command, args, env, cwd } = address;
    return new StdioClientTransport({
      command,
      args: [...args],
      // The proxy's own environment holds secrets that are no business of the server's.
      env: { ...getDefaultEnvironment(), ...env },
      stderr: "inherit",
      ...(cwd === undefined ? {} : { cwd }),
    });
  }
  const { origin } = new URL(address.url);
  return new StreamableHTTPClientTransport(new URL(address.url), {
    requestInit: { headers: { ...address.headers }, redirect: "error" },
    fetch: (input, init) => {
      const target = new URL(input instanceof Request ? input.url : input);
      // Whatever the server says, nothing is sent anywhere else than configuration allows.
      if (target.origin !== origin) throw new Error(`no request to ${target.origin}: it is not configured`);
      return fetch(input, { ...init, redirect: "error" });
    },
  });
}
