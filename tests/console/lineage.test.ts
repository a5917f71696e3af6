import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Cast, example, secretOf, startCast } from "../cap/cast.ts";
import { type ConsolePage, expectFitsEverywhere, hasBrowser, openBrowser, openPage } from "./browser.ts";

describe.skipIf(!hasBrowser())("the lineage of a CAP task in a browser", () => {
  let cast: Cast;
  let browser: Browser;
  let opened: ConsolePage;
  beforeAll(async () => {
    [cast, browser] = await Promise.all([startCast(), openBrowser()]);
    opened = await openPage(browser, cast.url);
  }, 60_000);
  afterAll(async () => {
    expect(opened?.faults).toEqual([]);
    await browser?.close();
    await cast?.stop();
  });

  test("the delegator signs in with its secret, and sees the messages of its task as they arrive", async () => {
    const { page, open } = opened;
    const sent = await cast.as("orchestrator").send(example("example-01-delegation-to-pm"));
    expect(sent.status).toBe(201);
    await open("#/tasks");
    await page.getByRole("textbox", { name: "Secret" }).fill(secretOf("orchestrator"));
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("table", { name: "Tasks" }).getByRole("link").click();
    const lineage = page.getByRole("region", { name: "Lineage" });
    await lineage.getByText("orchestrator → pm-1").waitFor();
    await lineage.getByText(/User request: analyze/).waitFor();
    await cast.as("pm-1").send(example("example-02-question-to-user"));
    await lineage.getByText("pm-1 → user").waitFor();
    await expectFitsEverywhere(page);
  });
});
