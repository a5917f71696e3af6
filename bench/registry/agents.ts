import { create } from "@bufbuild/protobuf";
import { type CapabilityFull, CapabilityFullSchema } from "@depute/contracts/nekte/v1/nekte_pb";

/** How many of each there are; with 100,000 agents a page of 20 is found under every filter. */
export const CATEGORIES = 50;
export const TAGS = 100;
export const ORGANIZATIONS = 500;
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

/** The agent of a number, always the same. */
export function agentOf(i: number) {
  return {
    id: `agent-${i}`,
    displayName: `Agent ${i}`,
    organization: `org-${i % ORGANIZATIONS}`,
    tags: [`tag-${i % TAGS}`, `tag-${(i * 7 + 3) % TAGS}`],
    protocols: ["nekte/0.2"],
    leaseMs: 3_600_000n,
  };
}

/** Its capabilities. */
export function capabilitiesOf(i: number): CapabilityFull[] {
  return Array.from({ length: CAPABILITIES }, (_, j) => {
    const n = i * CAPABILITIES + j;
    const word = (k: number) => WORDS[(n * (k + 1) + k) % WORDS.length] ?? "";
    return create(CapabilityFullSchema, {
      id: `cap-${(n * 31) % NAMES}-${j}`,
      cat: `cat-${(n * 17) % CATEGORIES}`,
      desc: `Can ${word(0)}, ${word(1)} and ${word(2)} texts of kind ${n % 1000}.`,
      inputSchema: schema,
      outputSchema: schema,
    });
  });
}
