import { type Grant, grant } from "../holder.ts";
import { type McpPlatform, startPlatform } from "../platform.ts";
import { startFixture } from "./fixture-server.ts";
import { TOOL_NAMES } from "./fixture-tools.ts";

const execute = (resource: string) => ({ namespace: "compute", action: "execute", resource });
const generate = (argument: string) => ({ namespace: "llm", action: "generate", resource: { argument } });
const read = { namespace: "docs", action: "read", resource: { argument: "/uri", form: "uri" } };
/** The capability that each tool and method of the suite's server needs, and the methods that need none (`passed`). */
export const FIXTURE_MAP = {
  tools: Object.fromEntries(TOOL_NAMES.map((name) => [name, execute(`fixture/${name}`)])),
  methods: {
    "resources/read": read,
    "resources/subscribe": read,
    "resources/unsubscribe": read,
    "prompts/get": generate("/name"),
    "completion/complete": generate("/ref/name"),
  },
  passed: ["sampling/createMessage", "elicitation/create", "roots/list", "logging/setLevel"],
};

export interface StartedFixture {
  readonly fixture: Awaited<ReturnType<typeof startFixture>>;
  readonly platform: McpPlatform;
  stop(): Promise<void>;
}

/**
 * Starts the suite's server, and a platform that serves it at /mcp/fixture. At /mcp/legacy the platform
 * serves it as a server of an earlier MCP revision.
 */
export async function startBehindDepute(): Promise<StartedFixture> {
  const fixture = await startFixture();
  const platform = await startPlatform({
    fixture: { http: { url: fixture.url }, map: FIXTURE_MAP },
    legacy: { http: { url: fixture.url }, map: FIXTURE_MAP, revision: "legacy" },
  });
  return {
    fixture,
    platform,
    async stop() {
      await platform.stop();
      fixture.stop();
    },
  };
}

/** Mints a token for everything that the suite's server has. */
export function grantAll(platform: McpPlatform): Promise<Grant> {
  return grant(platform, [
    ["compute", "execute", "fixture/**"],
    ["docs", "read", "test/**"],
    ["llm", "generate", "**"],
  ]);
}
