import { Ordinals } from "./ordinals.ts";

/** Words by number, and the agents that have each. */
export class Words {
  readonly #numbers = new Map<string, number>();
  readonly #texts: string[] = [];
  readonly #agents: Ordinals[] = [];
  readonly #free: number[] = [];

  /** How many there are. */
  get size(): number {
    return this.#numbers.size;
  }

  /** The number of a word that some agent has. */
  find(text: string): number | undefined {
    return this.#numbers.get(text);
  }

  text(word: number): string {
    return this.#texts[word] as string;
  }

  agents(word: number): Ordinals {
    return this.#agents[word] as Ordinals;
  }

  /** Says that an agent has a word. @returns its number */
  join(text: string, agent: number): number {
    let word = this.#numbers.get(text);
    if (word === undefined) {
      word = this.#free.pop() ?? this.#texts.length;
      this.#numbers.set(text, word);
      this.#texts[word] = text;
      this.#agents[word] = new Ordinals();
    }
    this.agents(word).add(agent);
    return word;
  }

  /** Says that an agent does not have a word any more; the number of one that nobody has goes to another. */
  leave(word: number, agent: number): void {
    const agents = this.agents(word);
    agents.delete(agent);
    if (agents.length > 0) return;
    this.#numbers.delete(this.text(word));
    this.#free.push(word);
  }
}
