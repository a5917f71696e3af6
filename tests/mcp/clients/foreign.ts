import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import type { Json } from "../../gateway/platform.ts";
import { earlierSdk } from "../earlier-sdk.ts";

/** An MCP server: an address over HTTP, or a command over stdio. */
export type Target =
  | { readonly url: string }
  | { readonly command: string; readonly args: readonly string[] };

/** The call that a foreign client makes. The client also calls a tool that does not exist. */
export interface Call {
  readonly tool: string;
  readonly arguments: Readonly<Record<string, string>>;
}

/** The data that a foreign client received from the server. */
export interface Observed {
  readonly tools: readonly string[];
  /** The text of the call's result. */
  readonly text: string;
  /** The message of the refusal of the tool that does not exist. */
  readonly refused: string;
}

export type ForeignClient = (target: Target, call: Call) => Promise<Observed>;

const RUN_MS = 60_000;
const run = promisify(execFile);

/** The official TypeScript SDK 1.x, which supports the revisions before 2026-07-28. */
export const sdk1: ForeignClient = async (target, call) => {
  const from = (path: string) => earlierSdk(`client/${path}`);
  const [{ Client: OldClient }, { StreamableHTTPClientTransport: Http }, { StdioClientTransport: Stdio }] =
    await Promise.all([from("index"), from("streamableHttp"), from("stdio")]);
  const client = new OldClient({ name: "sdk-1", version: "1.0.0" });
  await client.connect("url" in target ? new Http(new URL(target.url)) : new Stdio(quiet(target)));
  return observed(client, call);
};

/** The official TypeScript SDK 2.x. Its mode `legacy` uses the revisions before 2026-07-28. */
export const sdk2 =
  (mode: "legacy" | "auto"): ForeignClient =>
  async (target, call) => {
    const client = new Client({ name: "sdk-2", version: "1.0.0" }, { versionNegotiation: { mode } });
    await client.connect(
      "url" in target
        ? new StreamableHTTPClientTransport(new URL(target.url))
        : new StdioClientTransport(quiet(target)),
    );
    return observed(client, call);
  };

/**
 * The command line of the official Inspector.
 *
 * @param folder the folder into which npm installed it
 */
export const inspector =
  (folder: string): ForeignClient =>
  async (target, { tool, arguments: args }) => {
    const program = inspectorProgram(folder);
    // `--` ends the Inspector's own flags, so that the Inspector does not read the flags of the server's
    // command.
    const inspect = (...flags: string[]) => {
      const own = ["--cli", "--method", ...flags];
      const argv =
        "url" in target
          ? [...own, "--transport", "http", "--server-url", target.url]
          : [...own, "--", target.command, ...target.args];
      return run(process.execPath, [program, ...argv], inspectorOptions(folder));
    };
    const pairs = Object.entries(args).flatMap(([name, value]) => ["--tool-arg", `${name}=${value}`]);
    const { tools } = JSON.parse((await inspect("tools/list")).stdout) as Json;
    const result = JSON.parse((await inspect("tools/call", "--tool-name", tool, ...pairs)).stdout) as Json;
    const refused = await inspect("tools/call", "--tool-name", "no-such-tool").then(
      ({ stdout }) => stdout,
      ({ stdout, stderr }) => `${stdout}${stderr}`,
    );
    return { tools: namesOf(tools), text: result.content[0].text, refused };
  };

/** Lists the tools of a server that a host's configuration file names, with the Inspector. */
export async function toolsByConfig(folder: string, file: string, server: string): Promise<string[]> {
  const argv = [inspectorProgram(folder), "--cli", "--config", file, "--server", server];
  const { stdout } = await run(
    process.execPath,
    [...argv, "--method", "tools/list"],
    inspectorOptions(folder),
  );
  return namesOf((JSON.parse(stdout) as Json).tools);
}

function inspectorProgram(folder: string): string {
  const require = createRequire(pathToFileURL(join(folder, "package.json")));
  const manifest = require.resolve("@modelcontextprotocol/inspector/package.json");
  const { bin } = require(manifest) as { bin: Record<string, string> };
  return join(manifest, "..", bin["mcp-inspector"] ?? "");
}

/** Keeps the Inspector's own files in the folder. */
function inspectorOptions(folder: string) {
  return { timeout: RUN_MS, env: { ...process.env, HOME: folder } };
}

/**
 * The official Python SDK.
 *
 * @param python the interpreter of an environment that has it
 */
export const python =
  (python: string, mode: "legacy" | "auto"): ForeignClient =>
  async (target, call) => {
    const program = join(import.meta.dirname, "client.py");
    const argv = [program, JSON.stringify(target), JSON.stringify({ ...call, mode })];
    const { stdout } = await run(python, argv, { timeout: RUN_MS });
    const { tools, text, refused } = JSON.parse(stdout.trim().split("\n").at(-1) ?? "") as Observed;
    return { tools, text, refused };
  };

async function observed(client: Json, { tool, arguments: args }: Call): Promise<Observed> {
  try {
    const { tools } = await client.listTools();
    const result = await client.callTool({ name: tool, arguments: args });
    const refused = await client.callTool({ name: "no-such-tool", arguments: {} }).then(
      () => "not refused",
      ({ message }: Error) => message,
    );
    return { tools: namesOf(tools), text: result.content[0].text, refused };
  } finally {
    await client.close();
  }
}

function namesOf(tools: readonly { name: string }[]): string[] {
  return tools.map(({ name }) => name).sort();
}

function quiet({ command, args }: { command: string; args: readonly string[] }) {
  return { command, args: [...args], stderr: "ignore" as const };
}
