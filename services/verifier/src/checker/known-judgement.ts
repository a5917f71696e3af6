import { hash } from "node:crypto";
import { type QuickSchema, readQuickSchema } from "../rules/quick-schema.ts";
import type { Judgement } from "../rules/verify-output.ts";

/** A judgement in the forms in which the checker needs it, made once for all outputs. */
export interface KnownJudgement {
  /** JSON of the judgement; the same one always has the same text, so that what was compiled is found again. */
  readonly text: string;
  /** Digest of the text. */
  readonly key: string;
  /** The schema that it consists of, if outputs may be held to it where they arrive. */
  readonly quick: QuickSchema | undefined;
}

export function knownJudgement(judgement: Judgement): KnownJudgement {
  const { verification, outputSchema } = judgement;
  const text = JSON.stringify({ verification, outputSchema });
  const quick =
    verification.method === "schema_match" ? readQuickSchema(verification.schema ?? outputSchema) : undefined;
  return { text, key: keyOf(text), quick };
}

/** By what the pool knows again what it runs. */
export function keyOf(text: string): string {
  return hash("sha256", text, "base64url");
}
