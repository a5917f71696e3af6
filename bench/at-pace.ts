/** Starts a number of calls at a fixed rate, and waits for all of them. Throws what the first failed call throws. */
export async function atPace(
  perSecond: number,
  calls: number,
  call: (i: number) => Promise<unknown>,
): Promise<void> {
  let open = 0;
  const failed: unknown[] = [];
  const startMs = performance.now();
  for (let sent = 0; sent < calls || open > 0; await pause()) {
    const due = Math.min(calls, Math.floor(((performance.now() - startMs) * perSecond) / 1000));
    while (sent < due) {
      open++;
      call(sent++)
        .catch((error: unknown) => failed.push(error))
        .finally(() => open--);
    }
  }
  if (failed.length > 0) throw failed[0];
}

const pause = () => new Promise((resolve) => setTimeout(resolve, 1));
