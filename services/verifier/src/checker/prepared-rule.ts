import { hash } from "node:crypto";
import { type QuickSchema, readQuickSchema } from "@depute/wire/json-schema";
import type { OutputRule } from "../rules/verify-output.ts";

/** An output rule in the forms that the checker needs, prepared once for all outputs. */
export interface PreparedRule {
  /** JSON of the rule. Equal rules have equal text, so they share one compiled rule in the cache. */
  readonly text: string;
  /** Digest of `text`, the key in caches. */
  readonly key: string;
  /** The rule's schema, if the rule is a single schema that the event loop can validate. */
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
