import type { JsonValue } from "@bufbuild/protobuf";
import type { CapabilityFull } from "@depute/contracts/nekte/v1/nekte_pb";
import type { ReadCapability } from "./publication.ts";

/** A schema that is to be compiled, and the examples that are to fit it. */
export interface SchemaToCheck {
  /** Where it stands in the request. */
  readonly field: string;
  readonly schema: JsonValue;
  readonly examples: readonly { readonly field: string; readonly value: JsonValue }[];
}

/**
 * The schemas of a publication that have to be checked. One that the agent has published before, with the same
 * examples, was checked then: an agent that publishes the same again at each start costs nothing.
 *
 * @param published what the agent has published before, by id
 */
export function schemasToCheck(
  capabilities: readonly ReadCapability[],
  published: ReadonlyMap<string, CapabilityFull>,
): SchemaToCheck[] {
  return capabilities.flatMap((capability, index) => {
    const before = published.get(capability.message.id);
    if (before !== undefined && hasSameSchemas(capability.message, before)) return [];
    return (["input", "output"] as const).map((side) => ({
      field: `capabilities[${index}].${side}_schema`,
      schema: capability[side],
      examples: capability.examples.map((example, i) => ({
        field: `capabilities[${index}].examples[${i}].${side}`,
        value: example[side],
      })),
    }));
  });
}

/** How many questions that makes: one for each example, and one for a schema without. */
export function countChecks(schemas: readonly SchemaToCheck[]): number {
  return schemas.reduce((count, { examples }) => count + Math.max(1, examples.length), 0);
}

function hasSameSchemas(a: CapabilityFull, b: CapabilityFull): boolean {
  return (
    isSame(a.inputSchema, b.inputSchema) &&
    isSame(a.outputSchema, b.outputSchema) &&
    a.examples.length === b.examples.length &&
    a.examples.every(
      (example, i) =>
        isSame(example.input, b.examples[i]?.input) && isSame(example.output, b.examples[i]?.output),
    )
  );
}

function isSame(a: Uint8Array | undefined, b: Uint8Array | undefined): boolean {
  return a !== undefined && a.length === b?.length && a.every((byte, i) => byte === b[i]);
}
