import type { JsonValue } from "@bufbuild/protobuf";
import { type Attachment, AttachmentSchema } from "@depute/contracts/cap/v1/attachment_pb";
import { canonicalJson } from "@depute/core";
import { encode } from "@depute/wire";
import type { Words } from "./message.ts";

/** Consecutive words that two texts have to share, unless the held text is shorter. */
const RUN = 8;

/** Texts of fewer words count only when they are equal, because many messages share a few words. */
const SHORT = 4;

/** Words of a message, and of a held result, that are compared; the rest is not. */
const MAX_COMPARED = 50_000;

/** Texts as their words. */
type Texts = readonly (readonly string[])[];

/**
 * Whether a message carries a result that waits for its overseer: one of its attachments, a run of its words, or all of a
 * short text. What the task's notice brought is known to the delegator, and does not count. The same content in other
 * words is not found.
 *
 * @param given what the notice said that handed over the task
 */
export function carries(said: Words, held: Words, given: Words): boolean {
  const known = new Set(given.attachments.map(identityOf));
  const kept = new Set(held.attachments.map(identityOf).filter((identity) => !known.has(identity)));
  if (said.attachments.some((attachment) => kept.has(identityOf(attachment)))) return true;
  const plain = textsOf(plainIn(said));
  const isRepeated = (text: readonly string[]) => plain.some((other) => isEqual(text, other));
  if (textsOf(plainIn(held)).some((text) => text.length > 0 && text.length < SHORT && isRepeated(text))) {
    return true;
  }
  const [saidRuns, givenRuns] = [new Runs(textsOf(allIn(said))), new Runs(textsOf(allIn(given)))];
  return textsOf(allIn(held)).some((text) => {
    if (text.length < SHORT) return false;
    const length = Math.min(RUN, text.length);
    return runsOf(text, length).some((run) => saidRuns.has(run, length) && !givenRuns.has(run, length));
  });
}

/** The runs of words in texts, by their length. */
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

/** What is written for a reader: the content, and snippets of text. */
function plainIn({ text, attachments }: Words): string[] {
  return [text, ...attachments.flatMap(({ kind }) => (kind.case === "textSnippet" ? [kind.value.text] : []))];
}

/** Every text of a message, those inside objects and results of tools too; a file is not opened. */
function allIn(words: Words): string[] {
  return [...plainIn(words), ...words.attachments.flatMap((attachment) => stringsIn(dataOf(attachment)))];
}

/** The JSON value that an attachment holds; null for one without. */
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
