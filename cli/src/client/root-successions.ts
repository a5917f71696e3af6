import { encodeBase64Url, formatTime, parseTime } from "@depute/core";
import type { RootSuccession } from "@depute/dct/transparency";
import { CommandError } from "../exit-codes.ts";

/**
 * A statement of succession in ProtoJSON: the member `succession` of a key in the output of `depute keys roots -o
 * json`.
 */
interface SuccessionJson {
  readonly earlier?: unknown;
  readonly successor?: unknown;
  readonly createTime?: unknown;
  readonly earlierSignature?: unknown;
  readonly successorSignature?: unknown;
}

/**
 * Reads the statements of succession in the output of `depute keys roots -o json`. Checks no signature.
 *
 * @throws CommandError for another text
 */
export function readSuccessions(text: string): RootSuccession[] {
  let keys: unknown;
  try {
    keys = (JSON.parse(text) as { keys?: unknown } | null)?.keys;
  } catch {
    // The message below says what is needed.
  }
  if (!Array.isArray(keys)) {
    throw new CommandError("--succession is not the output of `depute keys roots -o json`");
  }
  return (keys as { succession?: SuccessionJson }[]).flatMap(({ succession }) =>
    succession === undefined ? [] : statementOf(succession),
  );
}

function statementOf({ earlier, successor, createTime, ...signatures }: SuccessionJson): RootSuccession {
  const time = parseTime(String(createTime));
  return {
    ...{
      from: String(earlier),
      to: String(successor),
      createdAt: time === undefined ? "" : formatTime(time),
    },
    fromSignature: signatureOf(signatures.earlierSignature),
    toSignature: signatureOf(signatures.successorSignature),
  };
}

/** ProtoJSON has bytes in base64; a statement has them in base64url. */
function signatureOf(value: unknown): string {
  return encodeBase64Url(Buffer.from(String(value), "base64"));
}
