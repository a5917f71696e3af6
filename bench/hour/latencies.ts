/** The median and the 99th percentile of latencies, in milliseconds. */
export interface LatencySample {
  readonly count: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Collects latencies between two samples. */
export class Latencies {
  #collected: number[] = [];

  add(ms: number): void {
    this.#collected.push(ms);
  }

  /** Returns the percentiles since the last call. */
  take(): LatencySample {
    const sorted = this.#collected.sort((a, b) => a - b);
    this.#collected = [];
    const at = (part: number) => sorted[Math.floor((sorted.length - 1) * part)] ?? Number.NaN;
    return { count: sorted.length, p50Ms: at(0.5), p99Ms: at(0.99) };
  }
}
