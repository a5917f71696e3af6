import { CATEGORIES, TAGS } from "../../registry/agents.ts";
import { type Served, serve } from "../../registry/served.ts";
import { type Path, powersTo, usEach } from "../path.ts";

const LARGEST = 100_000;
const IN_FLIGHT = 4;
const PAGE = 20;
const CALLS = 100;
const QUERY = "translate merge";

const WORDS = "search by two words";
const WORDS_IN_CATEGORY = "by two words in a category";
const FILTERS = "by category and tag";

/** Agents of the registry, each with 5 capabilities. Each size has a registry of its own. */
export const agents: Path = {
  name: "agents",
  unit: "us",
  sizes: powersTo(LARGEST),
  lines: [WORDS, WORDS_IN_CATEGORY, FILTERS],
  flat: [WORDS, WORDS_IN_CATEGORY, FILTERS].map((line) => ({ line, from: 1_000, to: LARGEST, atMost: 2 })),
  async open() {
    let served: Served | undefined;
    const requests: Record<string, (i: number) => object> = {
      [WORDS]: () => ({ filter: { query: QUERY } }),
      [WORDS_IN_CATEGORY]: (i) => ({ filter: { category: `cat-${i % CATEGORIES}`, query: QUERY } }),
      [FILTERS]: (i) => ({
        filter: { category: `cat-${i % CATEGORIES}` },
        tags: [`tag-${(i * 3) % TAGS}`],
      }),
    };
    const search = (line: string) => (i: number) =>
      served?.discovery.discoverCapabilities({ pageSize: PAGE, ...requests[line]?.(i) }) ??
      Promise.reject(new Error("no registry"));
    return {
      async grow(size) {
        await served?.close();
        served = await serve(size);
        for (const line of Object.keys(requests)) await usEach(CALLS, IN_FLIGHT, search(line));
      },
      measure: (line) => usEach(CALLS, IN_FLIGHT, search(line)),
      close: () => served?.close(),
    };
  },
};
