import { create, type JsonValue } from "@bufbuild/protobuf";
import {
  type CapabilityFull,
  CapabilityFullSchema,
  type Example,
  ExampleSchema,
} from "@depute/contracts/nekte/v1/nekte_pb";
import { DeputeError, ErrorReason, type FieldViolation } from "@depute/core";
import { readJsonText, writeJsonText } from "./json-text.ts";
import { type Sha256Hex, versionDigest } from "./version-hash.ts";

/** A valid capability. The verifier compiles its schemas later. */
export interface ReadCapability {
  /** The stored form, with normalized JSON texts and an empty `h`. */
  readonly message: CapabilityFull;
  readonly category: string;
  readonly input: JsonValue;
  readonly output: JsonValue;
  readonly examples: readonly { readonly input: JsonValue; readonly output: JsonValue }[];
  /** The digest, 64 hexadecimal digits. The version hash is a prefix of the digest. */
  readonly digest: string;
}

// Matches ids that no capability may have. A capability id is part of names (`agent/capability`), of lists, and of the
// resources in tokens. In a resource, `*` is a pattern and `-` means work without a capability. Tokens refuse a
// resource with `.`, `..`, `%` or a backslash.
const UNFIT_FOR_IDS = /[\p{C}\p{Z}/\\*%]|^(?:-|\.|\.\.)$/u;

/**
 * Parses the set of capabilities that an agent publishes. (NEKTE 1) The function checks more than the contract's
 * limits. Each id must be unique and valid in a resource. A category and both schemas are required: the version hash
 * covers the schemas, and the platform checks calls against them. JSON members must be well-formed.
 *
 * @throws DeputeError INVALID_REQUEST with every fault of every capability
 */
export function readPublication(
  capabilities: readonly CapabilityFull[],
  sha256: Sha256Hex,
): ReadCapability[] {
  const violations: FieldViolation[] = [];
  const ids = new Set<string>();
  const read: ReadCapability[] = [];
  capabilities.forEach((capability, index) => {
    const at = `capabilities[${index}]`;
    const faults = new Faults(at);
    if (ids.has(capability.id)) faults.add("id", "is the id of another capability of this set");
    ids.add(capability.id);
    if (UNFIT_FOR_IDS.test(capability.id)) {
      faults.add(
        "id",
        "must not contain a slash, backslash, asterisk, percent sign, white space or control character, and must not be -, . or ..",
      );
    }
    if (capability.cat === undefined || capability.cat === "") faults.add("cat", "is required");
    const input = faults.readSchema("input_schema", capability.inputSchema);
    const output = faults.readSchema("output_schema", capability.outputSchema);
    const examples = capability.examples.map((example, i) => ({
      input: faults.read(`examples[${i}].input`, example.input),
      output: faults.read(`examples[${i}].output`, example.output),
    }));
    violations.push(...faults.found);
    if (faults.found.length > 0) return;
    read.push({
      message: normalised(capability, input, output, examples),
      category: capability.cat ?? "",
      input,
      output,
      examples,
      digest: versionDigest({ input, output }, sha256),
    });
  });
  if (violations.length > 0) {
    const summary = violations.map(({ field, description }) => `${field}: ${description}`).join("; ");
    throw new DeputeError(ErrorReason.INVALID_REQUEST, summary, { violations });
  }
  return read;
}

class Faults {
  readonly found: FieldViolation[] = [];
  readonly #at: string;

  constructor(at: string) {
    this.#at = at;
  }

  add(field: string, description: string): void {
    this.found.push({ field: `${this.#at}.${field}`, description });
  }

  /** Parses JSON and returns the value. For malformed JSON, records the fault and returns null. */
  read(field: string, bytes: Uint8Array): JsonValue {
    const text = readJsonText(bytes);
    if (text.problem === undefined) return text.value;
    this.add(field, text.problem);
    return null;
  }

  readSchema(field: string, bytes: Uint8Array | undefined): JsonValue {
    if (bytes !== undefined && bytes.length > 0) return this.read(field, bytes);
    this.add(field, "is required");
    return null;
  }
}

function normalised(
  capability: CapabilityFull,
  input: JsonValue,
  output: JsonValue,
  examples: readonly { input: JsonValue; output: JsonValue }[],
): CapabilityFull {
  const message = create(CapabilityFullSchema, {
    id: capability.id,
    inputSchema: writeJsonText(input),
    outputSchema: writeJsonText(output),
    examples: examples.map(
      (example): Example =>
        create(ExampleSchema, {
          input: writeJsonText(example.input),
          output: writeJsonText(example.output),
        }),
    ),
  });
  if (capability.cat !== undefined) message.cat = capability.cat;
  if (capability.desc !== undefined) message.desc = capability.desc;
  if (capability.cost !== undefined) message.cost = capability.cost;
  if (capability.agentHint !== undefined) message.agentHint = capability.agentHint;
  return message;
}
