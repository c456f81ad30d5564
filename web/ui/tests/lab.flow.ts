import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect } from "vitest";
import { encode, plainView } from "../src/url/codec";
import { lab as strings } from "../src/strings/lab";
import { tables } from "../src/strings/tables";
import { accessible, flow, picture, repository, sizes, useBrowser } from "./browser";
import { built, exported, native, type Host } from "./hosts";

useBrowser();

let host: Awaited<ReturnType<typeof native>>;
let site: Host | undefined;
let bare: Host;

beforeAll(async () => {
  [host, site, bare] = await Promise.all([native(), exported(), built()]);
  if (!site && process.env.WEB_TEST_REQUIRED === "1") throw new Error("the static site was not exported; run make wasm");
});
afterAll(async () => {
  await Promise.all([host?.stop(), site?.stop(), bare?.stop()]);
});

const native_ = () => host.origin;

/** painted waits until the picture shows a record. */
async function painted(page: Page, record: number): Promise<void> {
  await page.waitForSelector(`canvas[data-painted="${record}"]`);
}

/** settled waits until all that the cursor needs has come: states and texts. */
async function settled(page: Page, record: number): Promise<void> {
  await painted(page, record);
  await page.waitForSelector(`.player[data-known="${record}"]`);
}

const position = (page: Page) => page.textContent(".at strong");

async function open(page: Page, fragment: string, record: number, where: Host = host): Promise<void> {
  await page.goto(where.url(fragment));
  await settled(page, record);
}

const runText = (text: string, cursor = 0) =>
  encode({ page: "run", source: { text }, cursor, view: plainView, others: [] }).then((f) => f.slice(1));

describe("the lab on the native engine", () => {
  flow("from the gallery to the end of a run, by keys only", native_, async (page) => {
    await page.goto(host.url("1/gallery"));
    await page.waitForSelector(".cards a");
    await page.locator(".card:has(code:text-is('mutex/ricart-agrawala')) canvas[data-made]").waitFor();
    await accessible(page);
    await picture(page, "docs/lab/gallery.png");
    await page.keyboard.press("/");
    await page.keyboard.type("maekawa-deadlock");
    await page.waitForFunction(() => document.querySelectorAll(".cards a").length < 10);
    await page.keyboard.press("Tab");
    while (!(await page.evaluate(() => document.activeElement?.getAttribute("href")))?.endsWith("/run/maekawa-deadlock")) await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await settled(page, 0);
    expect(await page.textContent(".objective h1")).toBe("Nobody will ever enter. Find the step after which this is certain.");
    const count = Number((await position(page))?.split(" of ")[1]);
    expect(count).toBeGreaterThan(5);
    for (let record = 1; record <= count; record++) {
      await page.keyboard.press("ArrowRight");
      await settled(page, record);
    }
    expect(await page.isDisabled(`button[title="${strings.scrubber.next}"]`)).toBe(true);
    expect(await page.textContent(".badge")).toContain("violated: progress");
    await page.keyboard.press("Home");
    await settled(page, 0);
    await page.keyboard.press("End");
    await settled(page, count);
  });

  flow("the address of a place opens it again, to the same pixels", native_, async (page) => {
    await open(page, "1/run/mutex/ricart-agrawala", 0);
    for (let i = 0; i < 7; i++) await page.keyboard.press("ArrowRight");
    await page.keyboard.press("2");
    await settled(page, 7);
    await page.keyboard.press("L");
    await page.waitForSelector(".notice.shown");
    const url = await page.evaluate(() => navigator.clipboard.readText());
    expect(url).toMatch(/#1\/run\/mutex\/ricart-agrawala\?t=7&p=2&h=[0-9a-f]{12}$/);
    expect(url).not.toContain("engine=");
    const pixels = (page: Page) => page.evaluate(() => document.querySelector<HTMLCanvasElement>(".space canvas")?.toDataURL());
    const again = await page.context().newPage();
    await again.goto(url);
    await settled(again, 7);
    expect(await again.textContent(".states table")).toBe(await page.textContent(".states table"));
    expect(await again.getAttribute('.head[aria-label="Process 2"]', "aria-pressed")).toBe("true");
    expect(await again.locator(".warn").count()).toBe(0);
    // The texts of other records may still come, here and there.
    await expect.poll(async () => (await pixels(again)) === (await pixels(page))).toBe(true);
    await again.close();
    // A hash of another run is noticed.
    await page.goto(url.replace(/h=.*/, "h=000000000000"));
    await page.waitForSelector(".warn");
    expect(await page.textContent(".warn")).toContain("This URL was made with another version.");
  });

  flow("a damaged address explains itself", native_, async (page) => {
    const whole = await runText(readFileSync(repository + "scenarios/mutex/lamport.yaml", "utf8"));
    await page.goto(host.url(whole.slice(0, -60)));
    await page.waitForSelector("h1");
    expect(await page.textContent("h1")).toBe(strings.trouble.damaged);
    expect(await page.textContent("pre")).toContain("Processes 1 and 2 ask");
    await accessible(page);
    await page.goto(host.url("7/run/mutex/lamport"));
    await page.waitForFunction((text) => document.querySelector("h1")?.textContent === text, strings.trouble.newer);
    await page.goto(host.url("1/run/mutex/lamp"));
    await page.waitForFunction((text) => document.querySelector("h1")?.textContent === text, strings.trouble.scenario("mutex/lamp"));
    await page.click("main a");
    await page.waitForSelector(".cards a");
  });

  flow("states, messages and cursor agree at 50 places of a run of 100,000 records", native_, async (page) => {
    const text = "algorithm: ricart-agrawala\nn: 10\nworkload: {regime: saturated, section: 1}\nlimit: {entries: 5000}\n";
    await page.goto(host.url(await runText(text)));
    await page.waitForFunction(() => Number(document.querySelector(".at strong")?.textContent?.split(" of ")[1]) > 100_000, undefined, { timeout: 40_000 });
    await page.waitForSelector("button.badge");
    const count = Number((await position(page))?.split(" of ")[1]);
    const slider = page.locator('input[type="range"]');
    let seed = 7;
    for (let i = 0; i < 50; i++) {
      seed = (seed * 48271) % 2147483647;
      const at = 1 + (seed % count);
      await slider.evaluate((input: HTMLInputElement, value) => {
        input.value = String(value);
        input.dispatchEvent(new Event("input", { bubbles: true }));
      }, at);
      await settled(page, at);
      const seen = await page.evaluate(() => ({
        position: document.querySelector(".at strong")?.textContent,
        inside: document.querySelectorAll(".client.inside").length,
        counters: document.querySelector(".counters")?.textContent ?? "",
        later: [...document.querySelectorAll(".row .age")].map((e) => Number(/#(\d+)/.exec(e.textContent ?? "")?.[1])),
        ends: [...document.querySelectorAll(".row .end")].map((e) => Number(/#(\d+)/.exec(e.textContent ?? "")?.[1] ?? Infinity)),
      }));
      expect(seen.position).toBe(`#${at} of ${count}`);
      expect(seen.inside).toBeLessThanOrEqual(1);
      expect(seen.counters).toContain(`${seen.inside} inside`);
      expect(seen.later.every((sent) => sent <= at)).toBe(true);
      expect(seen.ends.every((end) => end > at)).toBe(true);
    }
  });

  flow("an error stands at its line, is repaired, and undone", native_, async (page) => {
    await open(page, "1/run/mutex/lamport?t=5", 5);
    await page.keyboard.press("s");
    const editor = page.locator("textarea");
    const good = await editor.inputValue();
    const line = good.split("\n").findIndex((l) => l.startsWith("algorithm:")) + 1;
    await editor.fill(good.replace("algorithm: lamport", "algorithm: lampord"));
    await page.waitForSelector(".problem");
    expect(await page.textContent(".problem strong")).toBe(`${strings.source.line(line)}: `);
    expect(await page.textContent(".problem")).toContain("lampord");
    expect(await page.textContent("li.bad")).toBe(String(line));
    expect(await page.textContent(".problem")).toContain(strings.source.stale);
    await accessible(page);
    await picture(page, "docs/lab/error.png");
    await page.click(`.problem button:has-text("lamport")`);
    await page.waitForSelector(".problem", { state: "detached" });
    expect(await editor.inputValue()).toBe(good);
    await editor.fill(good.replace(/acquire: 2/, "acquire: 3"));
    await page.waitForFunction(() => location.hash.includes("/~"));
    await settled(page, 5);
    // Keys that are shortcuts are letters here.
    await editor.press("End");
    await page.keyboard.type(" # v");
    expect(await editor.inputValue()).toContain(" # v");
    // What is typed slowly is several changes.
    for (let i = 0; i < 6 && (await editor.inputValue()) !== good; i++) {
      await page.click(`text=${strings.source.revert}`);
    }
    expect(await editor.inputValue()).toBe(good);
    await settled(page, 5);
  });

  flow("every format is exported", native_, async (page) => {
    await open(page, "1/run/mutex/ricart-agrawala", 0);
    const begins: Record<string, RegExp> = {
      yaml: /^about:/,
      svg: /^<svg /,
      mermaid: /^sequenceDiagram/m,
      shiviz: /clock|\{/,
      jsonl: /^\{"conclave_trace":1/,
      text: /^ricart-agrawala, 3 processes/,
      journal: /^[^]/,
    };
    for (const [format, begin] of Object.entries(begins)) {
      const name = (strings.share.formats as Record<string, string>)[format] ?? "";
      await page.click(`text=${strings.share.export}`);
      const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name, exact: true }).click()]);
      const content = readFileSync(await download.path(), "utf8");
      expect(content, format).toMatch(begin);
    }
  });

  let own: Awaited<ReturnType<typeof native>> | undefined;
  flow("the engine that ends says so, and the scenario can be kept", () => own?.origin ?? "", async (page) => {
    own = await native();
    await page.goto(own.url("1/run/mutex/lamport?t=4"));
    await settled(page, 4);
    own.process.kill("SIGKILL");
    await page.keyboard.press("ArrowRight");
    await page.waitForSelector('[role="alert"]');
    expect(await page.textContent('[role="alert"]')).toContain(strings.engine.nativeGone);
    await page.click(`[role="alert"] >> text=${strings.engine.copyScenario}`);
    await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toContain("algorithm: lamport");
    await accessible(page);
  }, { expected: /ERR_CONNECTION|ERR_EMPTY|Failed to fetch|ERR_INCOMPLETE/ });

  flow("a run tells itself to screen readers and keeps to what they need", native_, async (page) => {
    await open(page, "1/run/mutex/maekawa?t=20", 20);
    await accessible(page);
    expect(await page.textContent('.spoken [aria-live="polite"]')).toMatch(/^#20 of \d+\. .+/);
    const current = page.locator('.spoken tr[aria-current="step"]');
    expect(await current.locator("th").textContent()).toBe("20");
    const caption = (await page.textContent(".caption"))?.replace(/^#20\s*/, "").trim();
    expect(await current.locator("td").last().textContent()).toBe(caption);
    for (const tab of ["history", "source"]) {
      await page.click(`#tab-${tab}`);
      await accessible(page);
    }
    await page.keyboard.press("Escape");
    await page.click("#tab-flight");
    await page.keyboard.press("?");
    await page.waitForSelector("dialog[open]");
    await accessible(page);
    await page.keyboard.press("Escape");
    await page.keyboard.press(".");
    await page.waitForSelector(".player.presenter");
    await accessible(page);
  });

  flow("who waits for whom is told, and a circle of them named", native_, async (page) => {
    await open(page, "1/run/maekawa-deadlock?t=9", 9);
    expect(await page.textContent("p.ring")).toBe(strings.map.circle("1 → 2 → 3 → 1"));
    await picture(page, "docs/lab/deadlock.png");
    await page.keyboard.press("m");
    await page.waitForSelector("p.ring", { state: "detached" });
  });

  flow("a run plays to its end, and is drawn while it plays", native_, async (page) => {
    await open(page, "1/run/mutex/maekawa", 0);
    await page.selectOption(".speed select", { label: strings.scrubber.speeds("5") });
    await page.keyboard.press("Space");
    await page.waitForFunction(() => {
      const painted = Number(document.querySelector<HTMLElement>(".space canvas")?.dataset.painted);
      return painted > 3 && painted < 30;
    });
    await page.waitForSelector(`button[title="${strings.scrubber.play}"]`);
    expect(await page.isDisabled(`button[title="${strings.scrubber.next}"]`)).toBe(true);
  });

  flow("a search finds the deadlock, and opens it", native_, async (page) => {
    await page.goto(host.url("1/check/maekawa-slides?n=3"));
    await page.getByRole("button", { name: strings.check.run, exact: true }).click();
    await page.waitForSelector(".verdict.violated");
    expect(await page.textContent(".verdict")).toContain("after 6 steps");
    // Each step is told, and the point of no return is step 4: nobody can save the promises any more.
    expect(await page.locator(".story li").count()).toBe(6);
    expect(await page.textContent(".story li:has(.fate)")).toMatch(/^4 3 asks to enter .*After step 4 no schedule keeps the promises\.$/);
    await accessible(page);
    await picture(page, "docs/lab/check.png");
    await page.getByRole("button", { name: strings.check.open, exact: true }).click();
    await settled(page, 7);
    expect(await page.textContent(".caption")).toContain("3 asks to enter");
    expect(await page.textContent(".badge")).toContain("violated: progress");
    await page.keyboard.press("End");
    await page.waitForSelector("p.ring");
  });

  flow("a mistake is predicted, searched and explained", native_, async (page) => {
    await page.goto(host.url("1/check/lamport-no-tie-break"));
    await page.waitForSelector(".predict");
    await accessible(page);
    await page.getByRole("button", { name: strings.check.run, exact: true }).click();
    await page.waitForSelector(".verdict.violated");
    expect(await page.textContent(".variant")).toContain(strings.check.wrong);
  });

  flow("a large search says how far it is, and stops", native_, async (page) => {
    await page.goto(host.url("1/check/ricart-agrawala?n=5&entries=2"));
    await page.getByRole("button", { name: strings.check.run, exact: true }).click();
    await page.waitForSelector(".figures");
    await page.getByRole("button", { name: strings.check.stop, exact: true }).click();
    await page.waitForSelector(`.box:has-text("bounded (stopped)")`);
    await page.getByRole("button", { name: strings.check.run, exact: true }).waitFor();
  });

  flow("a search that needs more memory than it may take is bounded", native_, async (page) => {
    await page.goto(host.url("1/check/ricart-agrawala?n=4&memory=16"));
    await page.getByRole("button", { name: strings.check.run, exact: true }).click();
    await page.waitForSelector(".verdict.bounded");
    expect(await page.textContent(".verdict")).toContain("bound hit (memory)");
    expect(await page.locator(".story").count()).toBe(0);
  });

  let found: Awaited<ReturnType<typeof native>> | undefined;
  flow("the command line opens what it found, at the point of no return", () => found?.origin ?? "", async (page) => {
    found = await native(["check", "maekawa-slides", "--open"]);
    try {
      await page.goto(found.first);
      await settled(page, 7);
      expect(await page.textContent(".badge")).toContain("violated: progress");
      expect(await page.textContent(".caption")).toContain("3 asks to enter");
    } finally {
      await found.stop();
    }
  });

  flow("a cut is drawn; one that is not consistent names the message, and the nearest one is", native_, async (page) => {
    await open(page, "1/run/mutex/ricart-agrawala?t=9", 9);
    await page.keyboard.press("i");
    await page.getByText(strings.cut.consistent).waitFor();
    expect(await page.locator(".ends button").count()).toBe(await page.locator(".head").count());
    // By keys: all of process 1 out, so what others have of it was sent outside.
    const end = page.getByRole("slider", { name: strings.cut.handle("1"), exact: true });
    await end.focus();
    await page.keyboard.press("Home");
    expect(await end.getAttribute("aria-valuenow")).toBe("0");
    await page.getByText(/^✗ Inconsistent\. \d receives REQ of 1 inside \(#\d+\), and 1 sends it outside \(#\d+\)\./).waitFor();
    expect(await page.locator(".crossed").count()).toBeGreaterThan(0);
    await accessible(page);
    await picture(page, "docs/lab/cut.png");
    await page.getByRole("button", { name: strings.cut.repair }).click();
    await page.getByText(strings.cut.consistent).waitFor();
    expect(await page.locator(".crossed").count()).toBe(0);
    // By the pointer: to the end of the line of process 2.
    const other = page.getByRole("slider", { name: strings.cut.handle("2"), exact: true });
    const box = await other.boundingBox();
    if (!box) throw new Error("the end of the cut has no place");
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width / 2, box.y + 280, { steps: 5 });
    await page.mouse.up();
    await page.getByText(strings.cut.inconsistent).waitFor();
    expect(await position(page), "the cursor stays").toMatch(/^#9 of/);
    await page.keyboard.press("i");
    await page.locator(".ends").waitFor({ state: "detached" });
  });

  flow("a run is saved as one file that plays it from the disk, without an engine", native_, async (page) => {
    await open(page, "1/run/mutex/ricart-agrawala?t=4", 4);
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
      for (const at of [page, alone]) {
        await at.keyboard.press("Escape");
        await at.keyboard.press("Home");
        await settled(at, 0);
      }
      const count = Number((await position(alone))?.split(" of ")[1]);
      for (let record = 1; record <= count; record++) {
        for (const at of [page, alone]) {
          await at.keyboard.press("ArrowRight");
          await settled(at, record);
        }
        expect(await shown(alone), `record ${record}`).toEqual(await shown(page));
      }
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

  flow("processes in a frame are cut off from the others, and the links healed", native_, async (page) => {
    await open(page, "1/run/mutex/ricart-agrawala?t=5", 5);
    const heads = await Promise.all(["1", "2"].map(async (label) => page.locator(`.head[aria-label="${strings.diagram.process(label)}"]`).boundingBox()));
    const [first, second] = heads;
    if (!first || !second) throw new Error("the heads have no place");
    const y = first.y + first.height / 2;
    await page.mouse.move(first.x - 20, y);
    await page.mouse.down();
    await page.mouse.move(second.x + second.width + 20, y, { steps: 4 });
    await page.waitForSelector(".frame");
    await page.mouse.up();
    await page.waitForFunction(() => location.hash.includes("/~"));
    await settled(page, 5);
    await page.click("#tab-source");
    expect(await page.locator("textarea").inputValue()).toMatch(/partition: \[\[?1, 2\]/);
    expect(await page.locator(".frame").count()).toBe(0);
    await page.keyboard.press("Escape");
    for (let record = 6; record <= 9; record++) {
      await page.locator(".scroll").first().focus();
      await page.keyboard.press("ArrowRight");
      await settled(page, record);
    }
    await page.keyboard.press("1");
    await page.click(`.act >> text=${strings.act.heal}`);
    await expect.poll(() => page.locator("textarea").inputValue()).toContain("heal");
    await page.click(`.act >> text=${strings.source.revert}`);
    await expect.poll(() => page.locator("textarea").inputValue()).not.toContain("heal");
  });

  flow("a message is lost by hand, and the loss taken back", native_, async (page) => {
    await open(page, "1/run/mutex/ricart-agrawala?t=9", 9);
    const count = await position(page);
    await page.click("[data-list] [data-row]");
    await page.click(`.act >> text=${strings.act.lose}`);
    await page.waitForFunction(() => location.hash.includes("/~"));
    await settled(page, 9);
    await page.click("#tab-source");
    expect(await page.locator("textarea").inputValue()).toContain("lose: REPLY");
    await page.click(`.act >> text=${strings.source.revert}`);
    await page.waitForFunction(() => location.hash.includes("mutex/ricart-agrawala"));
    await expect.poll(() => position(page)).toBe(count);
  });

  flow("the head of an arrow is dragged: the message arrives then, and what follows from it changes", native_, async (page) => {
    await open(page, "1/run/mutex/ricart-agrawala?t=9", 9);
    await page.click("[data-list] [data-row]");
    const head = page.getByRole("slider", { name: strings.late.handle });
    const box = await head.boundingBox();
    if (!box) throw new Error("the head of the arrow has no place");
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    await page.mouse.move(x, y);
    await page.mouse.down();
    await page.mouse.move(x, y + 90, { steps: 6 });
    const told = await head.getAttribute("aria-valuetext");
    expect(told).toMatch(/^[\d.]+ D later$/);
    await page.mouse.up();
    await page.waitForFunction(() => location.hash.includes("/~"));
    await settled(page, 9);
    await page.click("#tab-source");
    expect(await page.locator("textarea").inputValue()).toContain(`, delay: REPLY, from: 3, to: 2, by: ${told?.split(" ")[0]}}`);
    // By keys: one D more, and back.
    await page.click("#tab-flight");
    await page.getByRole("slider", { name: strings.late.handle }).focus();
    await page.keyboard.press("ArrowDown");
    await expect.poll(() => page.locator(".branches button").count()).toBe(3);
    await settled(page, 9);
    await page.keyboard.press("<");
    await expect.poll(() => page.locator(".branches button").count()).toBe(4);
    await page.click("#tab-source");
    await expect.poll(() => page.locator("textarea").inputValue()).toContain("by: -1}");
    await accessible(page);
    await page.click(`.act >> text=${strings.source.revert}`);
    await expect.poll(() => page.locator("textarea").inputValue()).not.toContain("by: -1}");
  });

  flow("a process crashes and restarts by hand; what cannot be done says why", native_, async (page) => {
    await open(page, "1/run/mutex/ricart-agrawala?t=9", 9);
    await page.keyboard.press("3");
    await page.click(`.act >> text=${strings.act.restart}`, { force: true });
    await page.waitForSelector(`.notice:has-text("${strings.act.notDown("3")}")`);
    await accessible(page);
    await page.click(`.act >> text=${strings.act.crash}`);
    await page.waitForFunction(() => location.hash.includes("/~"));
    await settled(page, 9);
    for (let record = 10; record < 16 && (await page.locator(".client.down").count()) === 0; record++) {
      await page.keyboard.press("ArrowRight");
      await settled(page, record);
    }
    expect(await page.locator(".client.down").count()).toBe(1);
    await page.keyboard.press("u");
    await page.waitForFunction(() => location.hash.includes("mutex/ricart-agrawala"));
  });

  flow("a process that crashes and restarts keeps what it has saved", native_, async (page) => {
    await open(page, "1/run/agreement/paxos?t=16", 16);
    const value = (field: string) =>
      page.evaluate((name) => {
        const table = document.querySelector(".states table");
        const column = [...(table?.querySelectorAll("thead th") ?? [])].findIndex((th) => th.textContent?.replace(/◆.*/s, "").trim() === name);
        return table?.querySelectorAll("tbody tr")[0]?.children[column]?.textContent?.replace(/^.*→/s, "").trim();
      }, field);
    expect([await value("v"), await value("own")]).toEqual(["30", "10"]);
    const step = async (until: string) => {
      for (let record = Number(/#(\d+)/.exec((await position(page)) ?? "")?.[1]) + 1; !(await page.textContent(".caption"))?.includes(until); record++) {
        await page.keyboard.press("ArrowRight");
        await settled(page, record);
      }
    };
    await page.keyboard.press("1");
    await page.keyboard.press("c");
    await page.waitForFunction(() => location.hash.includes("/~"));
    await settled(page, 16);
    await step("1 crashes");
    await page.keyboard.press("r");
    await expect.poll(() => page.locator(".branches button").count()).toBe(3);
    await step("1 restarts");
    expect([await value("v"), await value("own")]).toEqual(["30", "0"]);
  });

  flow("a user takes control, lets a message overtake where links keep the order, and plays the rest", native_, async (page) => {
    await page.goto(host.url(await runText("algorithm: lamport\nn: 3\n")));
    await settled(page, 0);
    await page.keyboard.press("End");
    await settled(page, 3);
    await page.keyboard.press("t");
    const turns = (text: string) => page.locator(`.turns .row:has-text("${text}")`);
    const take = async (text: string, record: number) => {
      await turns(text).first().focus();
      await page.keyboard.press("Enter");
      await settled(page, record);
      await page.waitForSelector(`.turns .tools:has-text("${strings.turns.held(record - 3)}")`);
    };
    await take(strings.turns.gives("acquire 1"), 4);
    await accessible(page);
    await take(strings.turns.gives("acquire 2"), 5);
    await take("from 1 arrives at 2", 6);
    await picture(page, "docs/lab/turns.png");
    const late = turns("REPLY");
    expect(await late.getAttribute("aria-disabled")).toBe("true");
    expect(await late.textContent()).toContain("an older REQ is on this link");
    await late.click({ force: true });
    await page.waitForSelector('.notice:has-text("links keep the order")');
    expect(await position(page)).toBe("#6 of 6");
    await page.click(`.turns >> text=${strings.turns.overtake}`);
    await settled(page, 7);
    // What was chosen is text, which the command line runs to the same end.
    await page.click("#tab-source");
    const text = await page.locator("textarea").inputValue();
    expect(text).toContain("    - REPLY 2>1 overtake\n");
    await page.click("#tab-flight");
    await page.keyboard.press("T");
    await expect.poll(async () => Number((await position(page))?.split(" of ")[1])).toBeGreaterThan(12);
    expect(await page.locator(".turns").count()).toBe(0);
    // Undo goes back turn by turn, to where nobody had control.
    for (let i = 0; i < 5; i++) await page.keyboard.press("u");
    await expect.poll(() => position(page)).toBe("#3 of 3");
  });

  flow("an edit in the past makes a branch, and both futures stay", native_, async (page) => {
    await open(page, "1/run/mutex/ricart-agrawala?t=9", 9);
    const whole = await position(page);
    await page.keyboard.press("3");
    await page.keyboard.press("c");
    await page.waitForFunction(() => location.hash.includes("/~"));
    await settled(page, 9);
    const crashed = await position(page);
    const address = () => page.evaluate(() => location.hash.split("?")[0]);
    const ofCrash = await address();
    const branches = page.locator(".branches button");
    expect(await branches.allTextContents()).toEqual([strings.branches.first, expect.stringContaining("crash 3 at")]);
    await accessible(page);
    await page.keyboard.press("[");
    await expect.poll(() => position(page)).toBe(whole);
    await page.waitForFunction(() => location.hash.includes("mutex/ricart-agrawala"));
    // Another one from there: three futures.
    await page.keyboard.press("2");
    await page.keyboard.press("z");
    await expect.poll(() => branches.count()).toBe(3);
    expect(await branches.nth(2).getAttribute("aria-current")).toBe("true");
    await branches.nth(1).click();
    await expect.poll(() => position(page)).toBe(crashed);
    await page.keyboard.press("u");
    await expect.poll(() => position(page)).toBe(whole);
    await page.keyboard.press("U");
    await expect.poll(() => position(page)).toBe(crashed);
    // They stay when the page is loaded again. The address follows a moment after the place.
    await expect.poll(address).toBe(ofCrash);
    await page.reload();
    await expect.poll(() => branches.count()).toBe(3);
    expect(await branches.nth(1).getAttribute("aria-current")).toBe("true");
    await expect.poll(() => position(page)).toBe(crashed);
  });

  flow("keys find entries, processes, records and the past", native_, async (page) => {
    await open(page, "1/run/mutex/ricart-agrawala", 0);
    await page.keyboard.press("n");
    await page.waitForFunction(() => document.querySelector(".client.inside") !== null);
    const first = await position(page);
    await page.keyboard.press("n");
    await page.keyboard.press("p");
    await expect.poll(() => position(page)).toBe(first);
    await page.keyboard.press("g");
    await page.waitForSelector("dialog[open] input");
    await page.keyboard.type("9");
    await page.keyboard.press("Enter");
    await settled(page, 9);
    await page.keyboard.press("/");
    await page.keyboard.type("reply");
    await page.waitForSelector('.search [role="status"]');
    expect(await page.textContent('.search [role="status"]')).toMatch(/\d+ found/);
    await page.keyboard.press("Enter");
    await page.keyboard.press("Escape");
    await page.keyboard.press("v");
    await page.waitForFunction(() => location.hash.includes("a=logical"));
  });

  flow("a run in dark colours", native_, async (page) => {
    await open(page, "1/run/mutex/maekawa?t=20", 20);
    await accessible(page);
    await picture(page, "docs/lab/run-dark.png");
    await page.goto(host.url("1/gallery"));
    await page.waitForSelector(".cards a");
    await accessible(page);
  }, { context: { colorScheme: "dark" } });

  flow("a phone: tabs, touch and the slider", native_, async (page) => {
    await open(page, "1/run/mutex/ricart-agrawala?t=9", 9);
    await accessible(page);
    await picture(page, "docs/lab/phone.png");
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(sizes.phone.width);
    await page.tap("#tab-states");
    await page.waitForSelector(".panel-body table");
    await page.tap(`button[title="${strings.scrubber.next}"]`);
    await painted(page, 10);
    const small = await page.evaluate(() =>
      [...document.querySelectorAll<HTMLElement>(".buttons button, [role=tab], .objective button, header button")].filter((b) => b.offsetHeight > 0 && b.offsetHeight < 44).map((b) => b.textContent),
    );
    expect(small).toEqual([]);
    for (const tab of ["flight", "rules", "history", "source"]) {
      await page.tap(`#tab-${tab}`);
      await accessible(page);
    }
    // A tap on a dot goes to its record.
    await page.tap(`button[title="${strings.scrubber.start}"]`);
    await painted(page, 0);
  }, { context: { viewport: sizes.phone, hasTouch: true, isMobile: true } });

  flow("light, for the documents", native_, async (page) => {
    await open(page, "1/run/mutex/ricart-agrawala?t=9", 9);
    await picture(page, "docs/lab/run-light.png");
  });
});

describe("the lab as a static site", () => {
  flow("runs in the browser alone", () => site?.origin ?? "", async (page) => {
    if (!site) return;
    await open(page, "1/run/maekawa-deadlock?t=4", 4, site);
    await page.keyboard.press("ArrowRight");
    await settled(page, 5);
    expect(await page.textContent(".badge")).toContain("violated: progress");
  });

  flow("starts the engine again when it ends, where it was", () => site?.origin ?? "", async (page) => {
    if (!site) return;
    await open(page, "1/run/mutex/lamport?t=6", 6, site);
    await page.keyboard.press("t");
    await page.waitForSelector(".turns .row");
    await page.keyboard.press("d");
    await page.waitForSelector(`.turns .tools:has-text("${strings.turns.held(1)}")`);
    const at = Number(/#(\d+)/.exec((await position(page)) ?? "")?.[1]);
    const branches = await page.locator(".branches button").allTextContents();
    expect(branches.length).toBe(2);
    // An engine that fails in its first seconds is not started again.
    await page.waitForFunction((started) => performance.now() - started > 3100, await page.evaluate(() => performance.now()));
    const worker = page.workers()[0];
    await worker?.evaluate(() => {
      setTimeout(() => {
        throw new Error("out of memory");
      });
    });
    await page.waitForSelector('[role="alert"]');
    expect(await page.textContent('[role="alert"]')).toContain(strings.engine.restarted);
    // The cursor, the branches and the turns that could be next are as before.
    await settled(page, at);
    expect(await page.locator(".branches button").allTextContents()).toEqual(branches);
    await page.waitForSelector(`.turns .tools:has-text("${strings.turns.held(1)}")`);
    await page.keyboard.press("d");
    await settled(page, at + 1);
    await page.keyboard.press("u");
    await settled(page, at);
  }, { expected: /out of memory/ });

  flow("says when there is no engine", () => bare.origin, async (page) => {
    await page.goto(bare.url("1/run/mutex/lamport"));
    await page.waitForSelector('[role="alert"]');
    const text = (await page.textContent('[role="alert"]')) ?? "";
    expect(text).toContain(strings.engine.none);
    expect(text).toContain("conclave lab");
    await accessible(page);
    await picture(page, "docs/lab/no-engine.png");
  }, { expected: /404|Failed to load|worker/i });

  flow(
    "searches the cell of the audit that an address names",
    () => site?.origin ?? "",
    async (page) => {
      if (!site) return;
      await page.goto(site.url("1/audit?states=2000&filter=raymond&algorithm=raymond&without=no%20crash"));
      await page.getByText(/^✗ Violated: progress, after \d+ steps?\.$/).waitFor();
      await page.getByRole("button", { name: tables.audit.openRun }).click();
      await page.locator(".badge").getByText(strings.badge.violated("progress")).waitFor();
    },
  );
});
