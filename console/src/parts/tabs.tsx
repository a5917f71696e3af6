import { type KeyboardEvent, type ReactNode, useId } from "react";
import { goTo, usePlace } from "../rpc/place.ts";

interface TabsViewProps {
  readonly label: string;
  readonly tabs: readonly {
    readonly id: string;
    readonly title: string;
    readonly content: () => ReactNode;
  }[];
}

/**
 * Shows the tabs of a page. The page's address selects the open tab, and only that tab's content is rendered. The keys
 * are those of the ARIA Authoring Practices Guide, "Tabs with Automatic Activation".
 */
export function TabsView({ label, tabs }: TabsViewProps) {
  const prefix = useId();
  const { page, id: shownTab, query } = usePlace();
  const first = tabs[0]?.id ?? "";
  const selected = tabs.find(({ id }) => id === query.tab) ?? tabs[0];
  const select = (tab: string) =>
    goTo({ page, id: shownTab, query: { ...query, tab: tab === first ? "" : tab } }, "replace");
  const move = (event: KeyboardEvent<HTMLButtonElement>, from: number) => {
    const isPlain = !(event.altKey || event.ctrlKey || event.metaKey || event.shiftKey);
    const to = isPlain ? indexAfter(event.key, from, tabs.length) : undefined;
    const next = to === undefined ? undefined : tabs[to];
    if (to === undefined || next === undefined) return;
    event.preventDefault();
    event.currentTarget.parentElement?.querySelectorAll<HTMLElement>('[role="tab"]')[to]?.focus();
    select(next.id);
  };
  return (
    <div className="tabs">
      <div role="tablist" aria-label={label} className="tab-list">
        {tabs.map(({ id, title }, index) => (
          <button
            key={id}
            id={`${prefix}${id}`}
            type="button"
            role="tab"
            className="tab"
            aria-selected={id === selected?.id}
            aria-controls={id === selected?.id ? `${prefix}panel` : undefined}
            tabIndex={id === selected?.id ? 0 : -1}
            onClick={() => select(id)}
            onKeyDown={(event) => move(event, index)}
          >
            {title}
          </button>
        ))}
      </div>
      {selected !== undefined && (
        <div
          key={selected.id}
          id={`${prefix}panel`}
          role="tabpanel"
          aria-labelledby={`${prefix}${selected.id}`}
          // biome-ignore lint/a11y/noNoninteractiveTabindex: a panel may lack controls and must be reachable, also to scroll it
          tabIndex={0}
        >
          {selected.content()}
        </div>
      )}
    </div>
  );
}

/** Returns the index of the tab that a key selects, or `undefined` for other keys. */
function indexAfter(key: string, from: number, count: number): number | undefined {
  switch (key) {
    case "ArrowRight":
    case "ArrowDown":
      return (from + 1) % count;
    case "ArrowLeft":
    case "ArrowUp":
      return (from + count - 1) % count;
    case "Home":
      return 0;
    case "End":
      return count - 1;
    default:
      return undefined;
  }
}
