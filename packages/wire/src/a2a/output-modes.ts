import { create, fromJson, toJsonString } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { type Part, PartSchema } from "@depute/contracts/lf/a2a/v1/a2a_pb";

const TEXT = "text/plain";
const JSON_TYPE = "application/json";

/**
 * Returns an artifact or a message in the media types that a client accepts. For a client that accepts only text,
 * data becomes JSON text. For a client that accepts only JSON, text becomes a JSON string. Leaves out all other
 * parts in media types that the client does not accept. If no part would remain, returns all parts unchanged. (A2A
 * 3.2.2, `accepted_output_modes`)
 *
 * @param modes media types, also as ranges such as `text/*`; an empty list accepts all
 */
export function inModes<T extends { readonly parts: Part[] }>(content: T, modes: readonly string[]): T {
  if (modes.length === 0) return content;
  const parts = content.parts.flatMap((part) => partInModes(part, modes) ?? []);
  return parts.length === 0 ? content : { ...content, parts };
}

function partInModes(part: Part, modes: readonly string[]): Part | undefined {
  const { content } = part;
  if (accepts(modes, typeOf(part))) return part;
  if (content.case === "data" && accepts(modes, TEXT)) {
    const value = toJsonString(ValueSchema, content.value);
    return { ...part, content: { case: "text", value }, mediaType: TEXT };
  }
  if (content.case === "text" && accepts(modes, JSON_TYPE)) {
    const value = fromJson(ValueSchema, content.value);
    return create(PartSchema, { ...part, content: { case: "data", value }, mediaType: JSON_TYPE });
  }
  return undefined;
}

/** Returns the media type of a part. If the part states none, its content determines the type. */
function typeOf({ mediaType, content }: Part): string {
  if (mediaType !== "") return mediaType;
  if (content.case === "text") return TEXT;
  return content.case === "data" ? JSON_TYPE : "application/octet-stream";
}

/** Whether one of the modes covers a media type. Parameters, such as a charset, are ignored. */
function accepts(modes: readonly string[], mediaType: string): boolean {
  const [type, subtype] = bare(mediaType).split("/");
  return modes
    .map(bare)
    .some((mode) => mode === "*/*" || mode === `${type}/*` || mode === `${type}/${subtype}`);
}

function bare(mediaType: string): string {
  return mediaType.split(";", 1)[0]?.trim().toLowerCase() ?? "";
}
