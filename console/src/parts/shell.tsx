import { type ReactNode, useEffect, useRef, useState } from "react";
import type { Credentials } from "../rpc/credentials.ts";
import { hashOf, PAGES, type PageName, type Place } from "../rules/route.ts";
import { lineOf } from "../rules/text.ts";
import { Id } from "./text.tsx";
import { applyTheme, readTheme, type Theme } from "./theme.ts";

/** The title of each page. */
export const TITLES: Readonly<Record<PageName, string>> = {
  overview: "Overview",
  tasks: "Tasks",
  agents: "Agents",
  tokens: "Tokens",
  reviews: "Reviews",
  sessions: "Sessions",
  executions: "Executions",
  log: "Transparency log",
};

interface ShellProps {
  readonly place: Place;
  /** The platform's principal; empty until the console has read it. */
  readonly platform: string;
  readonly signedIn: Credentials["kind"];
  readonly signOut: () => void;
  readonly children: ReactNode;
}

/** The frame of every page: the list of pages, the choice of the theme, and the sign-out. */
export function Shell({ place, platform, signedIn, signOut, children }: ShellProps) {
  const [isOpen, setOpen] = useState(false);
  const main = useRef<HTMLElement>(null);
  const title = TITLES[place.page];
  // biome-ignore lint/correctness/useExhaustiveDependencies: another place closes the list and moves the focus
  useEffect(() => {
    document.title = `${place.id === "" ? title : `${title}: ${lineOf(place.id, 40)}`} · Depute`;
    setOpen(false);
  }, [place.page, place.id]);
  return (
    <div className="shell">
      <button type="button" className="button skip" onClick={() => main.current?.focus()}>
        Skip to the content
      </button>
      <header className="side">
        <div className="brand">
          <span className="brand-mark" aria-hidden="true">
            D
          </span>
          <span>Depute</span>
          <button
            type="button"
            className="button menu"
            aria-expanded={isOpen}
            aria-controls="pages"
            onClick={() => setOpen(!isOpen)}
          >
            Menu
          </button>
        </div>
        <nav id="pages" aria-label="Pages" className={isOpen ? "pages open" : "pages"}>
          {PAGES.map((page) => (
            <a key={page} href={hashOf({ page })} aria-current={page === place.page ? "page" : undefined}>
              {TITLES[page]}
            </a>
          ))}
          <div className="side-foot">
            <ThemeChoice />
            {platform !== "" && (
              <p className="quiet small-text">
                Platform <Id value={platform} />
              </p>
            )}
            {signedIn === "none" ? (
              <p className="quiet small-text">No credential (open loopback)</p>
            ) : (
              <button type="button" className="button small" onClick={signOut}>
                Sign out
              </button>
            )}
          </div>
        </nav>
      </header>
      <main ref={main} id="main" tabIndex={-1} className="main">
        {children}
      </main>
    </div>
  );
}

function ThemeChoice() {
  const [theme, setTheme] = useState(readTheme);
  return (
    <label className="field inline">
      Theme
      <select
        value={theme}
        onChange={(event) => {
          const chosen = event.target.value as Theme;
          applyTheme(chosen);
          setTheme(chosen);
        }}
      >
        <option value="system">System</option>
        <option value="light">Light</option>
        <option value="dark">Dark</option>
      </select>
    </label>
  );
}
