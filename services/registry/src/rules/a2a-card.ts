import type { JsonObject } from "@bufbuild/protobuf";
import type { Agent } from "@depute/contracts/depute/registry/v1/agent_pb";
import type { CapabilityFull } from "@depute/contracts/nekte/v1/nekte_pb";
import { A2A_EXTENSIONS } from "@depute/core";

/** The A2A version of the interfaces. (A2A 3.6) */
const PROTOCOL_VERSION = "1.0";
/** The version in the card of an agent without a version. A2A requires a version. */
const NO_VERSION = "0";

const INPUT_MODES = ["text/plain", "application/json", "*/*"];
const OUTPUT_MODES = ["application/json", "text/plain"];

/** The facts about the platform that a card states. */
export interface A2aPlatform {
  /** The platform's public URL, without a trailing slash. */
  readonly publicUrl: string;
  /** Whether callers must present credentials. */
  readonly needsCredentials: boolean;
  /** Whether the platform calls webhooks. */
  readonly callsWebhooks: boolean;
}

/**
 * Returns the unsigned A2A 1.0 card of an agent: its URLs at this platform, and a skill for each capability. A member
 * that would be empty is omitted, unless A2A requires it. (A2A 4.4.1, 8.4.1)
 */
export function a2aCard(
  { id, displayName, description, version, card: asp, organization, tags }: Agent,
  capabilities: readonly CapabilityFull[],
  platform: A2aPlatform,
): JsonObject {
  const { publicUrl, needsCredentials, callsWebhooks } = platform;
  const name = displayName || asp?.name || id;
  return {
    name,
    // Never empty, because clients differ in whether an empty REQUIRED member is part of the signed text.
    description: description || asp?.description || name,
    supportedInterfaces: interfacesOf(id, publicUrl),
    version: version || NO_VERSION,
    capabilities: {
      streaming: true,
      pushNotifications: callsWebhooks,
      extendedAgentCard: needsCredentials,
      extensions: Object.values(A2A_EXTENSIONS).map(({ uri, description }) => ({ uri, description })),
    },
    defaultInputModes: INPUT_MODES,
    defaultOutputModes: OUTPUT_MODES,
    skills: capabilities.length === 0 ? [FREE_WORK] : capabilities.map((each) => skillOf(each, tags)),
    ...(organization === "" ? {} : { provider: { organization, url: publicUrl } }),
    ...(needsCredentials ? SECURITY : {}),
  };
}

/** Returns the agent's interfaces, the preferred one first. */
function interfacesOf(id: string, publicUrl: string): JsonObject[] {
  const url = `${publicUrl}/a2a/${encodeURIComponent(id)}`;
  return [
    { url, protocolBinding: "JSONRPC", protocolVersion: PROTOCOL_VERSION },
    { url, protocolBinding: "HTTP+JSON", protocolVersion: PROTOCOL_VERSION },
    { url: authorityOf(publicUrl), protocolBinding: "GRPC", tenant: id, protocolVersion: PROTOCOL_VERSION },
  ];
}

/** Returns host and port of a URL, for gRPC. */
function authorityOf(publicUrl: string): string {
  const { host, port, protocol } = new URL(publicUrl);
  return port === "" ? `${host}:${protocol === "https:" ? 443 : 80}` : host;
}

function skillOf({ id, cat = "", desc = "" }: CapabilityFull, agentTags: readonly string[]): JsonObject {
  const tags = [...new Set([cat, ...agentTags])].filter((tag) => tag !== "");
  return { id, name: id, description: desc || id, tags: tags.length === 0 ? [id] : tags };
}

/** The A2A skill of an agent without capabilities. Such an agent accepts every message. */
const FREE_WORK = {
  id: "free-work",
  name: "free work",
  description: "takes work that a message describes",
  tags: ["free-work"],
};

/** The kinds of credentials that the platform accepts over A2A. (A2A 4.5) */
const SECURITY: JsonObject = {
  securitySchemes: {
    bearer: {
      httpAuthSecurityScheme: { description: "a secret of the platform, or a token", scheme: "Bearer" },
    },
  },
  securityRequirements: [{ schemes: { bearer: {} } }],
};
