import type { Frame, Page } from "playwright-core";
import { encode, plainView } from "../src/url/codec";
import type { Host } from "./hosts";

/** painted waits until the picture shows a record. */
export async function painted(page: Page | Frame, record: number): Promise<void> {
  await page.waitForSelector(`canvas[data-painted="${record}"]`);
}

/** settled waits until all that the cursor needs has come: states and texts. */
export async function settled(page: Page | Frame, record: number): Promise<void> {
  await painted(page, record);
  await page.waitForSelector(`.player[data-known="${record}"]`);
}

/** position is where the cursor is, such as "#5 of 9". */
export const position = (page: Page) => page.textContent(".at strong");

/** open opens a run and waits until it shows a record. */
export async function open(page: Page, where: Host, fragment: string, record: number): Promise<void> {
  await page.goto(where.url(fragment));
  await settled(page, record);
}

/** pixels is what the picture of the run looks like. */
export const pixels = (page: Page) => page.evaluate(() => document.querySelector<HTMLCanvasElement>(".space canvas")?.toDataURL());

/** runText is the address of a scenario that is no file. */
export const runText = (text: string, cursor = 0) =>
  encode({ page: "run", source: { text }, cursor, view: plainView, others: [] }).then((f) => f.slice(1));

/** focusOn presses Tab until an element that matches has the focus. */
export async function focusOn(page: Page, selector: string, text: string): Promise<void> {
  for (let i = 0; i < 80; i++) {
    const there = await page.evaluate(([s, t]) => document.activeElement?.matches(s ?? "") && document.activeElement.textContent?.includes(t ?? ""), [selector, text]);
    if (there) return;
    await page.keyboard.press("Tab");
  }
  throw new Error(`Tab does not come to ${selector} ${text}`);
}
