/** Formats a duration in one or two units: `1 h 5 min`, `2.4 s`, `120 ms`. */
export function durationText(ms: number): string {
  const abs = Math.max(0, ms);
  if (abs < 1_000) return `${Math.round(abs)} ms`;
  if (abs < 60_000) return `${(abs / 1_000).toFixed(abs < 10_000 ? 1 : 0)} s`;
  for (const [unit, size, lower, lowerSize] of UNITS) {
    if (abs < size) continue;
    const rest = Math.floor((abs % size) / lowerSize);
    return `${Math.floor(abs / size)} ${unit}${rest > 0 ? ` ${rest} ${lower}` : ""}`;
  }
  return "";
}

const UNITS = [
  ["d", 86_400_000, "h", 3_600_000],
  ["h", 3_600_000, "min", 60_000],
  ["min", 60_000, "s", 1_000],
] as const;

/** Formats a time relative to now: `5 s ago`, `in 3 min`. */
export function relativeText(timeMs: number, nowMs: number): string {
  const ms = nowMs - timeMs;
  if (Math.abs(ms) < 1_000) return "now";
  const text = durationText(Math.abs(ms) < 60_000 ? Math.floor(Math.abs(ms) / 1_000) * 1_000 : Math.abs(ms));
  return ms > 0 ? `${text.replace(".0", "")} ago` : `in ${text.replace(".0", "")}`;
}
