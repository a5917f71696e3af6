import { hash } from "node:crypto";
import { type QuickSchema, readQuickSchema } from "@depute/wire/json-schema";
import type { OutputRule } from "../rules/verify-output.ts";

/** An output rule in all forms that the checker needs. The forms are prepared once, and used for all outputs. */
export interface PreparedRule {
  /** JSON of the rule. Equal rules have equal text, so the caches compile them only once. */
  readonly text: string;
  /** Digest of `text`, which is the key in caches. */
  readonly key: string;
  /** The rule's schema, if the whole rule is one schema that the event loop can validate; otherwise undefined. */
  readonly quick: QuickSchema | undefined;
}

export function prepareRule(outputRule: OutputRule): PreparedRule {
  const { verification, outputSchema } = outputRule;
  const text = JSON.stringify({ verification, outputSchema });
  const quick =
    verification.method === "schema_match" ? readQuickSchema(verification.schema ?? outputSchema) : undefined;
  return { text, key: keyOf(text), quick };
}

/** Returns the cache key of a schema or rule, which is its digest. */
export function keyOf(text: string): string {
  return hash("sha256", text, "base64url");
}
