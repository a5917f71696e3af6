import { CapabilityLists, comparePlaces, type Place } from "./capability-lists.ts";
import { FirstOf } from "./first-of.ts";
import { intersect } from "./ordinals.ts";
import { Slices } from "./slices.ts";
import { compareText } from "./text-order.ts";
import { Words } from "./words.ts";

export interface AgentIndexOptions {
  readonly maxBytes: number;
  /** Called once, when the index does not suffice any more. */
  readonly onFull: () => void;
  /** What a search looks at, where it is to be other than by {@link MAX_STEPS} and {@link MAX_AGENTS}. */
  readonly maxSteps?: number;
  readonly maxAgents?: number;
}

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
const ENTRY_BYTES = 85;
const WORD_BYTES = 800;

/** Places that a search looks at in order, so many and more for each that it is to find, before it looks for whole agents. */
const MAX_STEPS = 2_000;
const STEPS_FOR_EACH = 20;

/** Agents, and capabilities of theirs, that one search looks at; under more of them a walk in the store finds a page soon. */
const MAX_AGENTS = 20_000;
const MAX_CAPABILITIES = 50_000;

/**
 * Which agents have which words, in memory: what a search by several words at once goes by, since the agents that have
 * each of two words may be many and those that have both none.
 *
 * It follows the store: filled from it at the start, and changed after each commit, before the caller is answered.
 *
 * Words are keys, categories and capabilities' ids. 100,000 agents with 5 capabilities and 4 keys each take about 115 MB, or
 * 510 where no two capabilities have the same id. Beyond `maxBytes` the index gives itself up, and searches go through the
 * store.
 */
export class AgentIndex {
  readonly #options: AgentIndexOptions;
  readonly #ordinals = new Map<string, number>();
  readonly #ids: string[] = [];
  #words = new Words();
  #capabilities = new CapabilityLists();
  /**
   * Of each agent whether it is active, how many capabilities and how many keys it has; then of each capability, in the order
   * of their ids, the words of its id and its category and its number among the lists; then the keys, and every other word
   * of the agent once.
   */
  #facts = new Slices();
  #entries = 0;
  #isGivenUp = false;

  constructor(options: AgentIndexOptions) {
    this.#options = options;
  }

  /** Has what is put until `endLoading` wait for it; only while the index is empty. */
  beginLoading(): void {
    this.#capabilities.beginLoading();
  }

  endLoading(): void {
    this.#capabilities.endLoading();
  }

  /** Writes what an agent is found by now. */
  put({ id, active, keys, capabilities }: IndexedAgent): void {
    if (this.#isGivenUp) return;
    const ordinal = this.#ordinals.get(id) ?? this.#ids.length;
    const isNew = ordinal === this.#ids.length;
    const before = isNew ? undefined : this.#factsOf(ordinal);
    const join = (text: string) => this.#words.join(text, ordinal);
    const keyWords = [...new Set(keys.map(join))];
    const inOrder = [...capabilities].sort((a, b) => compareText(a.id, b.id));
    const parts = inOrder.map((each) => [join(idWord(each.id)), join(categoryWord(each.category))] as const);
    // An agent that registers at each start changes nothing.
    if (before !== undefined && isSame(before, active, keyWords, parts)) return;
    this.#deleteCapabilities(before);
    const words = new Set([...keyWords, ...parts.flat()]);
    for (const word of before?.words ?? []) if (!words.has(word)) this.#words.leave(word, ordinal);
    const triples = parts.flatMap(([own, category]) => {
      const place = { word: this.#words.text(own), agentId: id };
      const number = active ? this.#capabilities.add(place, [...keyWords, own, category]) : 0;
      return [own, category, number];
    });
    this.#facts.set(ordinal, [active ? 1 : 0, parts.length, keyWords.length, ...triples, ...words]);
    this.#entries += words.size - (before?.words.length ?? 0);
    if (isNew) {
      this.#ordinals.set(id, ordinal);
      this.#ids.push(id);
    }
    if (this.#bytes > this.#options.maxBytes) this.#giveUp();
  }

  /**
   * The first agents with all the keys, whatever their status, in the order of their ids behind `after`.
   *
   * @returns undefined where looking in the store is as good
   */
  findAgents(keys: readonly string[], after: string, limit: number): readonly string[] | undefined {
    if (this.#isGivenUp) return undefined;
    const words = this.#find(keys);
    const found = words === undefined ? [] : this.#withAll(words);
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
  // biome-ignore lint/complexity/noExcessiveCognitiveComplexity: the walk over the lists and its bounds are one loop
  findCapabilities(
    { keys, category, id }: IndexQuery,
    after: CapabilityPlace,
    limit: number,
  ): readonly CapabilityPlace[] | undefined {
    const texts = [...keys];
    if (id !== undefined) texts.push(idWord(id));
    if (category !== undefined) texts.push(categoryWord(category));
    if (this.#isGivenUp) return undefined;
    const words = this.#find(texts);
    if (words === undefined) return [];
    const behind: Place = { word: idWord(after.id), agentId: after.agentId };
    const maxSteps = this.#options.maxSteps ?? MAX_STEPS + STEPS_FOR_EACH * limit;
    const places = this.#capabilities.search(words, behind, limit, maxSteps);
    if (places !== undefined) return places.map(toCapabilityPlace);

    const found = this.#withAll(words);
    if (found === undefined) return undefined;
    const ofId = id === undefined ? undefined : this.#words.find(idWord(id));
    const ofCategory = category === undefined ? undefined : this.#words.find(categoryWord(category));
    const first = new FirstOf<Place>(limit, comparePlaces);
    const { items } = this.#facts;
    let seen = 0;
    for (const ordinal of found) {
      const at = this.#facts.start(ordinal);
      if (items[at] === 0) continue;
      const end = at + HEAD + PART * (items[at + 1] as number);
      seen += items[at + 1] as number;
      if (seen > MAX_CAPABILITIES) return undefined;
      for (let i = at + HEAD; i < end; i += PART) {
        if (ofId !== undefined && items[i] !== ofId) continue;
        if (ofCategory !== undefined && items[i + 1] !== ofCategory) continue;
        const word = this.#words.text(items[i] as number);
        // The agent's further capabilities come after this one.
        if (first.last !== undefined && compareText(word, first.last.word) > 0) break;
        const place = { word, agentId: this.#ids[ordinal] as string };
        if (comparePlaces(place, behind) > 0) first.offer(place);
      }
    }
    return first.items.map(toCapabilityPlace);
  }

  get #bytes(): number {
    return (this.#entries + this.#ids.length) * ENTRY_BYTES + this.#words.size * WORD_BYTES;
  }

  /** The numbers of some words; undefined when nobody has one of them. */
  #find(texts: readonly string[]): number[] | undefined {
    const words = texts.map((text) => this.#words.find(text)).filter((word) => word !== undefined);
    return words.length < texts.length ? undefined : words;
  }

  /** The agents that have all of some words, or undefined for too many. */
  #withAll(words: readonly number[]): Uint32Array | undefined {
    const found = intersect(words.map((word) => this.#words.agents(word)));
    return found.length > (this.#options.maxAgents ?? MAX_AGENTS) ? undefined : found;
  }

  #factsOf(ordinal: number): Facts {
    const start = this.#facts.start(ordinal);
    const all = [...this.#facts.items.subarray(start, start + this.#facts.length(ordinal))];
    const [active, capabilities = 0, keys = 0] = all;
    const parts = all.slice(HEAD, HEAD + PART * capabilities);
    const words = all.slice(HEAD + PART * capabilities);
    return { active: active === 1, parts, keys: words.slice(0, keys), words };
  }

  #deleteCapabilities(facts: Facts | undefined): void {
    if (facts?.active !== true) return;
    const { parts, keys } = facts;
    for (let i = 0; i < parts.length; i += PART) {
      const [own, category, number] = parts.slice(i, i + PART) as [number, number, number];
      this.#capabilities.delete(number, [...keys, own, category]);
    }
  }

  #giveUp(): void {
    this.#isGivenUp = true;
    this.#words = new Words();
    this.#capabilities = new CapabilityLists();
    this.#facts = new Slices();
    this.#ordinals.clear();
    this.#ids.length = 0;
    this.#options.onFull();
  }
}

/** Numbers of an agent before its capabilities, and of each of these. */
const HEAD = 3;
const PART = 3;

/** What the index holds of an agent, as numbers. */
interface Facts {
  readonly active: boolean;
  readonly parts: readonly number[];
  readonly keys: readonly number[];
  /** The keys first. */
  readonly words: readonly number[];
}

function isSame(
  before: Facts,
  active: boolean,
  keys: readonly number[],
  parts: readonly (readonly [own: number, category: number])[],
): boolean {
  return (
    before.active === active &&
    before.keys.join() === keys.join() &&
    before.parts.length === PART * parts.length &&
    parts.every(([own, category], i) => {
      return before.parts[PART * i] === own && before.parts[PART * i + 1] === category;
    })
  );
}

function toCapabilityPlace({ word, agentId }: Place): CapabilityPlace {
  return { id: word.slice(1), agentId };
}

// Keys begin with another letter each; see `searchKeys`.
const idWord = (id: string) => `i${id}`;
const categoryWord = (category: string) => `c${category}`;
