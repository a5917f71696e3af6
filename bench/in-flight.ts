/** Calls `work` a number of times, with a number of calls always in flight. */
export async function inFlight(
  calls: number,
  atOnce: number,
  work: (i: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  const lane = async () => {
    while (next < calls) await work(next++);
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
}
