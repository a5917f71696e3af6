import { create, type JsonValue, toJson } from "@bufbuild/protobuf";
import { type CapabilityFull, CapabilityFullSchema } from "@depute/contracts/nekte/v1/nekte_pb";

/** Creates a capability message. Takes JSON members as values instead of bytes. */
export function capability(
  id: string,
  parts: {
    cat?: string;
    desc?: string;
    input?: JsonValue;
    output?: JsonValue;
    examples?: { in: JsonValue; out: JsonValue }[];
  } = {},
): CapabilityFull {
  return create(CapabilityFullSchema, {
    id,
    cat: parts.cat ?? "nlp",
    desc: parts.desc ?? "",
    cost: { avgMs: 200, avgTokens: 50 },
    inputSchema: json(parts.input ?? { type: "object" }),
    outputSchema: json(parts.output ?? { type: "object" }),
    examples: (parts.examples ?? []).map((example) => ({
      input: json(example.in),
      output: json(example.out),
    })),
  });
}

/**
 * Returns the JSON form of a capability, for comparisons. Byte fields from different clients may be a Buffer or a
 * Uint8Array, which are never equal.
 */
export function asJson(full: CapabilityFull | undefined): JsonValue {
  return full === undefined ? null : toJson(CapabilityFullSchema, full);
}

export function json(value: JsonValue): Uint8Array<ArrayBuffer> {
  return bytes(JSON.stringify(value));
}

export function bytes(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}
