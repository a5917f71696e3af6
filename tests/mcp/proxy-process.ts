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

/** Connects the official client to `depute mcp-proxy` in a separate process. */
export async function connectProxy(
  { platform, folder }: { platform: { readonly url: string }; folder: string },
  { server, upstream, holder, flags = [], client: options = {} }: ProxyStart,
  revision: Revision = "2025-11-25",
) {
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
  const client = new Client(
    { name: "test", version: "1.0.0" },
    {
      capabilities: { sampling: {} },
      ...options,
      versionNegotiation: { mode: revision === "2025-11-25" ? "legacy" : { pin: revision } },
    },
  );
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [MAIN, "mcp-proxy", ...all, ...command],
    stderr: process.env.DEPUTE_TEST_LOG === undefined ? "ignore" : "inherit",
  });
  return { client, connected: () => client.connect(transport) };
}
