import type { JsonValue } from "@bufbuild/protobuf";
import { escapeControls } from "./safe-text.ts";

/**
 * Returns a value as JSON. Control characters are escaped, so that a terminal does not obey them. The escapes do not
 * change the value.
 */
export function jsonText(value: unknown, indent: number): string {
  return escapeControls(JSON.stringify(value, null, indent));
}

/**
 * Returns a value as YAML 1.2. Strings with control characters are quoted and escaped, so that a terminal does not obey
 * them.
 */
export async function yamlText(value: JsonValue): Promise<string> {
  const { Document, visit } = await import("yaml");
  const document = new Document(value, { aliasDuplicateObjects: false });
  visit(document, {
    Scalar(_, node) {
      if (typeof node.value === "string" && escapeControls(node.value) !== node.value)
        node.type = "QUOTE_DOUBLE";
    },
  });
  return escapeControls(document.toString({ lineWidth: 0 }));
}
