import type {
  CapabilityFull,
  CapabilityRef,
  CapabilitySummary,
  CostHint,
} from "@depute/contracts/nekte/v1/nekte_pb";

/** Number of characters of JSON that count as one language-model token. */
const CHARACTERS_PER_TOKEN = 4;

/** A capability at one of the three levels. */
export type LevelledCapability =
  | { readonly case: "reference"; readonly value: CapabilityRef }
  | { readonly case: "summary"; readonly value: CapabilitySummary }
  | { readonly case: "full"; readonly value: CapabilityFull };

const utf8 = new TextDecoder();

/**
 * Returns the number of language-model tokens of capabilities: a quarter of the characters of their JSON list, rounded
 * up. Measures the JSON as the response contains it. (NEKTE 1; NEKTE library)
 */
export function countTokens(capabilities: readonly LevelledCapability[]): number {
  const characters = capabilities.reduce((sum, capability) => sum + nekteJson(capability).length, 0);
  const brackets = 2 + Math.max(0, capabilities.length - 1);
  return Math.ceil((characters + brackets) / CHARACTERS_PER_TOKEN);
}

/** Returns NEKTE's JSON form of a capability. */
export function nekteJson(capability: LevelledCapability): string {
  const { value } = capability;
  const members = [member("id", value.id)];
  if (value.cat !== undefined) members.push(member("cat", value.cat));
  members.push(member("h", value.h));
  if (capability.case === "reference") return object(members);
  const { desc, cost, agentHint } = capability.value;
  if (desc !== undefined) members.push(member("desc", desc));
  if (cost !== undefined) members.push(member("cost", costOf(cost)));
  if (agentHint !== undefined) members.push(member("agent_hint", agentHint));
  if (capability.case === "summary") return object(members);
  const { inputSchema, outputSchema, examples } = capability.value;
  if (inputSchema !== undefined) members.push(text("input", inputSchema));
  if (outputSchema !== undefined) members.push(text("output", outputSchema));
  if (examples.length > 0) {
    const pairs = examples.map(({ input, output }) => object([text("in", input), text("out", output)]));
    members.push(`"examples":[${pairs.join(",")}]`);
  }
  return object(members);
}

function costOf({ avgMs, avgTokens }: CostHint) {
  return { avg_ms: avgMs, avg_tokens: avgTokens };
}

function member(name: string, value: unknown): string {
  return `"${name}":${JSON.stringify(value)}`;
}

/** Returns a JSON member whose value is already JSON text. */
function text(name: string, json: Uint8Array): string {
  return `"${name}":${utf8.decode(json)}`;
}

function object(members: readonly string[]): string {
  return `{${members.join(",")}}`;
}
