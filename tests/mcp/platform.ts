import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onDemand } from "../../tools/on-demand.ts";
import {
  startPlatform as startWhole,
  type TestPlatform,
  type TestPlatformOptions,
} from "../gateway/platform.ts";

const BIN = `${onDemand("mcp")}/@modelcontextprotocol/`;

/** The command that starts the official server `everything` behind the proxy. */
export const EVERYTHING = {
  command: process.execPath,
  args: [`${BIN}server-everything/dist/index.js`, "stdio"],
};
export const filesystem = (folder: string) => ({
  command: process.execPath,
  args: [`${BIN}server-filesystem/dist/index.js`, folder],
});

/**
 * Creates a server's folder. Tests grant `docs`. They do not grant `secret`, to which `docs/link` leads, or
 * `docs-secret`, whose name begins with `docs`.
 */
export function makeFiles() {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "depute-mcp-")));
  for (const folder of ["docs", "docs/deep", "docs-secret", "secret"]) mkdirSync(join(root, folder));
  writeFileSync(join(root, "docs/plan.txt"), "the plan");
  writeFileSync(join(root, "docs/deep/note.txt"), "the note");
  writeFileSync(join(root, "docs-secret/key.txt"), "the key beside");
  writeFileSync(join(root, "secret/key.txt"), "the key");
  symlinkSync(join(root, "secret"), join(root, "docs/link"));
  return { root, remove: () => rmSync(root, { recursive: true, force: true }) };
}

export type McpPlatform = TestPlatform & { mcp(name: string): string };

/** Starts the whole platform, with each of the given servers at /mcp/{name}. */
export async function startPlatform(
  upstreams: object,
  args: readonly string[] = [],
  options: TestPlatformOptions = {},
): Promise<McpPlatform> {
  const folder = mkdtempSync(join(tmpdir(), "depute-mcp-config-"));
  const config = join(folder, "mcp.json");
  writeFileSync(config, JSON.stringify({ upstreams }));
  const platform = await startWhole(["--mcp-config", config, ...args], options);
  rmSync(folder, { recursive: true, force: true });
  return { ...platform, mcp: (name) => `${platform.url}/mcp/${name}` };
}
