import { useCallback, useEffect, useRef } from "react";

/**
 * Returns a throttled form of `act`: a call runs `act` soon, and all calls within one pause share one run. After the
 * page was left, calls have no effect.
 *
 * @param pauseMs minimum time between two runs of `act`, in milliseconds
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
