import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Frame, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect } from "vitest";
import { compare } from "../src/strings/compare";
import { lab as strings } from "../src/strings/lab";
import { accessible, flow, picture, useBrowser } from "./browser";
import { exported, native, type Host } from "./hosts";

useBrowser();

let host: Awaited<ReturnType<typeof native>>;
let site: Host | undefined;

beforeAll(async () => {
  [host, site] = await Promise.all([native(), exported()]);
  if (!site && process.env.WEB_TEST_REQUIRED === "1") throw new Error("the static site was not exported; run make wasm");
});
afterAll(async () => {
  await Promise.all([host?.stop(), site?.stop()]);
});

async function shown(page: Page | Frame, record: number): Promise<void> {
  await page.waitForSelector(`canvas[data-painted="${record}"]`);
  await page.waitForSelector(`.player[data-known="${record}"]`);
}

describe("a run for an audience", () => {
  flow("the gallery has groups, and mistakes to predict", () => host.origin, async (page) => {
    await page.goto(host.url("1/gallery"));
    await page.waitForSelector(`h2:has-text("${strings.gallery.broken}")`);
    await accessible(page);
    await page.click('a[href="#1/check/lamport-no-tie-break"]');
    await page.waitForSelector(".predict");
  });

  flow("the cards that are in view have a picture of their run, and others have none", () => host.origin, async (page) => {
    await page.goto(host.url("1/gallery"));
    const thumb = (id: string) => page.locator(`a[href="#1/run/${id}"] canvas`);
    const made = (id: string) => thumb(id).getAttribute("data-made");
    await expect.poll(() => made("maekawa-deadlock")).toBe("9");
    await page.getByText("9 records", { exact: true }).first().waitFor();
    expect(await made("load/token-ring-100")).toBe(null);
    await thumb("load/token-ring-100").scrollIntoViewIfNeeded();
    await expect.poll(() => made("load/token-ring-100")).toBe("400");
    await page.getByText(strings.gallery.length(400, true)).first().waitFor();
    const colours = await thumb("maekawa-deadlock").evaluate((canvas: HTMLCanvasElement) => {
      const { data } = canvas.getContext("2d")?.getImageData(0, 0, canvas.width, canvas.height) ?? { data: [] };
      return new Set(Array.from({ length: data.length / 4 }, (_, i) => [data[4 * i], data[4 * i + 1], data[4 * i + 2]].join())).size;
    });
    expect(colours, "lines, bars and arrows are drawn").toBeGreaterThan(10);
    await accessible(page);
    await thumb("maekawa-deadlock").click();
    await page.waitForSelector(".player");
  });

  flow("two runs side by side with one cursor", () => host.origin, async (page) => {
    await page.goto(host.url("1/gallery"));
    await page.click('a[href="#1/compare/maekawa-deadlock/maekawa-without-deadlock"]');
    const known = (text: string) => page.waitForSelector(`.compare[data-known="${text}"]`);
    const press = (name: string) => page.getByRole("button", { name, exact: true }).click();
    await known("0,0");
    await page.getByRole("heading", { level: 1, name: "After which step is the deadlock certain, and which vote is given back?" }).waitFor();
    // All that happens at a time is one step.
    await page.keyboard.press("ArrowRight");
    await known("6,6");
    await page.keyboard.press("ArrowRight");
    await known("9,9");
    await accessible(page);
    // The left run has ended. The right one goes on.
    await page.keyboard.press("ArrowRight");
    await known("9,10");
    await press(compare.previous);
    await known("9,9");
    await press(compare.difference);
    await known("9,11");
    expect(await page.locator('[role="status"]:has-text("≠")').count()).toBe(1);
    await picture(page, "docs/lab/compare.png");
    const cell = (row: string, side: number) => page.locator(`.counters tr:has(th:text-is("${row}")) .number >> nth=${side}`).textContent();
    expect([await cell(compare.inside, 0), await cell(compare.inside, 1)]).toEqual(["0", "1"]);
    expect([await cell(compare.waiting, 0), await cell(compare.waiting, 1)]).toEqual(["3", "2"]);
    await page.keyboard.press("End");
    await known("9,19");
    expect(await page.locator(".compare td .number").allTextContents()).toEqual(["3", "10", "0", "3", "3", "0", "0", "0"]);
    // A click in one picture moves the other too, unless the cursors are not locked.
    await page.keyboard.press("Home");
    await known("0,0");
    await page.uncheck(`label:has-text("${compare.lock}") input`);
    await press(compare.next);
    await page.waitForSelector('.compare[data-known$=",0"]:not([data-known="0,0"]), .compare[data-known^="0,"]:not([data-known="0,0"])');
    await page.goto(host.url("1/compare/none/mutex%2Flamport"));
    await page.waitForSelector(`[role="alert"]:has-text("${compare.unknown("none")}")`);
  });

  flow("presenter mode: large type, and a clicker steps", () => host.origin, async (page) => {
    await page.goto(host.url("1/run/maekawa-deadlock"));
    await shown(page, 0);
    await page.click(`text=${strings.share.export}`);
    await page.getByRole("button", { name: strings.presenter.enter, exact: true }).click();
    await page.waitForSelector(".player.presenter");
    expect(await page.locator("header nav, #tab-flight, .act").count()).toBe(0);
    for (let record = 1; record <= 4; record++) {
      await page.keyboard.press("PageDown");
      await shown(page, record);
    }
    await page.keyboard.press("PageUp");
    await shown(page, 3);
    const size = await page.evaluate(() => parseFloat(getComputedStyle(document.querySelector(".caption") as Element).fontSize));
    expect(size).toBeGreaterThanOrEqual(20);
    await accessible(page);
    await page.click(`button[title="${strings.presenter.leave}"]`);
    await page.waitForSelector("#tab-flight");
  });

  flow("a run in a frame of 600 x 400 on another page", () => "http://127.0.0.1:", async (page) => {
    if (!site) return;
    await page.goto(site.url("1/run/mutex/lamport?t=4"));
    await shown(page, 4);
    await page.click(`text=${strings.share.export}`);
    await page.getByRole("button", { name: strings.embed.copy, exact: true }).click();
    await page.waitForSelector(`.notice:has-text("${strings.embed.copied}")`);
    const code = await page.evaluate(() => navigator.clipboard.readText());
    // The frame is in a page of another origin.
    const course = createServer((_, response) => {
      response.writeHead(200, { "Content-Type": "text/html" }).end(`<!doctype html><title>A course</title><link rel="icon" href="data:,"><main><h1>A course</h1>${code}</main>`);
    });
    await new Promise<void>((resolve) => course.listen(0, "127.0.0.1", resolve));
    await page.goto(`http://127.0.0.1:${(course.address() as AddressInfo).port}/`);
    const frame = await (await page.waitForSelector("iframe")).contentFrame();
    if (!frame) throw new Error("the frame is empty");
    await shown(frame, 4);
    expect(await frame.locator("header nav, #tab-flight, .act").count()).toBe(0);
    expect(await frame.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.scrollHeight])).toEqual([600, 400]);
    await frame.click(`button[title="${strings.scrubber.next}"]`);
    await shown(frame, 5);
    const canvas = await frame.evaluate(() => document.querySelector("canvas")?.getBoundingClientRect().height ?? 0);
    expect(canvas).toBeGreaterThan(120);
    const [full] = await Promise.all([page.context().waitForEvent("page"), frame.click(`text=${strings.embed.open}`)]);
    await full.waitForSelector("#tab-flight");
    expect(full.url()).not.toContain("embed");
    course.closeAllConnections();
    course.close();
  });
});
