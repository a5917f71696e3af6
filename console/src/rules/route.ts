/** The pages of the console. */
export const PAGES = [
  "overview",
  "tasks",
  "agents",
  "tokens",
  "reviews",
  "sessions",
  "executions",
  "log",
] as const;

export type PageName = (typeof PAGES)[number];

/**
 * The page, object and filters that the browser's address names, as in `#/tasks/ID?status=3`. The address has them in
 * its fragment, which a browser never sends to a server.
 */
export interface Place {
  readonly page: PageName;
  /** The id of the object that the page shows; empty if the page shows no single object. */
  readonly id: string;
  readonly query: Readonly<Record<string, string>>;
}

const HOME: Place = { page: "overview", id: "", query: {} };

/** Returns the place that the fragment of an address names. For an unknown page, returns the overview. */
export function placeOf(hash: string): Place {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [page = "", id = ""] = path.split("/", 2);
  if (!isPage(page)) return HOME;
  return { page, id: decoded(id), query: Object.fromEntries(new URLSearchParams(query)) };
}

/** Returns the fragment for a place. Omits empty filters. */
export function hashOf({ page, id = "", query = {} }: Partial<Place> & Pick<Place, "page">): string {
  const entries = Object.entries(query).filter(([, value]) => value !== "");
  const text = new URLSearchParams(entries).toString();
  return `#/${page}${id === "" ? "" : `/${encodeURIComponent(id)}`}${text === "" ? "" : `?${text}`}`;
}

function isPage(name: string): name is PageName {
  return (PAGES as readonly string[]).includes(name);
}

function decoded(id: string): string {
  try {
    return decodeURIComponent(id);
  } catch {
    return "";
  }
}
