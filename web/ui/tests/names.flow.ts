import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect } from "vitest";
import { words } from "../src/strings/dashboard";
import { accessible, flow, useBrowser } from "./browser";
import { Cluster } from "./cluster";

useBrowser();

let cluster: Cluster;

beforeAll(async () => {
  cluster = await Cluster.start();
});
afterAll(async () => cluster?.stop());

const origin = () => cluster.origin(1);

async function open(page: Page, fragment: string): Promise<void> {
  await page.goto(`${origin()}/#${fragment}`);
  await page.waitForSelector(".state.live");
}

const row = (page: Page, name: string) => page.locator("tbody tr", { has: page.getByRole("link", { name, exact: true }) });

flow("shows names as text, whatever is in them", origin, async (page) => {
  const session = await cluster.open("<b>x</b>", "h\u202eost", 1);
  const names = ["<img src=x onerror=alert(1)>", "evil\u202egnp.exe", "a&amp;b\u200b", "שלום/נעול", "{@html x}", "' onclick='alert(1)", "-rf", "x".repeat(500)];
  for (const name of names) await cluster.acquire(session, `odd/${name}`);
  await expect(cluster.acquire(session, "odd/\u0007"), "no name has a control character").rejects.toThrow("control character U+0007");
  await open(page, "locks?prefix=odd/&sort=name");
  await page.getByText(`${names.length} locks held`).waitFor();
  const shown = await page.locator("tbody th").allTextContents();
  expect(shown.map((text) => text.trim()).sort()).toEqual(
    names.map((name) => `odd/${name.replace("\u202e", "\\u{202e}").replace("\u200b", "\\u{200b}")}`).sort(),
  );
  expect(await page.locator("tbody img, tbody b").count()).toBe(0);
  for (const name of names) {
    await page.goto(`${origin()}/#locks?${new URLSearchParams({ prefix: "odd/", name: `odd/${name}` })}`);
    await page.getByText("Held by <b>x</b> 1 on h\\u{202e}ost for").waitFor();
  }
  await cluster.post("close", { session });
});

// A session keeps 1,024 answers for a second, so many take so many locks at once.
let many: string[] = [];
const before = async () => (await cluster.status(await cluster.leader())).locks;

/** fill takes locks until so many are held. */
async function fill(from: number, to: number): Promise<void> {
  let next = from;
  await Promise.all(
    many.map(async (session) => {
      while (next < to) await cluster.acquire(session, `many/${String(next++).padStart(6, "0")}`);
    }),
  );
}

flow("10,000 locks are sorted, filtered and scrolled; more are shown by rank", origin, async (page) => {
  many = await Promise.all(Array.from({ length: 64 }, () => cluster.open("many", "db1")));
  const [first = "", second = ""] = many;
  await cluster.acquire(first, "awaited");
  await cluster.acquire(first, "zzz");
  cluster.queue(second, "awaited");
  const others = await before();
  await fill(0, 10_000 - others);
  await open(page, "locks?sort=name");
  await page.getByText("10,000 locks held").waitFor();
  expect(await page.locator("tbody tr:not(.pad)").count()).toBeLessThan(80);
  await page.locator(".scroll").evaluate((e) => void (e.scrollTop = e.scrollHeight));
  await row(page, "zzz").waitFor();
  const shown = async () => (await page.locator("tbody tr:not(.pad) th").allTextContents()).map((name) => name.trim());
  expect(await shown(), "by name").toEqual((await shown()).sort());
  await page.getByLabel(words.sort).selectOption("queue");
  await page.locator(".scroll").evaluate((e) => void (e.scrollTop = 0));
  await row(page, "awaited").waitFor();
  await page.getByLabel(words.prefix).fill("many/00100");
  await page.getByText("10 locks held").waitFor();
  await page.getByLabel(words.prefix).fill("");
  await page.getByText("10,000 locks held").waitFor();
  await fill(10_000 - others, 10_010);
  await page.getByText(words.tooMany("locks")).waitFor();
  await row(page, "awaited").waitFor();
  expect(await page.locator("tbody tr:not(.pad)").count()).toBeLessThanOrEqual(50);
  await page.getByLabel(words.sort).selectOption("age");
  const { locks } = (await (await fetch(`${origin()}/v1/locks?order=age&limit=50`)).json()) as { locks: { name: string }[] };
  await expect.poll(async () => (await shown()).slice(0, 10), { message: "the oldest first" }).toEqual(locks.slice(0, 10).map((lock) => lock.name));
  const edges = await page.evaluate(() => [".scroll table", ".scroll tbody tr:not(.pad) td:last-child"].map((at) => document.querySelector(at)?.getBoundingClientRect().right));
  expect(edges[1], "the last column ends where the table does").toBe(edges[0]);
  await accessible(page);
  await page.getByLabel(words.prefix).fill("many/00000");
  await page.getByText("10 locks held").waitFor();
  for (const session of many) await cluster.post("close", { session });
});
