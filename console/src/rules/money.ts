/** Number of microcents in 1 USD. */
const MICROCENTS = 100_000_000;

/** Formats an amount in US dollars. The smaller the amount, the more decimals it gets. */
export function dollars(microcents: bigint | number): string {
  const usd = Number(microcents) / MICROCENTS;
  const digits = usd !== 0 && Math.abs(usd) < 0.01 ? 6 : Math.abs(usd) < 1 ? 4 : 2;
  return `$${usd.toFixed(digits)}`;
}

/**
 * Formats an amount that the Agenta protocol states in hundredths of a currency. The text has whole units and two
 * decimals.
 */
export function minorUnits(amount: bigint | number, currency: string): string {
  return `${(Number(amount) / 100).toFixed(2)} ${currency}`;
}
