import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { type CapabilityFull, CapabilityFullSchema } from "@depute/contracts/nekte/v1/nekte_pb";

/**
 * Number of categories and of other groups of agents. Even with 1,000 agents a search finds about one page of
 * 20. So the results are as large as with 100,000 agents.
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

/**
 * Returns a number below `among` that is always the same for the same `n` and `purpose`, but looks random.
 * (MurmurHash3's last steps)
 */
function scattered(n: number, purpose: number, among: number): number {
  let hash = Math.imul(n * 8 + purpose + 1, 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) % among;
}

/** Returns agent number `i`, which is the same in every run. */
export function agentOf(i: number) {
  return {
    id: `agent-${i}`,
    displayName: `Agent ${i}`,
    organization: `org-${scattered(i, 0, ORGANIZATIONS)}`,
    tags: [`tag-${scattered(i, 1, TAGS)}`, `tag-${scattered(i, 2, TAGS)}`],
    protocols: ["nekte/0.2"],
    leaseDuration: durationFromMs(86_400_000),
  };
}

/** Returns the capabilities of agent number `i`. */
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
