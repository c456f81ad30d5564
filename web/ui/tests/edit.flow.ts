import { afterAll, beforeAll, expect } from "vitest";
import { lab as strings } from "../src/strings/lab";
import { accessible, flow, picture, useBrowser } from "./browser";
import { native } from "./hosts";
import { open, position, runText, settled } from "./lab";

useBrowser();

let host: Awaited<ReturnType<typeof native>>;

beforeAll(async () => {
  host = await native();
});
afterAll(async () => host?.stop());

const native_ = () => host.origin;

flow("processes in a frame are cut off from the others, and the links healed", native_, async (page) => {
  await open(page, host, "1/run/mutex/ricart-agrawala?t=5", 5);
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
  const captions: (string | null)[] = [];
  for (let record = 6; record <= 9; record++) {
    await page.locator(".scroll").first().focus();
    await page.keyboard.press("ArrowRight");
    await settled(page, record);
    captions.push(await page.textContent(".caption"));
  }
  expect(captions.join("\n"), "what leaves the frame is lost").toMatch(/from [12] to 3 is lost/);
  await page.keyboard.press("1");
  await page.click(`.act >> text=${strings.act.heal}`);
  await expect.poll(() => page.locator("textarea").inputValue()).toContain("heal: all");
  await page.click(`.act >> text=${strings.source.revert}`);
  await expect.poll(() => page.locator("textarea").inputValue()).not.toContain("heal");
});

flow("a message is lost, by keys only: a branch, both futures, and undo", native_, async (page) => {
  await open(page, host, "1/run/mutex/ricart-agrawala?t=9", 9);
  const whole = await position(page);
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.locator('[data-list] [data-row][aria-pressed="true"]').waitFor();
  await page.keyboard.press("x");
  await page.waitForFunction(() => location.hash.includes("/~"));
  await settled(page, 9);
  const branches = page.locator(".branches button");
  expect(await branches.allTextContents()).toEqual([strings.branches.first, expect.stringContaining("lose REPLY")]);
  /** waiting is who waits at the end of a future, if anybody. */
  const waiting = async () => {
    await page.keyboard.press("End");
    const count = Number((await position(page))?.split(" of ")[1]);
    await settled(page, count);
    return page.locator(".client.waiting").count();
  };
  const lost = await position(page);
  expect(lost).not.toBe(whole);
  expect(await waiting(), "without the REPLY a process waits forever").toBe(1);
  await page.keyboard.press("[");
  await expect.poll(() => branches.first().getAttribute("aria-current")).toBe("true");
  await page.waitForFunction(() => location.hash.includes("mutex/ricart-agrawala"));
  expect(await waiting(), "the other future is as it was").toBe(0);
  await page.keyboard.press("]");
  await expect.poll(() => branches.nth(1).getAttribute("aria-current")).toBe("true");
  await page.waitForFunction(() => location.hash.includes("/~"));
  expect(await waiting()).toBe(1);
  await page.keyboard.press("u");
  await page.waitForFunction(() => location.hash.includes("mutex/ricart-agrawala"));
  expect((await position(page))?.split(" of ")[1]).toBe(whole?.split(" of ")[1]);
});

flow("the head of an arrow is dragged: the message arrives then, and what follows from it changes", native_, async (page) => {
  await open(page, host, "1/run/mutex/ricart-agrawala?t=9", 9);
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
  expect((await page.getByRole("slider", { name: strings.late.handle }).boundingBox())?.y, "its head is lower").toBeGreaterThan(box.y + 60);
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
  await open(page, host, "1/run/mutex/ricart-agrawala?t=9", 9);
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
  await open(page, host, "1/run/agreement/paxos?t=16", 16);
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
  await late.focus();
  await page.keyboard.press("Enter");
  await page.waitForSelector('.notice:has-text("links keep the order")');
  expect(await position(page)).toBe("#6 of 6");
  await page.keyboard.press("Tab");
  expect(await page.evaluate(() => document.activeElement?.textContent)).toBe(strings.turns.overtake);
  await page.keyboard.press("Enter");
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

flow("the choices begin at the cursor, also between records of the same time", native_, async (page) => {
  await open(page, host, "1/run/maekawa-deadlock?t=5", 5);
  await page.keyboard.press("t");
  const row = (text: string) => page.locator(`.turns .row:has-text("${text}")`);
  await row(strings.turns.gives("acquire 3")).first().waitFor();
  expect(await page.locator(".turns .tools").textContent()).toContain(strings.turns.free);
  expect(await row("from 3 arrives").count(), "3 has not asked yet").toBe(0);
  await row("from 1 arrives at 2").focus();
  await page.keyboard.press("Enter");
  await settled(page, 6);
  expect(await position(page)).toBe("#6 of 6");
  expect(await page.textContent(".caption")).toContain("2 gets REQ from 1");
  expect(await page.locator(".client.waiting").count(), "1 and 2 wait, 3 has not asked").toBe(2);
});

flow("an edit in the past makes a branch, and both futures stay", native_, async (page) => {
  await open(page, host, "1/run/mutex/ricart-agrawala?t=9", 9);
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
