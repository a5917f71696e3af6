import { FirstOf } from "./first-of.ts";
import { intersect } from "./ordinals.ts";
import { Slices } from "./slices.ts";
import { compareText } from "./text-order.ts";
import { Words } from "./words.ts";

/** What agents are found by. */
export interface IndexedAgent {
  readonly id: string;
  /** Whether discovery finds it: neither removed nor deprecated. */
  readonly active: boolean;
  /** Its tags, protocols and organization, as `searchKeys` writes them. */
  readonly keys: readonly string[];
  readonly capabilities: readonly IndexedCapability[];
}

export interface IndexedCapability {
  readonly id: string;
  /** As categories are compared. */
  readonly category: string;
}

/** What a capability and its agent have to meet; absent members do not narrow it. */
export interface IndexQuery {
  readonly keys: readonly string[];
  readonly category?: string | undefined;
  readonly id?: string | undefined;
}

/** A capability by its place in the order of the lists: by id, then by agent. */
export interface CapabilityPlace {
  readonly id: string;
  readonly agentId: string;
}

/** What an entry, an agent or a word of one, costs about, and a word that is new to the index; in bytes, as measured. */
const ENTRY_BYTES = 45;
const WORD_BYTES = 400;

/** Agents, and capabilities of theirs, that one search looks at; under more of them a walk in order finds a page soon. */
const MAX_AGENTS = 20_000;
const MAX_CAPABILITIES = 50_000;

/**
 * Which agents have which words, in memory: what a search by several words at once goes by, since the agents that have
 * each of two words may be many and those that have both none.
 *
 * It follows the store: filled from it at the start, and changed after each commit, before the caller is answered.
 *
 * Words are keys, categories and capabilities' ids. 100,000 agents with 5 capabilities and 4 keys each take about 70 MB, or
 * 270 where no two capabilities have the same id. Beyond `maxBytes` the index gives itself up, and searches go through the
 * store.
 */
export class AgentIndex {
  readonly #maxBytes: number;
  readonly #onFull: () => void;
  readonly #ordinals = new Map<string, number>();
  readonly #ids: string[] = [];
  #words = new Words();
  /**
   * Of each agent whether it is active, how many capabilities it has, then of each capability, in the order of their ids,
   * the words of its id and its category, and after these every word of the agent once.
   */
  #facts = new Slices();
  #entries = 0;
  #isGivenUp = false;

  constructor({ maxBytes, onFull }: { maxBytes: number; onFull: () => void }) {
    this.#maxBytes = maxBytes;
    this.#onFull = onFull;
  }

  /** Writes what an agent is found by now. */
  put({ id, active, keys, capabilities }: IndexedAgent): void {
    if (this.#isGivenUp) return;
    const ordinal = this.#ordinals.get(id) ?? this.#ids.length;
    const isNew = ordinal === this.#ids.length;
    const before = isNew ? [] : this.#wordsOf(ordinal);
    const inOrder = [...capabilities].sort((a, b) => compareText(a.id, b.id));
    const join = (text: string) => this.#words.join(text, ordinal);
    const parts = inOrder.flatMap((each) => [join(idWord(each.id)), join(categoryWord(each.category))]);
    const words = new Set([...keys.map(join), ...parts]);
    for (const word of before) if (!words.has(word)) this.#words.leave(word, ordinal);
    this.#facts.set(ordinal, [active ? 1 : 0, capabilities.length, ...parts, ...words]);
    this.#entries += words.size - before.length;
    if (isNew) {
      this.#ordinals.set(id, ordinal);
      this.#ids.push(id);
    }
    if (this.#bytes > this.#maxBytes) this.#giveUp();
  }

  /**
   * The first agents with all the keys, whatever their status, in the order of their ids behind `after`.
   *
   * @returns undefined where looking in the store is as good
   */
  findAgents(keys: readonly string[], after: string, limit: number): readonly string[] | undefined {
    const found = this.#withAll(keys);
    if (found === undefined) return undefined;
    const first = new FirstOf<string>(limit, compareText);
    for (const ordinal of found) {
      const id = this.#ids[ordinal] as string;
      if (compareText(id, after) > 0) first.offer(id);
    }
    return first.items;
  }

  /**
   * The first capabilities that a query finds, of active agents, in the order of the lists behind `after`.
   *
   * @returns undefined where looking in the store is as good
   */
  findCapabilities(
    { keys, category, id }: IndexQuery,
    after: CapabilityPlace,
    limit: number,
  ): readonly CapabilityPlace[] | undefined {
    const parts: string[] = [];
    if (id !== undefined) parts.push(idWord(id));
    if (category !== undefined) parts.push(categoryWord(category));
    const found = this.#withAll([...keys, ...parts]);
    if (found === undefined) return undefined;
    const ofId = id === undefined ? undefined : this.#words.find(idWord(id));
    const ofCategory = category === undefined ? undefined : this.#words.find(categoryWord(category));
    const first = new FirstOf<Place>(limit, comparePlaces);
    const behind: Place = { word: idWord(after.id), agentId: after.agentId };
    const { items } = this.#facts;
    let seen = 0;
    for (const ordinal of found) {
      const at = this.#facts.start(ordinal);
      if (items[at] === 0) continue;
      const end = at + HEAD + 2 * (items[at + 1] as number);
      seen += items[at + 1] as number;
      if (seen > MAX_CAPABILITIES) return undefined;
      for (let i = at + HEAD; i < end; i += 2) {
        if (ofId !== undefined && items[i] !== ofId) continue;
        if (ofCategory !== undefined && items[i + 1] !== ofCategory) continue;
        const word = this.#words.text(items[i] as number);
        // The agent's further capabilities come after this one.
        if (first.last !== undefined && compareText(word, first.last.word) > 0) break;
        const place = { word, agentId: this.#ids[ordinal] as string };
        if (comparePlaces(place, behind) > 0) first.offer(place);
      }
    }
    return first.items.map(({ word, agentId }) => ({ id: word.slice(1), agentId }));
  }

  get #bytes(): number {
    return (this.#entries + this.#ids.length) * ENTRY_BYTES + this.#words.size * WORD_BYTES;
  }

  /** The agents that have all of some words, or undefined for too many. */
  #withAll(texts: readonly string[]): Uint32Array | undefined {
    if (this.#isGivenUp) return undefined;
    const words = texts.map((text) => this.#words.find(text)).filter((word) => word !== undefined);
    if (words.length < texts.length) return new Uint32Array();
    const found = intersect(words.map((word) => this.#words.agents(word)));
    return found.length > MAX_AGENTS ? undefined : found;
  }

  #wordsOf(ordinal: number): number[] {
    const start = this.#facts.start(ordinal);
    const { items } = this.#facts;
    const from = start + HEAD + 2 * (items[start + 1] as number);
    return [...items.subarray(from, start + this.#facts.length(ordinal))];
  }

  #giveUp(): void {
    this.#isGivenUp = true;
    this.#words = new Words();
    this.#facts = new Slices();
    this.#ordinals.clear();
    this.#ids.length = 0;
    this.#onFull();
  }
}

/** Numbers of an agent before its capabilities. */
const HEAD = 2;

// Keys begin with another letter each; see `searchKeys`.
const idWord = (id: string) => `i${id}`;
const categoryWord = (category: string) => `c${category}`;

/** A {@link CapabilityPlace} by the word of its id. */
interface Place {
  readonly word: string;
  readonly agentId: string;
}

function comparePlaces(a: Place, b: Place): number {
  return compareText(a.word, b.word) || compareText(a.agentId, b.agentId);
}
