import { useCallback, useEffect, useRef } from "react";

/**
 * Returns a throttled form of `act`. A call runs `act` after `pauseMs`. Further calls within that time share the same
 * run. When the user leaves the page, the waiting run is cancelled.
 *
 * @param pauseMs the delay of a run in milliseconds, and so the minimum time between two runs
 */
export function useSoon(act: () => void, pauseMs: number): () => void {
  const latest = useRef(act);
  latest.current = act;
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(
    () => () => {
      clearTimeout(timer.current);
      timer.current = undefined;
    },
    [],
  );
  return useCallback(() => {
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      latest.current();
    }, pauseMs);
  }, [pauseMs]);
}
