import { existsSync } from "node:fs";
import axe from "axe-core";
import { type Browser, chromium, type Page } from "playwright-core";
import { expect } from "vitest";

/** Debian's Chromium, or the browser that the variable names. */
const PROGRAM = process.env.DEPUTE_TEST_CHROMIUM ?? "/usr/bin/chromium";

/**
 * Whether this machine has a browser. Always true with CI=true, so that the tests fail without a browser instead of
 * being skipped.
 */
export function hasBrowser(): boolean {
  if (existsSync(PROGRAM) || process.env.CI === "true") return true;
  // biome-ignore lint/suspicious/noConsole: what is not tested has to be seen by the person who runs it
  console.warn(`\n*** There is no ${PROGRAM}: THE CONSOLE IS NOT TESTED IN A BROWSER. ***\n`);
  return false;
}

export function openBrowser(): Promise<Browser> {
  // Chromium's sandbox needs permissions that containers lack. The test can do without it, because the pages are the
  // platform's own.
  return chromium.launch({ executablePath: PROGRAM, args: ["--no-sandbox"] });
}

/** Longest wait for a change of a page, in milliseconds. */
const WAIT_MS = 15_000;

/** A page of the console that records its faults. */
export interface ConsolePage {
  readonly page: Page;
  /** Errors of scripts, and violations of the page's policy. */
  readonly faults: string[];
  /** Opens a place of the console, e.g. `#/tasks`. */
  readonly open: (hash: string) => Promise<void>;
  readonly close: () => Promise<void>;
}

export interface PageOptions {
  readonly width?: number;
  readonly height?: number;
  readonly scheme?: "light" | "dark";
}

/** Opens a page in a new browser context, so that it shares no storage with other pages. */
export async function openPage(
  browser: Browser,
  url: string,
  { width = 1280, height = 840, scheme = "light" }: PageOptions = {},
): Promise<ConsolePage> {
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme: scheme,
    reducedMotion: "reduce",
  });
  const page = await context.newPage();
  page.setDefaultTimeout(WAIT_MS);
  const faults: string[] = [];
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => {
    const text = message.text();
    // Failed calls are no faults of the page: some tests cause failed calls, and the page shows them as text.
    if (message.type() === "error" && !text.startsWith("Failed to load resource")) faults.push(text);
  });
  return {
    page,
    faults,
    open: async (hash) => {
      await page.goto(`${url}/console${hash}`);
    },
    close: () => context.close(),
  };
}

/** Fails for each rule of WCAG that the page breaks, as axe judges. */
export async function expectAccessible(page: Page): Promise<void> {
  // `evaluate` is not subject to the page's Content-Security-Policy, so axe needs no exception there.
  await page.evaluate(axe.source);
  const found = await page.evaluate(async () => {
    const { axe: judge } = globalThis as unknown as { axe: typeof axe };
    const { violations } = await judge.run();
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
  });
  expect(found).toEqual([]);
}

/**
 * Checks the open view in light and dark colors, at wide and at phone width. Fails if the view breaks a rule
 * of WCAG or is wider than the window.
 */
export async function expectFitsEverywhere(page: Page): Promise<void> {
  const wide = page.viewportSize() ?? { width: 1280, height: 840 };
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    for (const width of [wide.width, 390]) {
      await page.setViewportSize({ width, height: wide.height });
      await expectAccessible(page);
      const overflow = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
      expect([colorScheme, width, overflow]).toEqual([colorScheme, width, 0]);
    }
  }
  await page.setViewportSize(wide);
  await page.emulateMedia({ colorScheme: "light" });
}
