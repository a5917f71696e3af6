import { create, fromJson, type JsonValue, toJson } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import {
  type Artifact,
  ArtifactSchema,
  type Message,
  MessageSchema,
  type Part,
  PartSchema,
  Role,
} from "@depute/contracts/lf/a2a/v1/a2a_pb";
import { isObject } from "@depute/core";

/** The id of the artifact that holds a task's result. */
export const RESULT_ID = "result";

/** Maximum number of artifacts of one result. */
export const MAX_ARTIFACTS = 64;
/** Maximum number of parts in a message, or in all artifacts of one result. */
export const MAX_PARTS = 1024;

/**
 * Converts parts to a JSON value. If all parts are texts, the value is one string: the texts, joined by line feeds. A
 * single data part gives its value. An empty list of parts gives null. Every other list gives `{"parts": [...]}`, with
 * the parts in their A2A form. {@link partsIn} is the inverse for this form.
 */
export function valueOfParts(parts: readonly Part[]): JsonValue {
  const [only] = parts;
  if (only === undefined) return null;
  const texts = textsOf(parts);
  if (texts.length === parts.length) return texts.join("\n");
  if (parts.length === 1 && only.content.case === "data") return toJson(ValueSchema, only.content.value);
  return { parts: parts.map((part) => toJson(PartSchema, part)) };
}

/** Returns the texts among parts. */
export function textsOf(parts: readonly Part[]): string[] {
  return parts.flatMap(({ content }) => (content.case === "text" ? [content.value] : []));
}

/** Reads a value `{"parts": [...]}` in the form of A2A; undefined for any other value. */
export function partsIn(value: JsonValue): Part[] | undefined {
  return listIn(value, "parts", MAX_PARTS, (part) => readPart(part));
}

/** Reads the parts of a value `{"message": {"parts": [...]}}` in the form of A2A; undefined for any other value. */
export function replyIn(value: JsonValue): Part[] | undefined {
  if (!isObject(value) || Object.keys(value).length !== 1 || value.message === undefined) return undefined;
  return partsIn(value.message);
}

/**
 * Returns the artifacts of a result. A value `{"artifacts": [...]}` in the form of A2A gives the artifacts in
 * the list. Every other value gives one artifact. `{"parts": [...]}` in the form of A2A, alone or in a `message`,
 * gives the parts of that artifact. A string gives a text part. Any other value gives a data part.
 */
export function resultArtifacts(output: Value): Artifact[] {
  const json = toJson(ValueSchema, output);
  const artifacts = artifactsIn(json);
  if (artifacts !== undefined) return artifacts;
  const parts = partsIn(json) ?? replyIn(json) ?? [partOf(output)];
  return [create(ArtifactSchema, { artifactId: RESULT_ID, name: RESULT_ID, parts })];
}

/** An artifact as a stream reports it. (A2A 4.2.2) */
export interface ArtifactChunk {
  readonly artifact: Artifact;
  /** Whether the parts follow the parts that the artifact already has. */
  readonly append: boolean;
  /** Whether the artifact is complete. */
  readonly lastChunk: boolean;
}

/**
 * Returns the artifacts of a preliminary result. In `{"artifacts": [...]}`, each artifact may also have the members
 * `append` and `lastChunk` of an artifact update. An artifact without these members replaces the artifact with the same
 * id.
 */
export function partialArtifacts(output: Value): ArtifactChunk[] {
  const chunks = withIds(listIn(toJson(ValueSchema, output), "artifacts", MAX_ARTIFACTS, readChunk));
  return chunks ?? resultArtifacts(output).map((artifact) => ({ artifact, append: false, lastChunk: false }));
}

/**
 * Reads a value `{"artifacts": [...]}` in the form of A2A, each with an id and parts; undefined for any other value.
 */
function artifactsIn(value: JsonValue): Artifact[] | undefined {
  const read = (element: JsonValue) => {
    const artifact = readArtifact(element);
    return artifact && { artifact };
  };
  return withIds(listIn(value, "artifacts", MAX_ARTIFACTS, read))?.map(({ artifact }) => artifact);
}

/** Returns the list if all artifacts have different ids and together at most MAX_PARTS parts; otherwise undefined. */
function withIds<T extends { readonly artifact: Artifact }>(list: T[] | undefined): T[] | undefined {
  if (list === undefined) return undefined;
  const ids = new Set(list.map(({ artifact }) => artifact.artifactId));
  const parts = list.reduce((sum, { artifact }) => sum + artifact.parts.length, 0);
  return ids.size === list.length && parts <= MAX_PARTS ? list : undefined;
}

function readChunk(json: JsonValue): ArtifactChunk | undefined {
  if (!isObject(json)) return undefined;
  const { append = false, lastChunk = false, ...rest } = json;
  if (typeof append !== "boolean" || typeof lastChunk !== "boolean") return undefined;
  const artifact = readArtifact(rest);
  return artifact && { artifact, append, lastChunk };
}

function readArtifact(json: JsonValue): Artifact | undefined {
  const artifact = fromJson(ArtifactSchema, json);
  const { artifactId, parts } = artifact;
  const isComplete = artifactId !== "" && parts.length > 0;
  return isComplete && parts.every(({ content }) => content.case !== undefined) ? artifact : undefined;
}

function readPart(json: JsonValue): Part | undefined {
  const part = fromJson(PartSchema, json);
  return part.content.case === undefined ? undefined : part;
}

/**
 * Reads the elements of the list in an object's only member. Returns undefined if the member has another name, the list
 * is empty or has more than `max` elements, or an element cannot be read.
 */
function listIn<T>(
  value: JsonValue,
  name: string,
  max: number,
  read: (element: JsonValue) => T | undefined,
): T[] | undefined {
  if (!isObject(value) || Object.keys(value).length !== 1) return undefined;
  const list = value[name];
  if (!Array.isArray(list) || list.length === 0 || list.length > max) return undefined;
  try {
    const elements = list.flatMap((element: JsonValue) => read(element) ?? []);
    return elements.length === list.length ? elements : undefined;
  } catch {
    // The object is not a list in A2A's form. It only has a member with the same name.
    return undefined;
  }
}

function partOf(value: Value): Part {
  if (value.kind.case === "stringValue") {
    const { value: text } = value.kind;
    return create(PartSchema, { content: { case: "text", value: text }, mediaType: "text/plain" });
  }
  return create(PartSchema, { content: { case: "data", value }, mediaType: "application/json" });
}

/** The task and the context to which an agent's message belongs. */
export interface Place {
  readonly taskId: string;
  readonly contextId: string;
}

/**
 * Creates a message from the agent.
 *
 * @param sequence the sequence of the event with the message. The message's id contains this number, so the message has
 * the same id in every stream and answer
 */
export function agentMessage(
  { taskId, contextId }: Place,
  sequence: bigint,
  text: string,
  details?: Value,
): Message {
  const parts = [
    create(PartSchema, { content: { case: "text", value: text }, mediaType: "text/plain" }),
    ...(details === undefined ? [] : [partOf(details)]),
  ];
  return create(MessageSchema, {
    messageId: `${taskId}-${sequence}`,
    taskId,
    contextId,
    role: Role.AGENT,
    parts,
  });
}
