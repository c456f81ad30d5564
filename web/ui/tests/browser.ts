import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { chromium, type Browser, type BrowserContextOptions, type Frame, type Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";

/** The browser of the system: none is downloaded. */
export const executable = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((path) => path && existsSync(path));

/** How it is started. */
export const arguments_ = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--force-color-profile=srgb",
] as const;

/** Where tests of continuous integration run, a missing browser is a failure. */
const required = process.env.WEB_TEST_REQUIRED === "1";

export const repository = fileURLToPath(new URL("../../..", import.meta.url));
const kept = fileURLToPath(new URL("../.shots/", import.meta.url));
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export const sizes = { desktop: { width: 1280, height: 800 }, phone: { width: 390, height: 844 } } as const;

/** Addresses that a page may reach: those of its own origin, and what needs no network. */
const ownOrigin = (url: string, origin: string) => url.startsWith(origin) || url.startsWith("data:") || url.startsWith("blob:");

/** What a page did that it must not do. */
export interface Guard {
  foreign: string[];
  policy: string[];
  errors: string[];
}

interface Options {
  /** What the browser is like. A function is asked when the flow begins. */
  context?: BrowserContextOptions | (() => BrowserContextOptions);
  /** Messages on the console that this flow provokes. */
  expected?: RegExp;
}

let browser: Browser | undefined;

/** useBrowser starts one browser for the flows of a file. */
export function useBrowser(): void {
  beforeAll(async () => {
    if (!executable) {
      if (required) throw new Error("there is no Chromium; install it, or set CHROMIUM to its path");
      console.log("there is no Chromium: the flows are skipped");
      return;
    }
    browser = await chromium.launch({
      executablePath: executable,
      args: [...arguments_],
    });
  });
  afterAll(async () => browser?.close());
}

/**
 * flow plays one flow in a page of its own. It fails if a request leaves the origin, if
 * the content policy reports anything, or at an error of a script. A flow that fails
 * leaves a trace in .shots.
 */
export function flow(name: string, origin: () => string, play: (page: Page, guard: Guard) => Promise<void>, options: Options = {}): void {
  test(name, async (t) => {
    if (!browser) return t.skip();
    const special = typeof options.context === "function" ? options.context() : options.context;
    const context = await browser.newContext({ viewport: sizes.desktop, colorScheme: "light", reducedMotion: "reduce", ...special });
    await context.grantPermissions(["clipboard-read", "clipboard-write"]).catch(() => undefined);
    // Snapshots show each step. Screenshots of each would take a tenth of the time.
    await context.tracing.start({ screenshots: false, snapshots: true });
    const page = await context.newPage();
    page.setDefaultTimeout(15_000);
    const guard: Guard = { foreign: [], policy: [], errors: [] };
    page.on("request", (request) => {
      if (!ownOrigin(request.url(), origin())) guard.foreign.push(request.url());
    });
    page.on("console", (message) => {
      if (message.type() !== "error" || options.expected?.test(message.text())) return;
      if (/Content Security Policy|TrustedScript|Trusted Type/i.test(message.text())) guard.policy.push(message.text());
      else guard.errors.push(message.text());
    });
    page.on("pageerror", (error) => {
      if (!options.expected?.test(String(error))) guard.errors.push(String(error.stack ?? error));
    });
    try {
      await play(page, guard);
      expect(guard).toEqual({ foreign: [], policy: [], errors: [] });
      await context.tracing.stop();
    } catch (error) {
      mkdirSync(kept, { recursive: true });
      const file = kept + name.replaceAll(/\W+/g, "-");
      await page.screenshot({ path: `${file}.png` }).catch(() => undefined);
      await context.tracing.stop({ path: `${file}.zip` });
      throw error;
    } finally {
      await context.close();
    }
  });
}

/** accessible fails if axe-core finds a violation on the page as it is. */
export async function accessible(page: Page | Frame): Promise<void> {
  await page.evaluate(axe);
  const found = await page.evaluate(async () => {
    const result = await (globalThis as unknown as { axe: { run(): Promise<{ violations: { id: string; nodes: { target: string[]; failureSummary: string }[] }[] }> } }).axe.run();
    return result.violations.map((v) => `${v.id}: ${v.nodes.map((n) => `${n.target.join(" ")} (${n.failureSummary})`).join("; ")}`);
  });
  expect(found).toEqual([]);
}

/** picture writes a screenshot for the documents, if SHOTS says so. */
export async function picture(page: Page, path: string): Promise<void> {
  if (process.env.SHOTS !== "1") return;
  const file = repository + path;
  mkdirSync(file.slice(0, file.lastIndexOf("/")), { recursive: true });
  writeFileSync(file, await page.screenshot({ animations: "disabled" }));
}

/** views writes a screen in light colours, in dark ones, and on a phone, if SHOTS says so. */
export async function views(page: Page, path: string): Promise<void> {
  await picture(page, path);
  if (process.env.SHOTS !== "1") return;
  const painted = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  await page.emulateMedia({ colorScheme: "dark" });
  await painted();
  await picture(page, path.replace(".png", "-dark.png"));
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize(sizes.phone);
  await painted();
  await picture(page, path.replace(".png", "-phone.png"));
  await page.setViewportSize(sizes.desktop);
  await painted();
}
