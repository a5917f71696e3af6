/** Maximum number of characters of a text that a page shows before the reader asks for the rest. */
export const MAX_SHOWN = 20_000;

/** Characters that reorder, hide or break the text around them. Tab and newline are allowed. */
const UNSEEN =
  /[[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\ufff9-\ufffb]--[\t\n\p{Variation_Selector}]]/gv;

/**
 * Makes a text from an untrusted party safe to display. Invisible characters, and characters that reorder the
 * text, are replaced by their code points, e.g. `‹U+202E›`.
 */
export function visibleText(text: string): string {
  return text.replace(
    UNSEEN,
    (char) => `‹U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}›`,
  );
}

/** Returns the part of a text that is shown first, and the number of characters that remain. */
export function shownPart(text: string, max = MAX_SHOWN): { readonly text: string; readonly more: number } {
  if (text.length <= max) return { text: visibleText(text), more: 0 };
  // The cut must not separate the two halves of a surrogate pair.
  const end = isHigh(text.charCodeAt(max - 1)) ? max - 1 : max;
  return { text: visibleText(text.slice(0, end)), more: text.length - end };
}

/** Returns a text on one line, for the cells of a table. Cuts a long text. */
export function lineOf(text: string, max = 200): string {
  const line = visibleText(text.slice(0, max).replace(/\s+/g, " ").trim());
  return text.length > max ? `${line}…` : line;
}

/** Returns the beginning of a long id or key, for the cells of a table. */
export function shortId(id: string, max = 13): string {
  return lineOf(id, max);
}

function isHigh(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}
