import type { Benchmark, Figure, Value } from "./bench.ts";

/** An implementation whose server or whose work runs in a process of its own. */
export interface Player {
  readonly name: string;
  /** Measures one round, and returns a value in the unit of the benchmark. */
  readonly round: () => Promise<number>;
}

/** A quotient of two players' values, taken in each round. */
export interface Quotient {
  readonly name: string;
  /** The name of the player whose value is divided by the value of the player `by`. */
  readonly of: string;
  readonly by: string;
  readonly atMost?: number;
  readonly atLeast?: number;
}

export interface Turns {
  readonly name: string;
  readonly unit: string;
  readonly rounds: number;
  /** Starts the players. Called once, before the first round. */
  readonly start: () => Promise<{ readonly players: readonly Player[]; readonly stop: () => unknown }>;
  /** The names of the players, in the order of the table. */
  readonly names: readonly string[];
  readonly quotients?: readonly Quotient[];
  /** The goals of players' own values, by name. */
  readonly limits?: Readonly<Record<string, Pick<Quotient, "atMost" | "atLeast">>>;
  readonly close?: () => void | Promise<void>;
}

/**
 * Measures players in turns, one round each, so that other load of the machine affects them equally. Values are
 * medians of the rounds. A quotient is the median of the quotients of each round.
 */
export function inTurns({
  name,
  unit,
  rounds,
  start,
  names,
  quotients = [],
  limits = {},
  close,
}: Turns): Benchmark {
  let played: Promise<Map<string, number[]>> | undefined;
  const values = async (player: string) => {
    played ??= play(start, rounds);
    const found = (await played).get(player);
    if (found === undefined) throw new Error(`${name}: no player has the name ${player}`);
    return found;
  };
  return {
    name,
    figures: [
      ...names.map(
        (player): Figure => ({
          ...{ name: player, unit, ...limits[player] },
          measure: async () => middleOf(await values(player)),
        }),
      ),
      ...quotients.map(
        ({ of, by, ...figure }): Figure => ({
          ...figure,
          unit: "times",
          measure: async () => {
            const divisors = await values(by);
            return middleOf((await values(of)).map((value, i) => value / (divisors[i] ?? Number.NaN)));
          },
        }),
      ),
    ],
    ...(close !== undefined && { close }),
  };
}

async function play(start: Turns["start"], rounds: number): Promise<Map<string, number[]>> {
  const { players, stop } = await start();
  const values = new Map<string, number[]>(players.map(({ name }) => [name, []]));
  try {
    for (const { round } of players) await round();
    for (let i = 0; i < rounds; i++) {
      for (const { name, round } of players) values.get(name)?.push(await round());
    }
  } finally {
    await stop();
  }
  return values;
}

/** Returns the median of values, and their interquartile range. */
export function middleOf(values: readonly number[]): Exclude<Value, number> {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (part: number) => sorted[Math.floor((sorted.length - 1) * part)] ?? Number.NaN;
  return { value: at(0.5), spread: at(0.75) - at(0.25) };
}
