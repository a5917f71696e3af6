import { amount } from "./amount.ts";
import type { Apart } from "./apart.ts";
import { assertAnswered, h2load, type Load } from "./h2load.ts";
import type { Player } from "./turns.ts";

/** Answers each message of the parent process with this process's CPU time; ends with the parent. */
export function reportCpu(): void {
  process.on("disconnect", () => process.exit());
  process.on("message", () => {
    const { user, system } = process.cpuUsage();
    process.send?.({ cpu: user + system });
  });
}

/** Returns the CPU time of a process that calls `reportCpu`, in microseconds. */
export async function cpuOf(server: Apart<unknown>): Promise<number> {
  return (await server.ask<{ cpu: number }>({})).cpu;
}

/** The number of warm-up requests. It is not a time, because a busy machine answers few requests in a second. */
const WARM_UP = amount(10_000, 100);

/**
 * Makes a player whose value is the calls that a server answers per second of its CPU time, under h2load.
 *
 * @param cpu returns the server's CPU time so far, in microseconds
 */
export function cpuPlayer(name: string, cpu: () => Promise<number>, load: Load): Player {
  let isWarm = false;
  return {
    name,
    async round() {
      if (!isWarm && load.http !== "1.1") await assertAnswered(load);
      if (!isWarm) await h2load({ ...load, calls: WARM_UP });
      isWarm = true;
      const before = await cpu();
      const calls = await h2load(load);
      return (calls / ((await cpu()) - before)) * 1e6;
    },
  };
}
