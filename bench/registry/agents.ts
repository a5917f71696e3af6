import { create } from "@bufbuild/protobuf";
import { type CapabilityFull, CapabilityFullSchema } from "@depute/contracts/nekte/v1/nekte_pb";

/**
 * How many of each there are: so few that with 1,000 agents about as many are found as fill a page of 20, since what is
 * compared with the same among 100,000 agents should answer as much.
 */
export const CATEGORIES = 10;
export const TAGS = 50;
export const ORGANIZATIONS = 5;
const NAMES = 200;
const CAPABILITIES = 5;
const WORDS = "sum sort rank read write draw plan judge translate shorten find merge split count test".split(
  " ",
);

const schema = new TextEncoder().encode(
  JSON.stringify({
    type: "object",
    properties: { text: { type: "string" }, limit: { type: "integer", minimum: 0 } },
    required: ["text"],
  }),
);

/** One of so many, the same for the same number and purpose, and otherwise without a pattern. (MurmurHash3's last steps) */
function scattered(n: number, purpose: number, among: number): number {
  let hash = Math.imul(n * 8 + purpose + 1, 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) % among;
}

/** The agent of a number, always the same. */
export function agentOf(i: number) {
  return {
    id: `agent-${i}`,
    displayName: `Agent ${i}`,
    organization: `org-${scattered(i, 0, ORGANIZATIONS)}`,
    tags: [`tag-${scattered(i, 1, TAGS)}`, `tag-${scattered(i, 2, TAGS)}`],
    protocols: ["nekte/0.2"],
    leaseMs: 86_400_000n,
  };
}

/** Its capabilities. */
export function capabilitiesOf(i: number): CapabilityFull[] {
  return Array.from({ length: CAPABILITIES }, (_, j) => {
    const n = i * CAPABILITIES + j;
    const word = (k: number) => WORDS[(n * (k + 1) + k) % WORDS.length] ?? "";
    return create(CapabilityFullSchema, {
      id: `cap-${(n * 31) % NAMES}-${j}`,
      cat: `cat-${scattered(n, 3, CATEGORIES)}`,
      desc: `Can ${word(0)}, ${word(1)} and ${word(2)} texts of kind ${n % 1000}.`,
      inputSchema: schema,
      outputSchema: schema,
    });
  });
}
