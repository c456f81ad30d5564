import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import { brotliCompressSync } from "node:zlib";
import { chromium, type Browser, type Page } from "playwright-core";
import { afterAll, beforeAll, test } from "vitest";
import { encode, plainView } from "../src/url/codec";
import { arguments_, executable, repository } from "./browser";
import { exported, type Host } from "./hosts";

/** How often each figure is measured; the median counts. */
const times = 5;

let browser: Browser;
let site: Host;

beforeAll(async () => {
  if (!executable) throw new Error("there is no Chromium; install it, or set CHROMIUM to its path");
  const made = await exported();
  if (!made) throw new Error("the static site was not exported; run make wasm");
  [site, browser] = [made, await chromium.launch({ executablePath: executable, args: [...arguments_, "--enable-precise-memory-info"] })];
});
afterAll(async () => {
  await browser?.close();
  await site?.stop();
});

const rows: [string, string][] = [];
const note = (what: string, figure: string) => void rows.push([what, figure]);

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? NaN;
}

const ms = (values: readonly number[]): string => `${Math.round(median(values))} ms (${Math.round(Math.min(...values))} to ${Math.round(Math.max(...values))})`;
const kB = (n: number): string => `${(n / 1000).toFixed(0)} kB`;
const rate = (n: number): string => `${(n / 1e6).toFixed(2)} M/s`;

/** fresh plays in a page of its own, with nothing in the cache. */
async function fresh<T>(play: (page: Page) => Promise<T>): Promise<T> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: "reduce" });
  try {
    return await play(await context.newPage());
  } finally {
    await context.close();
  }
}

/** Sent is what came of requests to an engine in a worker, with the times at which it came, in ms. */
interface Sent {
  ready: number;
  answers: { seconds: number; result: Record<string, number & string> }[];
}

/** ask starts an engine in a worker of a tab, and asks it one thing after the other. */
const ask = (requests: object[]): Promise<Sent> =>
  fresh(async (page) => {
    await page.goto(`${site.origin}/engine/wasm_exec.js`); // a text of the same origin, without a policy
    return page.evaluate(async (all) => {
      const began = performance.now();
      const worker = new Worker("/engine/worker.js", { type: "module" });
      let hear: (data: { ready?: boolean; failed?: string; header?: { type: string; message?: string } }) => void = () => undefined;
      worker.onmessage = (event) => hear(event.data as never);
      await new Promise<void>((resolve, reject) => {
        hear = (data) => (data.failed ? reject(new Error(data.failed)) : data.ready && resolve());
      });
      const ready = performance.now() - began;
      const answers = [];
      for (const [i, request] of all.entries()) {
        const from = performance.now();
        const result = await new Promise((resolve, reject) => {
          hear = ({ header }) => (header?.type === "result" ? resolve(header) : header?.type === "error" && reject(new Error(header.message)));
          worker.postMessage({ id: i + 1, ...request });
        });
        answers.push({ seconds: (performance.now() - from) / 1000, result });
      }
      worker.terminate();
      return { ready, answers } as never;
    }, requests);
  });

test("sizes", () => {
  const dist = join(repository, "web/dist/assets");
  const sizeOf = (name: string) => brotliCompressSync(readFileSync(join(dist, name))).length;
  const page = readdirSync(dist).filter((name) => !name.startsWith("replay"));
  note("page, JavaScript and CSS, Brotli", kB(page.map(sizeOf).reduce((a, b) => a + b, 0)));
  note("engine, Brotli", kB(statSync(join(repository, "web/engine/engine.wasm.br")).size));
  note("script and style of a page that plays one run, as they are", kB(["replay.js", "replay.css"].map((name) => statSync(join(dist, name)).size).reduce((a, b) => a + b, 0)));
});

test("start", async () => {
  const [paints, readies]: [number[], number[]] = [[], []];
  for (let i = 0; i < times; i++) {
    await fresh(async (page) => {
      await page.goto(site.url("1/gallery"));
      await page.waitForSelector(".cards a");
      readies.push(await page.evaluate(() => performance.now()));
      paints.push(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? NaN));
    });
  }
  note("first contentful paint of the gallery, empty cache, localhost", ms(paints));
  note("the gallery is there: engine loaded, compiled, catalog answered", ms(readies));
});

test("engine", async () => {
  for (const n of [10, 100]) {
    const text = `algorithm: ricart-agrawala\nn: ${n}\nworkload: {regime: saturated}\nlimit: {events: 100000}\n`;
    const rates: number[] = [];
    const ready: number[] = [];
    for (let i = 0; i < times; i++) {
      const { answers, ready: at } = await ask([{ call: "open", text }]);
      ready.push(at);
      rates.push((answers[0]?.result.records ?? NaN) / (answers[0]?.seconds ?? NaN));
    }
    if (n === 10) note("a worker with the engine, until it is ready", ms(ready));
    note(`Ricart-Agrawala, N = ${n}: records of a run with its judges, streamed`, rate(median(rates)));
  }
  const check = { algorithm: "ricart-agrawala", n: 3, entries: 2 };
  const rates: number[] = [];
  for (let i = 0; i < times; i++) {
    const { answers } = await ask([{ call: "check", check }]);
    rates.push((answers[0]?.result.transitions ?? NaN) / (answers[0]?.seconds ?? NaN));
  }
  note("check of Ricart-Agrawala, N = 3, 2 entries each: transitions", rate(median(rates)));
});

test("proof of Ricart-Agrawala for N = 4", { timeout: 300_000 }, async () => {
  const { answers } = await ask([{ call: "check", check: { algorithm: "ricart-agrawala", n: 4, entries: 1, memory: 2 ** 31 } }]);
  const [answer] = answers;
  note(
    "Ricart-Agrawala, N = 4, 1 entry each",
    `${answer?.result.verdict}: ${answer?.result.states} states, ${answer?.result.transitions} transitions in ${answer?.seconds.toFixed(1)} s`,
  );
});

test("scrubbing through 100,000 records", async () => {
  const text = "algorithm: ricart-agrawala\nn: 10\nworkload: {regime: saturated, section: 1}\nlimit: {entries: 5000}\n";
  const fragment = await encode({ page: "run", source: { text }, cursor: 0, view: plainView, others: [] });
  await fresh(async (page) => {
    await page.goto(site.url(fragment.slice(1)));
    await page.waitForSelector(".badge.ended", { timeout: 60_000 });
    const moved = await page.evaluate(async () => {
      const slider = document.querySelector<HTMLInputElement>('input[type="range"]');
      if (!slider) throw new Error("there is no slider");
      const painted: number[] = [];
      const known: number[] = [];
      for (let i = 1; i <= 60; i++) {
        const at = String(1 + ((i * 48271) % Number(slider.max)));
        slider.value = at;
        const from = performance.now();
        slider.dispatchEvent(new Event("input", { bubbles: true }));
        while (document.querySelector("canvas")?.dataset.painted !== at) await new Promise(requestAnimationFrame);
        painted.push(performance.now() - from);
        while (document.querySelector<HTMLElement>(".player")?.dataset.known !== at) await new Promise((resolve) => setTimeout(resolve));
        known.push(performance.now() - from);
      }
      return { painted, known, records: Number(slider.max), heap: (performance as unknown as { memory: { usedJSHeapSize: number } }).memory.usedJSHeapSize };
    });
    note(`run of ${moved.records.toLocaleString("en-US")} records: from the slider to the picture, with the wait for a frame`, ms(moved.painted));
    note("the same, to the states and the sentence", ms(moved.known));
    note("heap of the page with that run", `${(moved.heap / 1e6).toFixed(0)} MB`);
  });
});

test("print", () => {
  const version = browser.version();
  const commit = execFileSync("git", ["-C", repository, "rev-parse", "--short", "HEAD"], { encoding: "utf8" }).trim();
  const model = cpus()[0]?.model.trim() ?? "unknown processor";
  console.log(
    [
      `Measured on ${new Date().toISOString().slice(0, 10)} at ${commit} by \`make web-bench\`: Chromium ${version} without a GPU, ${cpus().length} cores (${model}), load ${loadavg()[0]?.toFixed(0)}. Medians of ${times}, with the least and the most.`,
      "",
      "| what | figure |",
      "| --- | ---: |",
      ...rows.map(([what, figure]) => `| ${what} | ${figure} |`),
    ].join("\n"),
  );
});
