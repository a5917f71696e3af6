import type { VectorCase } from "../../../tools/vectors/shared.ts";

/** The platform's answer to a vector's case, with the members in which the case states the right answer. */
export type Answer = Pick<VectorCase, "expected" | "refusal" | "fault">;

// biome-ignore lint/suspicious/noExplicitAny: each operation reads the input of its own cases
export type Operation = (input: any, vector: VectorCase) => Answer;

/**
 * The operations of a vector file. Each operation uses the platform's functions, never the code that generated the
 * file.
 */
export type Operations = Readonly<Record<string, Operation>>;

export function hexBytes(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text, "hex"));
}

export function hexText(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex");
}

export function base64url(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64url");
}
