import type { JsonValue } from "@bufbuild/protobuf";
import { type Attachment, AttachmentSchema } from "@depute/contracts/cap/v1/attachment_pb";
import { canonicalJson } from "@depute/core";
import { encode } from "@depute/wire";
import type { Words } from "./message.ts";

/**
 * Number of consecutive words of a held result that a message must share to count as containing the result. A shorter
 * result must occur in the message as a whole.
 */
const RUN = 8;

/**
 * The minimum number of words of a text that may count as part of a longer text. A shorter text of a held result counts
 * only if it is a whole text of the message. Otherwise a common short phrase would count as the result.
 */
const SHORT = 4;

/** The comparison uses at most this number of words of a message, and of a held result. It ignores all later words. */
const MAX_COMPARED = 50_000;

/** Texts, each as a list of its words. */
type Texts = readonly (readonly string[])[];

/**
 * Whether a message contains a held result: one of the result's attachments, or a run of the result's words. A short
 * result must occur as a whole. Content of the task's notice does not count, because the delegator already has the
 * notice. The comparison does not detect a paraphrase.
 *
 * @param context the text and attachments of the task's notice
 */
export function carries(message: Words, result: Words, context: Words): boolean {
  const givenIdentities = new Set(context.attachments.map(identityOf));
  const ownIdentities = new Set(
    result.attachments.map(identityOf).filter((identity) => !givenIdentities.has(identity)),
  );
  if (message.attachments.some((attachment) => ownIdentities.has(identityOf(attachment)))) return true;
  const plain = textsOf(plainIn(message));
  const isRepeated = (text: readonly string[]) => plain.some((other) => isEqual(text, other));
  if (textsOf(plainIn(result)).some((text) => text.length > 0 && text.length < SHORT && isRepeated(text))) {
    return true;
  }
  const [saidRuns, givenRuns] = [new Runs(textsOf(allIn(message))), new Runs(textsOf(allIn(context)))];
  return textsOf(allIn(result)).some((text) => {
    if (text.length < SHORT) return false;
    const length = Math.min(RUN, text.length);
    return runsOf(text, length).some((run) => saidRuns.has(run, length) && !givenRuns.has(run, length));
  });
}

/** The runs of consecutive words in texts, by the number of words. */
class Runs {
  readonly #texts: Texts;
  readonly #byLength = new Map<number, ReadonlySet<string>>();

  constructor(texts: Texts) {
    this.#texts = texts;
  }

  has(run: string, length: number): boolean {
    const runs = this.#byLength.get(length) ?? new Set(this.#texts.flatMap((text) => runsOf(text, length)));
    this.#byLength.set(length, runs);
    return runs.has(run);
  }
}

function runsOf(text: readonly string[], length: number): string[] {
  const count = Math.max(0, text.length - length + 1);
  return Array.from({ length: count }, (_, at) => text.slice(at, at + length).join(" "));
}

function isEqual(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((word, at) => word === other[at]);
}

function textsOf(texts: readonly string[]): Texts {
  let room = MAX_COMPARED;
  return texts.map((text) => {
    const words = (text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).slice(0, room);
    room -= words.length;
    return words;
  });
}

/** Returns the text of a message and the texts of its text snippets. */
function plainIn({ text, attachments }: Words): string[] {
  return [text, ...attachments.flatMap(({ kind }) => (kind.case === "textSnippet" ? [kind.value.text] : []))];
}

/** Returns all texts of a message, including those inside objects and tool results. Reads no files. */
function allIn(words: Words): string[] {
  return [...plainIn(words), ...words.attachments.flatMap((attachment) => stringsIn(dataOf(attachment)))];
}

/** Returns the JSON value of an attachment; null if there is none. */
function dataOf(attachment: Attachment): JsonValue {
  const document = encode(AttachmentSchema, attachment);
  if (typeof document !== "object" || document === null || Array.isArray(document)) return null;
  return document.object ?? document.result ?? null;
}

function stringsIn(value: JsonValue): string[] {
  if (typeof value === "string") return [value];
  if (typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap((one) => stringsIn(one as JsonValue));
}

function identityOf(attachment: Attachment): string {
  return canonicalJson(encode(AttachmentSchema, attachment));
}
