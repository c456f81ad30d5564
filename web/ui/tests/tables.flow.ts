import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect } from "vitest";
import { lab as labStrings } from "../src/strings/lab";
import { tables } from "../src/strings/tables";
import { accessible, flow, sizes, useBrowser, views } from "./browser";
import { native } from "./hosts";

useBrowser();

let host: Awaited<ReturnType<typeof native>>;

beforeAll(async () => {
  host = await native();
});
afterAll(async () => host?.stop());

const origin = () => host.origin;
const { audit, charts } = tables;

const cell = (page: Page, algorithm: string, assumption: string) => page.getByRole("button", { name: new RegExp(`^${algorithm}, ${assumption}: `) });

/** finished waits until a table or a sweep has so many results, and none is under way. */
const finished = (page: Page, text: string) => page.getByRole("status").getByText(text, { exact: true }).waitFor({ timeout: 40_000 });

describe("audit", () => {
  flow("a row is searched, and a violated cell opens its run with its story", origin, async (page) => {
    await page.goto(host.url("1/audit?states=2000&filter=lamport"));
    await page.getByRole("button", { name: audit.row("lamport"), exact: true }).click();
    await finished(page, audit.progress(8, 8));
    await cell(page, "lamport", "nothing dropped").getByText("✓").waitFor();
    const fifo = cell(page, "lamport", "FIFO links");
    await fifo.getByText("✗").waitFor();
    // The arrow keys go from cell to cell.
    await cell(page, "lamport", "nothing dropped").focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Enter");
    await page.getByText(/^✗ Violated: mutual exclusion, after \d+ steps\.$/).waitFor();
    await page.getByText("Every message may overtake every other on its link.").waitFor();
    expect(await page.locator(".story li").count()).toBeGreaterThan(2);
    await accessible(page);
    await page.emulateMedia({ colorScheme: "dark" });
    await accessible(page);
    await page.emulateMedia({ colorScheme: "light" });
    expect(new URL(page.url()).hash).toBe("#1/audit?states=2000&filter=lamport&algorithm=lamport&without=FIFO%20links");
    await page.locator(".story li button").last().click();
    await page.locator(".badge").getByText(labStrings.badge.violated("mutual exclusion")).waitFor();
    await page.goBack();
    await fifo.getByText("✗").waitFor(); // what was found is still there
  });

  flow("all cells: the search can be stopped, and what was found stays", origin, async (page) => {
    await page.goto(host.url("1/audit?states=2000"));
    await page.getByRole("button", { name: audit.all, exact: true }).click();
    await page.locator(".cell.proved").nth(3).waitFor();
    await page.getByRole("button", { name: audit.stop }).click();
    await page.getByText(/^Stopped after \d+ of \d+ cells\.$/).waitFor();
    const known = await page.locator(".cell.proved, .cell.violated").count();
    expect(known).toBeGreaterThan(3);
    expect(await page.locator(".cell.searching").count()).toBe(0);
    await page.setViewportSize(sizes.phone);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(sizes.phone.width);
    await accessible(page);
  });
});

describe("charts", () => {
  flow("a sweep is measured, drawn on the lines of theory, and saved as CSV", origin, async (page) => {
    await page.goto(host.url("1/charts?sizes=3,%206,12"));
    await page.getByText(charts.none).waitFor();
    await accessible(page);
    await page.getByRole("button", { name: charts.run }).click();
    await finished(page, charts.progress(12, 12));
    const chart = page.getByRole("img", { name: /^Messages per entry over the number of processes, saturated: / });
    expect(await chart.locator(".point").count()).toBe(12);
    expect(await chart.locator(".theory").count()).toBe(4);
    await page.getByRole("row", { name: /^ricart-agrawala 12 22 22 2\(N-1\) yes$/ }).waitFor();
    await accessible(page);
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: charts.csv }).click()]);
    const lines = readFileSync(await download.path(), "utf8").trimEnd().split("\r\n");
    expect(lines[0]).toBe("algorithm,n,regime,metric,measured,theory,lower bound,upper bound,formula,within");
    expect(lines).toContain("ricart-agrawala,12,saturated,messages_per_entry,22,22,,,2(N-1),yes");
    expect(lines.filter((line) => line.includes(",idle,messages_per_entry,"))).toHaveLength(12);
    await page.getByRole("combobox", { name: charts.metric }).selectOption("client_delay");
    await page.getByText(charts.noFigure).waitFor();
    await page.getByRole("combobox", { name: charts.regime }).selectOption("idle");
    await page.getByRole("img", { name: /^Client delay, in D over the number of processes, idle/ }).waitFor();
    await page.getByLabel(charts.sizes).fill("3, many");
    await page.getByText(charts.sizesBad).waitFor();
    await accessible(page);
    await page.getByLabel(charts.sizes).fill("3, 6, 12");
    await page.emulateMedia({ colorScheme: "dark" });
    await page.setViewportSize(sizes.phone);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(sizes.phone.width);
    await accessible(page);
  });

  flow("a sweep stops at once, and its address opens the same choice", origin, async (page) => {
    await page.goto(host.url("1/charts?algorithms=lamport,maekawa&sizes=3,%201000"));
    await page.getByRole("button", { name: charts.run }).click();
    await page.locator(".point").first().waitFor();
    await page.getByRole("button", { name: charts.stop }).click();
    await page.getByText(/^Stopped after [12] of 4 measurements\.$/).waitFor();
    expect(await page.getByRole("checkbox", { name: "maekawa", exact: true }).isChecked()).toBe(true);
    expect(await page.getByRole("checkbox", { name: "raymond", exact: true }).isChecked()).toBe(false);
  });
});

describe.runIf(process.env.SHOTS === "1")("for the documents", () => {
  flow("pictures", origin, async (page) => {
    await page.goto(host.url("1/audit?filter=a"));
    await page.getByRole("button", { name: /^Search these/ }).click();
    await page.locator(".cell.proved").nth(50).waitFor({ timeout: 50_000 });
    await cell(page, "lamport", "FIFO links").click();
    await page.getByText(/^✗ Violated: mutual exclusion/).waitFor();
    await views(page, "docs/lab/audit.png");
    await page.goto(host.url("1/charts?sizes=3,%2010,%2030,%20100,%20300&algorithms=lamport,maekawa,raymond,ricart-agrawala,suzuki-kasami"));
    await page.getByRole("button", { name: charts.run }).click();
    await finished(page, charts.progress(25, 25));
    await page.locator("main svg").scrollIntoViewIfNeeded();
    await views(page, "docs/lab/charts.png");
  });
});
