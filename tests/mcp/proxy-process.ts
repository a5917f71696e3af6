import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client, type ClientOptions } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import type { Grant, Revision } from "./holder.ts";

export const MAIN = new URL("../../cli/src/main.ts", import.meta.url).pathname;

/** The arguments of `depute mcp-proxy`. */
export interface ProxyStart {
  /** The command that starts the server; absent if `upstream` has an address. */
  readonly server?: { command: string; args: string[] };
  readonly upstream: object;
  /** The holder whose token and key the proxy uses, passed as files. */
  readonly holder?: Grant;
  readonly flags?: readonly string[];
  readonly client?: ClientOptions;
}

/** The platform that a proxy asks, and the folder for the proxy's files. */
interface Place {
  readonly platform: { readonly url: string };
  readonly folder: string;
}

/** Writes the files of `depute mcp-proxy`, and returns the arguments that start it with Node.js. */
export function proxyArguments(
  { platform, folder }: Place,
  { server, upstream, holder, flags = [] }: ProxyStart,
): string[] {
  const config = join(folder, `mcp-${crypto.randomUUID()}.json`);
  writeFileSync(config, JSON.stringify({ upstreams: { server: { revision: "legacy", ...upstream } } }));
  const files: string[] = [];
  if (holder !== undefined) {
    writeFileSync(`${config}.token`, holder.token);
    writeFileSync(`${config}.key`, Buffer.from(holder.keypair.privateKey).toString("base64url"), {
      mode: 0o600,
    });
    files.push("--token-file", `${config}.token`, "--key-file", `${config}.key`);
  }
  const all = ["--config", config, "--platform", platform.url, ...files, ...flags];
  const command = server === undefined ? [] : ["--", server.command, ...server.args];
  return [MAIN, "mcp-proxy", ...all, ...command];
}

/** Connects the official client to `depute mcp-proxy` in a separate process. */
export async function connectProxy(place: Place, start: ProxyStart, revision: Revision = "2025-11-25") {
  const client = new Client(
    { name: "test", version: "1.0.0" },
    {
      capabilities: { sampling: {} },
      ...start.client,
      versionNegotiation: { mode: revision === "2025-11-25" ? "legacy" : { pin: revision } },
    },
  );
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: proxyArguments(place, start),
    stderr: process.env.DEPUTE_TEST_LOG === undefined ? "ignore" : "inherit",
  });
  return { client, connected: () => client.connect(transport) };
}
