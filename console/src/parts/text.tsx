import { useState } from "react";
import { lineOf, MAX_SHOWN, shownPart, visibleText } from "../rules/text.ts";

/**
 * Shows a text from an untrusted party, at most its first MAX_SHOWN characters. The browser does not interpret the text
 * as markup, and its writing direction does not affect the text around it.
 */
export function Text({ value }: { readonly value: string }) {
  return <bdi>{shownPart(value).text}</bdi>;
}

/** Shows a text from an untrusted party on one line. A long text is cut at its end. */
export function Line({ value, max }: { readonly value: string; readonly max?: number }) {
  return (
    <bdi className="line" title={visibleText(value.slice(0, 500))}>
      {lineOf(value, max)}
    </bdi>
  );
}

/** Shows the beginning of an id or a key. */
export function Id({ value, max = 13 }: { readonly value: string; readonly max?: number }) {
  return (
    <code className="id" title={visibleText(value.slice(0, 500))}>
      <bdi>{lineOf(value, max)}</bdi>
    </code>
  );
}

/**
 * Shows a whole document from an untrusted party. Of a long document, shows the beginning until the user asks for more.
 */
export function Block({ value, label }: { readonly value: string; readonly label: string }) {
  const [max, setMax] = useState(MAX_SHOWN);
  const { text, more } = shownPart(value, max);
  return (
    <div className="block">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls has to be reachable by keyboard */}
      <section tabIndex={0} aria-label={`${label}, text`}>
        <pre>
          <bdi>{text}</bdi>
        </pre>
      </section>
      {more > 0 && (
        <button type="button" className="button small" onClick={() => setMax(max + 10 * MAX_SHOWN)}>
          Show more ({more.toLocaleString("en")} characters)
        </button>
      )}
    </div>
  );
}
