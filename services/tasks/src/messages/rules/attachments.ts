import { create, type JsonValue } from "@bufbuild/protobuf";
import { AttachmentSchema, type ToolCallResult } from "@depute/contracts/cap/v1/attachment_pb";
import type { AgentManifest } from "@depute/contracts/cap/v1/manifest_pb";
import { type CapMessage, CapMessageSchema } from "@depute/contracts/cap/v1/message_pb";
import { canonicalJson, DeputeError, ErrorReason, invalid } from "@depute/core";
import { encode, WireEncodeError } from "@depute/wire";
import { MAX_VALUE_DEPTH } from "../../core/rules/index.ts";
import { kindOf, type Words, wordsOf } from "./message.ts";

/** Maximum size of a message as JSON, in bytes. */
export const MAX_MESSAGE_BYTES = 1024 * 1024;

/** Maximum size of one attachment as JSON, in bytes. */
export const MAX_ATTACHMENT_BYTES = 512 * 1024;

/** Maximum length of a message's text in characters. */
export const MAX_WORDS = 16_384;

/**
 * Nesting levels of a CAP document above an attachment's content: the message, the list of attachments, and the
 * attachment.
 */
const LEVELS_AROUND = 3;

const utf8 = new TextEncoder();

/**
 * Requires that a message can be written as a CAP document, within the limits of size and depth. The platform treats
 * attached content only as JSON: it unpickles no Python object and reads no file. (CAP "Base Message")
 *
 * @throws DeputeError LIMIT_EXCEEDED, INVALID_REQUEST
 */
export function checkSize(message: CapMessage): void {
  const document = documentOf(message);
  const { text, attachments } = wordsOf(kindOf(message));
  if (Array.from(text).length > MAX_WORDS) throw exceeded("message.length", MAX_WORDS);
  checkDepth(document, MAX_VALUE_DEPTH + LEVELS_AROUND);
  for (const attachment of attachments) {
    if (bytesOf(encode(AttachmentSchema, attachment)) > MAX_ATTACHMENT_BYTES) {
      throw exceeded("attachment.bytes", MAX_ATTACHMENT_BYTES);
    }
  }
  if (bytesOf(document) > MAX_MESSAGE_BYTES) throw exceeded("message.bytes", MAX_MESSAGE_BYTES);
}

/**
 * Converts a message to a CAP document.
 *
 * @throws DeputeError INVALID_REQUEST for protobuf content that JSON cannot express
 */
function documentOf(message: CapMessage): JsonValue {
  try {
    return encode(CapMessageSchema, message);
  } catch (error) {
    if (error instanceof WireEncodeError) throw invalid("message", error.message);
    throw error;
  }
}

/** Returns the tool results among the attachments. */
export function toolResultsOf({ attachments }: Pick<Words, "attachments">): ToolCallResult[] {
  return attachments.flatMap(({ kind }) => (kind.case === "toolCallResult" ? [kind.value] : []));
}

/** Returns the text by which the platform compares tool results: the canonical JSON. (RFC 8785) */
export function identityOf(value: ToolCallResult): string {
  const attachment = create(AttachmentSchema, { kind: { case: "toolCallResult", value } });
  return canonicalJson(encode(AttachmentSchema, attachment));
}

/**
 * Whether an agent's manifest binds a tool. Only an agent with this binding can itself produce results of the tool.
 * (CAP "MCP Integration")
 */
export function isBound(manifest: AgentManifest | undefined, { serverId, tool }: ToolCallResult): boolean {
  const bindings = manifest?.mcpBindings ?? [];
  return bindings.some((binding) => binding.serverId === serverId && binding.allowedTools.includes(tool));
}

/** Returns the error for a tool result that the sender neither produced nor received. */
export function foreignResult({ serverId, tool }: ToolCallResult, sender: string): DeputeError {
  return new DeputeError(
    ErrorReason.MESSAGE_NOT_ALLOWED,
    `the manifest of ${sender} does not bind ${serverId}/${tool}, and this lineage does not contain the result`,
    { metadata: { rule: "tool_result", server: serverId, tool } },
  );
}

function bytesOf(document: JsonValue): number {
  return utf8.encode(JSON.stringify(document)).length;
}

function checkDepth(document: JsonValue, max: number): void {
  let level: JsonValue[] = [document];
  for (let depth = 0; level.length > 0; depth++) {
    const containers = level.filter((value) => typeof value === "object" && value !== null);
    if (containers.length > 0 && depth >= max) throw exceeded("message.depth", max);
    level = containers.flatMap((value) => Object.values(value as object) as JsonValue[]);
  }
}

function exceeded(limit: string, max: number): DeputeError {
  const limitText = limit.replace(".", ", ");
  return new DeputeError(ErrorReason.LIMIT_EXCEEDED, `more than ${max}: ${limitText}`, {
    metadata: { limit, max: String(max) },
    violations: [{ field: "message", description: `more than ${max} (${limitText})` }],
  });
}
