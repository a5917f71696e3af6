/**
 * Control characters of terminals, and characters that change the order of the text around them: C0 (without tab and
 * line feed), DEL, C1, bidirectional marks, zero-width characters, line and paragraph separators, the byte order mark,
 * interlinear annotations, tags, and unpaired surrogates.
 */
const UNSAFE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is searched for
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]|[\ud800-\udfff]/gu;

/** Replaces each character of UNSAFE by `\uXXXX`. Keeps line feeds and tabs. */
export function escapeControls(text: string): string {
  return text.replace(UNSAFE, (character) =>
    [...Array(character.length).keys()]
      .map((index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, "0")}`)
      .join(""),
  );
}

/** Escapes line breaks, tabs and control characters, so that the text needs only one line. */
export function oneLine(text: string): string {
  return escapeControls(text.replaceAll("\n", "\\n").replaceAll("\t", "\\t").replaceAll("\r", "\\r"));
}
