import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect } from "vitest";
import { lab as strings } from "../src/strings/lab";
import { tables } from "../src/strings/tables";
import { accessible, flow, picture, repository, sizes, useBrowser, views } from "./browser";
import { built, exported, native, type Host } from "./hosts";
import { focusOn, open, painted, pixels, position, runText, settled } from "./lab";

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

describe("the lab on the native engine", () => {
  flow("from the gallery to the end of a run, by keys only", native_, async (page) => {
    await page.goto(host.url("1/gallery"));
    await page.waitForSelector(".cards a");
    await page.locator(".card:has(code:text-is('mutex/ricart-agrawala')) canvas[data-made]").waitFor();
    await accessible(page);
    await views(page, "docs/lab/gallery.png");
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
    expect(await page.textContent(".objective .plain")).toBe("1, 2, 3 wait forever: nothing can happen any more.");
    await page.keyboard.press("Home");
    await settled(page, 0);
    await page.click("button.badge");
    await settled(page, count);
    await page.keyboard.press("Home");
    await settled(page, 0);
    await page.keyboard.press("End");
    await settled(page, count);
  });

  flow("the map says who waits for whom: FAILED does not count as an answer, and without it the circle stays", native_, async (page) => {
    await open(page, host, "1/run/maekawa-without-deadlock?t=10", 10);
    const map = page.getByRole("complementary", { name: strings.map.title });
    expect(await map.locator("li").allTextContents()).toEqual(["1", "2", "3"].map((from, i) => strings.map.waits(from, [["2", "3", "1"][i] ?? ""], ["GRANT"])));
    expect(await map.locator(".wait.owed").count(), "the GRANT of 3 is on its way to 2").toBe(2);
    // Without FAILED nobody gives a vote back.
    await page.keyboard.press("ArrowLeft");
    await settled(page, 9);
    await page.click('[data-list] [data-row]:has-text("FAILED")');
    await page.click(`.act >> text=${strings.act.lose}`);
    await page.waitForFunction(() => location.hash.includes("/~"));
    await page.keyboard.press("End");
    await map.locator(".ring").waitFor();
    expect(await map.locator(".ring").textContent()).toBe(strings.map.circle("1 → 2 → 3 → 1"));
    expect(await map.locator(".wait.owed").count()).toBe(3);
    await accessible(page);
  });

  flow("the columns of the states say what they mean, and the processes stay in view", native_, async (page) => {
    await open(page, host, "1/run/maekawa-without-deadlock?t=10", 10);
    expect(await page.locator('.states th[scope="col"]:text-is("q")').getAttribute("title")).toBe("the requests that want its vote, oldest first");
    await page.click(`.states summary:has-text("${strings.states.meanings}")`);
    expect(await page.locator(".states dl").textContent()).toContain("the voters whose votes it has");
    const first = page.locator(".states tbody th").first();
    const place = async () => Math.round((await first.boundingBox())?.x ?? -1);
    const scroll = (to: number) => page.evaluate((x) => document.querySelector(".states .body")?.scrollTo(x, 0), to);
    await scroll(0);
    const before = await place();
    await scroll(300);
    expect(await page.evaluate(() => document.querySelector(".states .body")?.scrollLeft), "the table is wider than its panel").toBeGreaterThan(50);
    expect(await place()).toBe(before);
    await accessible(page);
  });

  flow("the gallery finds lessons and runs by their words, and begins with where to start", native_, async (page) => {
    await page.goto(host.url("1/gallery"));
    await page.waitForSelector(".cards a");
    const hrefs = () => page.locator(".cards a").evaluateAll((links) => links.map((link) => link.getAttribute("href")));
    await page.fill("[data-search]", "three voters");
    await expect.poll(async () => (await hrefs()).slice(0, 2)).toEqual(["#1/run/maekawa-deadlock", "#1/run/maekawa-without-deadlock"]);
    await page.fill("[data-search]", "maekawa");
    await expect.poll(async () => (await hrefs()).slice(0, 3)).toEqual(["#1/learn/voting/1", "#1/run/maekawa-deadlock", "#1/run/maekawa-without-deadlock"]);
    await page.waitForSelector(`.about abbr[title*="Coordination and Agreement"]`);
    await accessible(page);
  });

  flow("the arrow keys step the run after a click on a tab, and change the tab for who comes by keys", native_, async (page) => {
    await open(page, host, "1/run/maekawa-deadlock?t=3", 3);
    await page.locator(".legend").getByText(strings.diagram.d("1 ms")).waitFor();
    await page.click("#tab-history");
    await page.keyboard.press("ArrowRight");
    await settled(page, 4);
    expect(await page.getAttribute("#tab-history", "aria-selected")).toBe("true");
    await accessible(page);
    await page.keyboard.press("Shift+Tab");
    expect(await page.evaluate(() => document.activeElement?.id)).toBe("tab-history");
    await page.keyboard.press("ArrowRight");
    expect(await page.getAttribute("#tab-source", "aria-selected")).toBe("true");
    expect(await position(page)).toBe("#4 of 9");
  });

  flow("the address of a place opens it again, to the same pixels and hash", native_, async (page) => {
    await open(page, host, "1/run/mutex/ricart-agrawala", 0);
    const again = await page.context().newPage();
    /** shared is the address that L copies, with the hash of the run up to the cursor. */
    const shared = async (from: Page): Promise<string> => {
      await from.bringToFront();
      await from.evaluate(() => navigator.clipboard.writeText(""));
      await from.keyboard.press("L");
      const copied = () => from.evaluate(() => navigator.clipboard.readText());
      await expect.poll(copied).toContain("#1/run/");
      return copied();
    };
    /** reopened shares the place, opens its address, and compares what both pages show. */
    const reopened = async (record: number): Promise<string> => {
      const url = await shared(page);
      expect(url).toMatch(/&h=[0-9a-f]{12}$/);
      expect(url).not.toContain("engine=");
      await again.bringToFront(); // a page behind another is painted rarely
      await again.goto("about:blank");
      await again.goto(url);
      await settled(again, record);
      expect(await again.textContent(".states table")).toBe(await page.textContent(".states table"));
      expect(await again.locator(".head[aria-pressed=true]").allTextContents()).toEqual(await page.locator(".head[aria-pressed=true]").allTextContents());
      expect(await again.locator(".warn").count()).toBe(0);
      // The texts of other records may still come, here and there.
      await expect.poll(async () => (await pixels(again)) === (await pixels(page))).toBe(true);
      expect(await shared(again)).toBe(url);
      await page.bringToFront();
      return url;
    };
    for (let i = 0; i < 7; i++) await page.keyboard.press("ArrowRight");
    await page.keyboard.press("2");
    await settled(page, 7);
    const url = await reopened(7);
    expect(url).toMatch(/#1\/run\/mutex\/ricart-agrawala\?t=7&p=2&h=[0-9a-f]{12}$/);
    // A scenario that is no file, with a fault, on the other axis, near its end, with a message selected.
    const text = "algorithm: maekawa\nn: 4\nworkload: {commands: [{at: 0, acquire: 1}, {at: 1, acquire: 3}]}\nfaults: [{at: 2, crash: 4}]\n";
    await open(page, host, await runText(text, 9), 9);
    await page.keyboard.press("v");
    await page.click("[data-list] [data-row]");
    expect(await reopened(9)).toMatch(/\/~.*t=9.*a=logical/);
    await again.close();
    // A hash of another run is noticed.
    await page.goto(url.replace(/h=.*/, "h=000000000000"));
    await page.waitForSelector(".warn");
    expect(await page.textContent(".warn")).toContain("This URL was made with another version.");
  });

  flow("a damaged address explains itself", native_, async (page) => {
    const whole = await runText(readFileSync(repository + "lab/scenarios/mutex/lamport.yaml", "utf8"));
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
    await page.waitForSelector(".badge.ended");
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
        states: document.querySelector(".states")?.textContent ?? "",
        caption: document.querySelector(".caption b")?.textContent,
        spoken: document.querySelector('.spoken tr[aria-current="step"] th')?.textContent,
        inside: document.querySelectorAll(".client.inside").length,
        waiting: document.querySelectorAll(".client.waiting").length,
        messages: Number(document.querySelector("#tab-flight .count")?.textContent),
        counters: document.querySelector(".counters")?.textContent ?? "",
        later: [...document.querySelectorAll(".row .age")].map((e) => Number(/#(\d+)/.exec(e.textContent ?? "")?.[1])),
        ends: [...document.querySelectorAll(".row .end")].map((e) => Number(/#(\d+)/.exec(e.textContent ?? "")?.[1] ?? Infinity)),
      }));
      expect(seen.position).toBe(`#${at} of ${count}`);
      expect(seen.states.replaceAll(",", "")).toContain(`after #${at}`);
      expect([seen.caption, seen.spoken].map((text) => text?.replace(/\D/g, ""))).toEqual([String(at), String(at)]);
      expect(seen.inside).toBeLessThanOrEqual(1);
      expect(seen.counters).toContain(`${seen.waiting} waiting`);
      expect(seen.counters).toContain(`${seen.inside} inside`);
      expect(seen.later).toHaveLength(seen.messages);
      expect(seen.later.every((sent) => sent <= at)).toBe(true);
      expect(seen.ends.every((end) => end > at)).toBe(true);
    }
  });

  flow("an error stands at its line, is repaired, and undone", native_, async (page) => {
    await open(page, host, "1/run/mutex/lamport?t=5", 5);
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
    await open(page, host, "1/run/mutex/maekawa?t=20", 20);
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
    await open(page, host, "1/run/maekawa-deadlock?t=9", 9);
    expect(await page.textContent("p.ring")).toBe(strings.map.circle("1 → 2 → 3 → 1"));
    await picture(page, "docs/lab/deadlock.png");
    await page.keyboard.press("m");
    await page.waitForSelector("p.ring", { state: "detached" });
  });

  flow("a run plays to its end, and is drawn while it plays", native_, async (page) => {
    await open(page, host, "1/run/mutex/maekawa", 0);
    await page.selectOption(".speed select", { label: strings.scrubber.speeds("5") });
    await page.keyboard.press("Space");
    await page.waitForFunction(() => {
      const painted = Number(document.querySelector<HTMLElement>(".space canvas")?.dataset.painted);
      return painted > 3 && painted < 30;
    });
    await page.waitForSelector(`button[title="${strings.scrubber.play}"]`);
    expect(await page.isDisabled(`button[title="${strings.scrubber.next}"]`)).toBe(true);
  });

  flow("a search finds the deadlock, and opens it, by keys only", native_, async (page) => {
    await page.goto(host.url("1/check/maekawa-slides?n=3"));
    await page.getByRole("button", { name: strings.check.run, exact: true }).waitFor();
    await focusOn(page, "button", strings.check.run);
    await page.keyboard.press("Enter");
    await page.waitForSelector(".verdict.violated");
    expect(await page.textContent(".verdict")).toContain("after 6 steps");
    // Each step is told, and the point of no return is step 4: nobody can save the promises any more.
    expect(await page.locator(".story li").count()).toBe(6);
    expect(await page.textContent(".story li:has(.fate)")).toMatch(/^4 3 asks to enter .*After step 4 no schedule keeps the promises\.$/);
    await accessible(page);
    await views(page, "docs/lab/check.png");
    await focusOn(page, "button", strings.check.open);
    await page.keyboard.press("Enter");
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
    await page.goto(host.url("1/check/ricart-agrawala?n=4&entries=2"));
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
    await open(page, host, "1/run/mutex/ricart-agrawala?t=9", 9);
    await picture(page, "docs/lab/run-light.png");
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

  flow("keys find entries, processes, records and the past", native_, async (page) => {
    await open(page, host, "1/run/mutex/ricart-agrawala", 0);
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
    await open(page, host, "1/run/mutex/maekawa?t=20", 20);
    await accessible(page);
    await picture(page, "docs/lab/run-dark.png");
    await page.goto(host.url("1/gallery"));
    await page.waitForSelector(".cards a");
    await accessible(page);
  }, { context: { colorScheme: "dark" } });

  flow("a phone: tabs, touch and the slider", native_, async (page) => {
    await open(page, host, "1/run/mutex/ricart-agrawala?t=9", 9);
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
    await page.tap(`button[title="${strings.scrubber.start}"]`);
    await painted(page, 0);
    // A tap on a dot goes to its record: the first of process 1 is below its head.
    await page.tap("#tab-states");
    const head = await page.locator('.head[aria-label="Process 1"]').boundingBox();
    const canvas = await page.locator(".space canvas").boundingBox();
    if (!head || !canvas) throw new Error("the picture has no place");
    for (let y = canvas.y + 8; (await position(page))?.startsWith("#0 "); y += 6) {
      expect(y, "there is a dot below the head").toBeLessThan(canvas.y + canvas.height);
      await page.touchscreen.tap(head.x + head.width / 2, y);
      await page.evaluate(() => new Promise(requestAnimationFrame));
    }
    expect(await page.textContent(".caption, .spoken [aria-live]")).toMatch(/^#\d+\W+1 /);
  }, { context: { viewport: sizes.phone, hasTouch: true, isMobile: true } });
});

describe("the lab as a static site", () => {
  flow("runs in the browser alone", () => site?.origin ?? "", async (page) => {
    if (!site) return;
    await open(page, site, "1/run/maekawa-deadlock?t=4", 4);
    await page.keyboard.press("ArrowRight");
    await settled(page, 5);
    expect(await page.textContent(".badge")).toContain("violated: progress");
  });

  flow("starts the engine again when it ends, where it was", () => site?.origin ?? "", async (page) => {
    if (!site) return;
    await open(page, site, "1/run/mutex/lamport?t=6", 6);
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
