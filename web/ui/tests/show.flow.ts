import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect } from "vitest";
import { compare } from "../src/strings/compare";
import { lab as strings } from "../src/strings/lab";
import { accessible, flow, sizes, useBrowser, views } from "./browser";
import { exported, native, type Host } from "./hosts";
import { open, position, settled } from "./lab";

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
    expect(await page.locator(`[role="status"]:has-text("≠"):has-text("${compare.apart}")`).count()).toBe(1);
    await views(page, "docs/lab/compare.png");
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
    await settled(page, 0);
    await page.click(`text=${strings.share.export}`);
    await page.getByRole("button", { name: strings.presenter.enter, exact: true }).click();
    await page.waitForSelector(".player.presenter");
    expect(await page.locator("header nav, #tab-flight, .act").count()).toBe(0);
    for (let record = 1; record <= 4; record++) {
      await page.keyboard.press("PageDown");
      await settled(page, record);
    }
    await page.keyboard.press("PageUp");
    await settled(page, 3);
    const size = await page.evaluate(() => parseFloat(getComputedStyle(document.querySelector(".caption") as Element).fontSize));
    expect(size).toBeGreaterThanOrEqual(20);
    await accessible(page);
    await page.click(`button[title="${strings.presenter.leave}"]`);
    await page.waitForSelector("#tab-flight");
  });

  flow("a run in a frame of 600 x 400 on another page", () => "http://127.0.0.1:", async (page) => {
    if (!site) return;
    await page.goto(site.url("1/run/mutex/lamport?t=4"));
    await settled(page, 4);
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
    await settled(frame, 4);
    expect(await frame.locator("header nav, #tab-flight, .act").count()).toBe(0);
    await accessible(frame);
    expect(await frame.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.scrollHeight])).toEqual([600, 400]);
    await frame.click(`button[title="${strings.scrubber.next}"]`);
    await settled(frame, 5);
    const canvas = await frame.evaluate(() => document.querySelector("canvas")?.getBoundingClientRect().height ?? 0);
    expect(canvas).toBeGreaterThan(120);
    const [full] = await Promise.all([page.context().waitForEvent("page"), frame.click(`text=${strings.embed.open}`)]);
    await full.waitForSelector("#tab-flight");
    expect(full.url()).not.toContain("embed");
    course.closeAllConnections();
    course.close();
  });
});

describe("for every eye", () => {
  flow("at 200 % no screen is wider than the window, and no control is out of reach", () => host.origin, async (page) => {
    const screens = {
      "1/gallery": ".cards a",
      "1/run/mutex/maekawa?t=20": '.player[data-known="20"]',
      "1/compare/maekawa-deadlock/maekawa-without-deadlock": '.compare[data-known="0,0"]',
      "1/learn": ".cards a",
      "1/learn/voting/1": ".answers button",
      "1/check/maekawa-slides?n=3": "main button",
      "1/audit?filter=lamport": "main button",
      "1/charts": "main button",
    };
    for (const [fragment, ready] of Object.entries(screens)) {
      await page.goto(host.url(fragment));
      await page.waitForSelector(ready);
      const found = await page.evaluate(() => {
        const scrolls = (e: Element | null): boolean => e !== null && (/auto|scroll/.test(getComputedStyle(e).overflowX) || scrolls(e.parentElement));
        const controls = [...document.querySelectorAll<HTMLElement>("button, a, input, select, textarea")].filter((e) => e.offsetWidth > 0 && !e.closest(".spoken"));
        const canvas = document.querySelector(".space canvas")?.getBoundingClientRect();
        return {
          wide: document.documentElement.scrollWidth - innerWidth,
          beyond: controls.filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !scrolls(e.parentElement)).map((e) => e.textContent),
          low: canvas && canvas.height < 60,
        };
      });
      expect(found, fragment).toEqual({ wide: 0, beyond: [], low: found.low === undefined ? undefined : false });
    }
  }, { context: { viewport: { width: sizes.desktop.width / 2, height: sizes.desktop.height / 2 }, deviceScaleFactor: 2 } });

  flow("types of messages differ without colours, and for those who do not see red and green", () => host.origin, async (page) => {
    await page.goto(host.url("1/run/mutex/maekawa?t=20"));
    await settled(page, 20);
    const chrome = await page.context().newCDPSession(page);
    for (const type of ["achromatopsia", "deuteranopia"] as const) {
      await chrome.send("Emulation.setEmulatedVisionDeficiency", { type });
      const lines: string[] = [];
      for (const line of await page.locator(".legend li:has(svg path + path[fill]) svg").all()) {
        const png = (await line.screenshot()).toString("base64");
        // Where the line has ink, along its middle.
        lines.push(
          await page.evaluate(async (png) => {
            const image = new Image();
            image.src = `data:image/png;base64,${png}`;
            await image.decode();
            const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d") as OffscreenCanvasRenderingContext2D;
            canvas.drawImage(image, 0, 0);
            const { data } = canvas.getImageData(0, Math.floor(image.height / 2), 18, 1);
            return Array.from({ length: 18 }, (_, x) => ((data[4 * x] ?? 0) + (data[4 * x + 1] ?? 0) + (data[4 * x + 2] ?? 0) < 540 ? "#" : " ")).join("");
          }, png),
        );
      }
      expect(lines.length).toBeGreaterThan(3);
      expect(new Set(lines).size, `${type}: ${lines.join("|")}`).toBe(lines.length);
    }
  });
});

describe("what leaves the lab", () => {
  flow("every format is exported", () => host.origin, async (page) => {
    await open(page, host, "1/run/mutex/ricart-agrawala", 0);
    const begins: Record<string, RegExp> = {
      yaml: /^about:/,
      svg: /^<svg /,
      mermaid: /^sequenceDiagram/m,
      shiviz: /clock|\{/,
      jsonl: /^\{"conclave_trace":1/,
      text: /^ricart-agrawala, 3 processes/,
      journal: /^[^]{40}/,
    };
    expect(Object.keys(begins).concat("html").sort(), "every format of the menu is tried").toEqual(Object.keys(strings.share.formats).sort());
    for (const [format, begin] of Object.entries(begins)) {
      const name = (strings.share.formats as Record<string, string>)[format] ?? "";
      await page.click(`text=${strings.share.export}`);
      const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name, exact: true }).click()]);
      const content = readFileSync(await download.path(), "utf8");
      expect(content, format).toMatch(begin);
    }
  });

  flow("a run is saved as one file that plays it from the disk, without an engine", () => host.origin, async (page) => {
    await open(page, host, "1/run/mutex/ricart-agrawala?t=4", 4);
    await page.click(`button:has-text("${strings.share.export}")`);
    const [download] = await Promise.all([page.waitForEvent("download"), page.click(`li >> text=${strings.share.formats.html}`)]);
    expect(download.suggestedFilename()).toBe("mutex-ricart-agrawala.html");
    const dir = mkdtempSync(join(tmpdir(), "conclave-replay-"));
    const file = join(dir, "run.html");
    try {
      await download.saveAs(file);
      expect(statSync(file).size).toBeLessThan(300_000);
      const alone = await page.context().newPage();
      const [requests, errors]: string[][] = [[], []];
      alone.on("request", (request) => void requests?.push(request.url()));
      alone.on("console", (message) => void (message.type() === "error" && errors?.push(message.text())));
      alone.on("pageerror", (error) => void errors?.push(String(error)));
      await alone.goto(pathToFileURL(file).href);
      await settled(alone, 4);
      await accessible(alone);
      // Everything is as the engine says it, at each record.
      const shown = async (at: Page) => [await at.textContent(".states table"), await at.textContent(".caption"), await at.textContent("[data-list]"), await at.textContent(".rules")];
      const told = async (at: Page) => {
        await at.bringToFront(); // a page behind another is drawn rarely
        await at.keyboard.press("Escape");
        await at.keyboard.press("Home");
        await settled(at, 0);
        const count = Number((await position(at))?.split(" of ")[1]);
        const records = [];
        for (let record = 1; record <= count; record++) {
          await at.keyboard.press("ArrowRight");
          await settled(at, record);
          records.push(await shown(at));
        }
        return records;
      };
      const records = await told(page);
      expect(records.length).toBeGreaterThan(10);
      expect(await told(alone)).toEqual(records);
      await alone.keyboard.press("/");
      await alone.keyboard.type("REPLY");
      await alone.keyboard.press("Enter");
      await alone.getByText(/REPLY/).first().waitFor();
      await alone.keyboard.press("Escape");
      await alone.click("#tab-source");
      expect(await alone.locator("textarea").getAttribute("readonly")).not.toBeNull();
      await alone.setViewportSize(sizes.phone);
      await accessible(alone);
      expect(requests, "nothing but the file is loaded").toEqual([pathToFileURL(file).href]);
      expect(errors).toEqual([]);
      await alone.close();
    } finally {
      rmSync(dir, { recursive: true });
    }
  });
});
