import type { JsonValue } from "@bufbuild/protobuf";
import type { CapabilityFull } from "@depute/contracts/nekte/v1/nekte_pb";
import type { ReadCapability } from "./publication.ts";

/** A schema to compile, and the examples that must satisfy it. */
export interface SchemaToCheck {
  /** The field of the schema in the request. */
  readonly field: string;
  readonly schema: JsonValue;
  readonly examples: readonly { readonly field: string; readonly value: JsonValue }[];
}

/**
 * Returns the schemas of a publication that need a check. An unchanged schema with unchanged examples has passed the
 * check before, so a repeated publication checks nothing.
 *
 * @param published the agent's published capabilities, by id
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

/** Returns the number of calls to the verifier: one for each example, and one for each schema without examples. */
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
