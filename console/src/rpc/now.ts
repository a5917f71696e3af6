import { useEffect, useState } from "react";

/** Returns the current time in epoch milliseconds. The value is at most `stepMs` old. */
export function useNow(stepMs = 1_000): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), stepMs);
    return () => clearInterval(timer);
  }, [stepMs]);
  return now;
}
