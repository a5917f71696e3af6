import { create, type DescField, type DescMessage, type Message } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import {
  type ContextEnvelope,
  ContextEnvelopeSchema,
  ContextPermissionsSchema,
  type ContextRequest,
  ContextRequestSchema,
  type TokenBudget,
  TokenBudgetSchema,
} from "@depute/contracts/nekte/v1/nekte_pb";
import { DEFAULT_TOKENS, detailLevelOf } from "@depute/core";

type Fields = Record<string, unknown>;

/**
 * Prepares a request of the published proto, which has no field presence. Some clients therefore send zeros for absent
 * members. So this function treats a zero as an absent member.
 */
export function prepareRequest(schema: DescMessage, request: Message): Message {
  const prepared = withoutZeros(schema, request as unknown as Fields) as unknown as Message;
  if (schema.typeName !== ContextRequestSchema.typeName) return prepared;
  const { action, envelope } = prepared as ContextRequest;
  if (envelope === undefined || (action !== "request" && action !== "revoke")) return prepared;
  // An envelope that only names a context may omit `ttl_s`, but the contract requires a value above 0.
  return create(ContextRequestSchema, {
    ...(prepared as ContextRequest),
    envelope: { ...envelope, ttlS: envelope.ttlS || 1 },
  });
}

function withoutZeros(schema: DescMessage, message: Fields): Fields {
  const completed: Fields = { ...message };
  for (const field of schema.fields) {
    if (field.oneof !== undefined) continue;
    const value = message[field.localName];
    if (value === undefined) continue;
    if (field.fieldKind === "message") {
      const inner = withoutZeros(field.message, value as Fields);
      if (field.message === TokenBudgetSchema && isZero(inner)) delete completed[field.localName];
      else completed[field.localName] = complete(field.message, inner);
    } else if (isOptional(field) && isZero(value)) delete completed[field.localName];
  }
  return completed;
}

function isOptional(field: DescField): boolean {
  return field.fieldKind === "scalar" && field.presence === FeatureSet_FieldPresence.EXPLICIT;
}

/**
 * Whether a value is proto3's default for an absent field. A message counts as a default if all its members have their
 * defaults.
 */
function isZero(value: unknown): boolean {
  if (value instanceof Uint8Array) return value.length === 0;
  if (typeof value === "object" && value !== null) {
    return Object.entries(value).every(([name, member]) => name.startsWith("$") || isZero(member));
  }
  return value === undefined || value === "" || value === 0 || value === 0n || value === false;
}

/** Adds default values for the members that the contract requires. */
function complete(schema: DescMessage, message: Fields): Fields {
  switch (schema) {
    case TokenBudgetSchema: {
      const { maxTokens, detailLevel } = message as unknown as TokenBudget;
      const level = detailLevelOf(detailLevel);
      return { ...message, detailLevel: detailLevel || level, maxTokens: maxTokens || DEFAULT_TOKENS[level] };
    }
    case ContextEnvelopeSchema: {
      const { data, permissions } = message as unknown as ContextEnvelope;
      return {
        ...message,
        data: data.length === 0 ? JSON_NULL : data,
        permissions: permissions ?? create(ContextPermissionsSchema),
      };
    }
    default:
      return message;
  }
}

const JSON_NULL = new TextEncoder().encode("null");
