import { create, type JsonValue } from "@bufbuild/protobuf";
import { AttachmentSchema, type ToolCallResult } from "@depute/contracts/cap/v1/attachment_pb";
import type { AgentManifest } from "@depute/contracts/cap/v1/manifest_pb";
import { type CapMessage, CapMessageSchema } from "@depute/contracts/cap/v1/message_pb";
import { canonicalJson, DeputeError, ErrorReason, invalid } from "@depute/core";
import { encode, WireEncodeError } from "@depute/wire";
import { MAX_VALUE_DEPTH } from "../../core/rules/index.ts";
import { kindOf, type Words, wordsOf } from "./message.ts";

/** Bytes that a message may have as JSON. */
export const MAX_MESSAGE_BYTES = 1024 * 1024;

/** Bytes that one attachment may have as JSON. */
export const MAX_ATTACHMENT_BYTES = 512 * 1024;

/** Characters that a message may say in words. */
export const MAX_WORDS = 16_384;

/** Levels of a message around what an attachment holds: message, list, attachment. */
const LEVELS_AROUND = 3;

const utf8 = new TextEncoder();

/**
 * Refuses a message that is larger or deeper than allowed, or that its document could not say. What it holds is JSON and
 * stays so: nothing is unpickled, and no file is opened. (CAP "Base Message")
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

/** A message as CAP writes it; what came as protobuf may hold what no document does. */
function documentOf(message: CapMessage): JsonValue {
  try {
    return encode(CapMessageSchema, message);
  } catch (error) {
    if (error instanceof WireEncodeError) throw invalid("message", error.message);
    throw error;
  }
}

/** The results of tools among the attachments. */
export function toolResultsOf({ attachments }: Pick<Words, "attachments">): ToolCallResult[] {
  return attachments.flatMap(({ kind }) => (kind.case === "toolCallResult" ? [kind.value] : []));
}

/** What a result of a tool is told by when it is handed on: canonical JSON of all that it says. (RFC 8785) */
export function identityOf(value: ToolCallResult): string {
  const attachment = create(AttachmentSchema, { kind: { case: "toolCallResult", value } });
  return canonicalJson(encode(AttachmentSchema, attachment));
}

/** Whether an agent may use this tool, so that a result of it can be its own. (CAP "MCP Integration") */
export function isBound(manifest: AgentManifest | undefined, { serverId, tool }: ToolCallResult): boolean {
  const bindings = manifest?.mcpBindings ?? [];
  return bindings.some((binding) => binding.serverId === serverId && binding.allowedTools.includes(tool));
}

/** The refusal of a result of a tool that is not the sender's, and that nobody handed to it. */
export function foreignResult({ serverId, tool }: ToolCallResult, sender: string): DeputeError {
  return new DeputeError(
    ErrorReason.MESSAGE_NOT_ALLOWED,
    `${sender} is not bound to ${serverId}/${tool}, and no such result was seen in this lineage`,
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
  const what = limit.replace(".", ", ");
  return new DeputeError(ErrorReason.LIMIT_EXCEEDED, `more than ${max}: ${what}`, {
    metadata: { limit, max: String(max) },
    violations: [{ field: "message", description: `more than ${max} (${what})` }],
  });
}
