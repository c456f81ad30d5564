import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect } from "vitest";
import type { Course, Step } from "../src/engine/protocol";
import { lab as strings } from "../src/strings/lab";
import { learn } from "../src/strings/learn";
import { accessible, flow, sizes, useBrowser, views } from "./browser";
import { native } from "./hosts";
import { focusOn, settled } from "./lab";

useBrowser();

let host: Awaited<ReturnType<typeof native>>;
let content: Course;

beforeAll(async () => {
  host = await native();
  const token = /engine=(.*)/.exec(host.url("1/learn"))?.[1] ?? "";
  const response = await fetch(new URL("call?worker=test", host.url("").replace(/#.*/, "")), {
    method: "POST",
    headers: { Authorization: `Bearer ${token}` },
    body: JSON.stringify({ id: 1, call: "course" }),
  });
  const frame = Buffer.from(await response.arrayBuffer());
  content = JSON.parse(frame.subarray(8, 8 + frame.readUInt32LE(0)).toString()) as Course;
});
afterAll(() => host?.stop());

const origin = () => host.origin;

const lessonOf = (id: string) => {
  const lesson = content.lessons.find((l) => l.id === id);
  if (!lesson) throw new Error(`there is no lesson ${id}`);
  return lesson;
};

describe("lessons", () => {
  flow("a lesson from start to end with wrong and right answers, by keys only", origin, async (page) => {
    const lesson = lessonOf("schedules");
    await page.goto(host.url("1/learn"));
    await page.waitForSelector(".cards a");
    await accessible(page);
    await views(page, "docs/lab/learn.png");
    await focusOn(page, ".card", lesson.title);
    await page.keyboard.press("Enter");
    for (const [i, step] of lesson.steps.entries()) {
      await page.waitForFunction((text) => document.querySelector(".count")?.textContent === text, learn.step(i + 1, lesson.steps.length));
      await settled(page, step.at);
      // What comes later is not known to the page.
      expect(await page.textContent(".at strong")).toBe(strings.scrubber.at(step.at, step.at));
      expect(await page.locator(".next").count()).toBe(0);
      expect(await page.getByText(strings.rules.never).count()).toBe(0);
      expect(await page.getByText(strings.flight.never).count()).toBe(0);
      const wrong = step.answers.find((a) => !a.right);
      const right = step.answers.find((a) => a.right);
      await focusOn(page, ".answers button", wrong?.text ?? "");
      await page.keyboard.press("Enter");
      await page.waitForFunction((text) => document.querySelector(".outcome")?.textContent?.includes(text), wrong?.why ?? "");
      expect(await page.textContent(".outcome")).toContain(learn.wrong);
      expect(await page.textContent(".outcome")).not.toContain(step.sum);
      await page.keyboard.press("Shift+Tab");
      await page.evaluate(() => document.querySelector<HTMLElement>(".count")?.focus());
      await focusOn(page, ".answers button", right?.text ?? "");
      await page.keyboard.press("Enter");
      await page.waitForFunction((text) => document.querySelector(".outcome")?.textContent?.includes(text), step.sum);
      await settled(page, step.then);
      if (i === 0) expect(await page.getByText(strings.rules.never).count()).toBeGreaterThan(0);
      if (i === 0 || i === lesson.steps.length - 1) await accessible(page);
      if (i === 1) await views(page, "docs/lab/lesson.png");
      if (i + 1 < lesson.steps.length) {
        await focusOn(page, ".next", learn.next);
        await page.keyboard.press("Enter");
      }
    }
    expect(await page.textContent(".on")).toContain(learn.finished);
    await page.goto(host.url("1/learn"));
    await page.waitForSelector(`.card:has-text("${lesson.title}") .meta:has-text("${learn.steps(lesson.steps.length, lesson.steps.length)}")`);
  });

  flow("the first and the last step of every lesson show their runs", origin, async (page) => {
    for (const lesson of content.lessons) {
      for (const i of [0, lesson.steps.length - 1]) {
        const step = lesson.steps[i] as Step;
        await page.goto(host.url(`1/learn/${lesson.id}/${i + 1}`));
        await page.waitForFunction((text) => document.querySelector(".ask")?.textContent === text, step.ask);
        await settled(page, step.at);
        await page.click(`.answers button >> nth=${step.answers.findIndex((a) => a.right)}`);
        await settled(page, step.then);
      }
    }
  });

  flow("a run leads to its lesson, and to its twin", origin, async (page) => {
    await page.goto(host.url("1/run/maekawa-without-deadlock"));
    await settled(page, 0);
    await page.locator(".caption").getByText(/INQUIRE and YIELD need not be sent/).waitFor();
    expect(await page.getByRole("link", { name: strings.twin("maekawa-deadlock") }).getAttribute("href")).toBe("#1/compare/maekawa-deadlock/maekawa-without-deadlock");
    await accessible(page);
    // Also after a change.
    await page.keyboard.press("1");
    await page.click(`.act >> text=${strings.act.crash}`);
    await page.waitForFunction(() => location.hash.includes("/~"));
    expect(await page.getByRole("link", { name: strings.twin("maekawa-deadlock") }).count()).toBe(1);
    await page.getByRole("link", { name: strings.lesson(4) }).click();
    await page.waitForSelector(".ask");
    expect(new URL(page.url()).hash).toBe("#1/learn/voting/1");
    expect(await page.getByRole("link", { name: strings.lesson(4) }).count(), "a lesson has no links out of its run").toBe(0);
  });

  flow("a lesson on a phone", origin, async (page) => {
    const lesson = lessonOf("voting");
    await page.goto(host.url("1/learn/voting/2"));
    await settled(page, lesson.steps[1]?.at ?? 0);
    await accessible(page);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(sizes.phone.width);
    await page.tap(`.answers button >> nth=${lesson.steps[1]?.answers.findIndex((a) => a.right)}`);
    await settled(page, lesson.steps[1]?.then ?? 0);
    await page.goto(host.url("1/learn/none/1"));
    await page.waitForSelector(`[role="alert"]:has-text("${learn.unknown("none")}")`);
  }, { context: { viewport: sizes.phone, hasTouch: true, isMobile: true } });
});

describe("challenges", () => {
  const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });

  flow("a challenge is tried, gets a hint, and is solved", origin, async (page) => {
    await page.goto(host.url("1/learn"));
    await page.click(`.card:has-text("An entry without a message")`);
    await page.waitForSelector(".challenge .goal");
    await page.getByText(`${learn.goal}: One process asks`).waitFor();
    await page.getByText("You may change the requests. In the scenario: workload.commands.").waitFor();
    await settled(page, 0);
    await page.locator(".badge").getByText(strings.badge.goalUnmet).waitFor();
    expect(await button(page, learn.hint).isDisabled()).toBe(true);
    await button(page, learn.grade).click();
    await page.waitForSelector(`.said:has-text("${learn.unmet}")`);
    await button(page, learn.grade).click();
    await button(page, learn.hint).click();
    await page.waitForSelector(".hints li");
    await accessible(page);
    await views(page, "docs/lab/challenge.png");
    // What is not allowed is said.
    await page.click("#tab-source");
    const editor = page.locator("textarea");
    const begin = await editor.inputValue();
    const first = await page.evaluate(() => location.hash);
    await editor.fill(begin.replace("n: 3", "n: 2"));
    await page.waitForFunction((hash) => location.hash !== hash, first);
    await button(page, learn.grade).click();
    await page.waitForSelector(`.said:has-text("${learn.refused}")`);
    const before = await page.evaluate(() => location.hash);
    await editor.fill(begin.replace("acquire: 2", "acquire: 1"));
    await page.locator(".badge").getByText(`✓ ${strings.badge.goalMet}`).waitFor();
    await button(page, learn.grade).click();
    await page.waitForSelector(`.said:has-text("${learn.isSolved}")`);
    await page.waitForSelector(`.said a:has-text("${learn.nextChallenge("Lose the token")}")`);
    // The address of a solution opens it again.
    await page.waitForFunction((hash) => location.hash !== hash && /^#1\/run\/~.*challenge=free-entry/.test(location.hash), before);
    await page.reload();
    await page.waitForSelector(".challenge .goal");
    await button(page, learn.grade).click();
    await page.waitForSelector(`.said:has-text("${learn.isSolved}")`);
    await page.click(`.challenge a:has-text("${learn.challenge}")`);
    await page.waitForSelector(`.card:has-text("An entry without a message") .meta:has-text("${learn.solved}")`);
  });

  flow("a challenge is solved by acting on the run", origin, async (page) => {
    await page.goto(host.url("1/learn"));
    await page.click(`.card:has-text("Lose the token")`);
    await page.waitForSelector(".challenge .goal");
    await settled(page, 0);
    for (let record = 1; record <= 5; record++) {
      await page.keyboard.press("ArrowRight");
      await settled(page, record);
    }
    await page.click('[data-list] [data-row]:has-text("TOKEN")');
    await page.click(`.act >> text=${strings.act.lose}`);
    await page.waitForFunction(() => location.hash.includes("challenge=lose-the-token"));
    await button(page, learn.grade).click();
    await page.waitForSelector(`.said:has-text("${learn.isSolved}")`);
  });

  flow("a goal that is met with a change that is not allowed is not called met", origin, async (page) => {
    await page.goto(host.url("1/learn"));
    await page.click(`.card:has-text("A deadlock of two")`);
    await page.waitForSelector(".challenge .goal");
    await settled(page, 0);
    await page.locator(".badge").getByText(strings.badge.goalUnmet).waitFor();
    await button(page, learn.grade).click();
    await page.waitForSelector(`.said:has-text("${learn.unmet} This run breaks no promise. The goal is a violation of progress. At the end 0 processes wait. The goal is 2.")`);
    await page.click("#tab-source");
    const editor = page.locator("textarea");
    await editor.fill(`${await editor.inputValue()}faults:\n  - {at: 0, crash: 3}\n`);
    await page.locator(".badge").getByText(strings.badge.goalRefused).waitFor();
    await accessible(page);
    await button(page, learn.grade).click();
    await page.waitForSelector(`.said:has-text("${learn.refused} You changed faults. You may change only workload.commands, schedule.")`);
  });

  flow("what is impossible is said with the reason", origin, async (page) => {
    const challenge = content.challenges.find((c) => c.id === "two-requests");
    await page.goto(host.url("1/learn"));
    await page.click(`.card:has-text("${challenge?.title}")`);
    await page.waitForSelector(".challenge .goal");
    await button(page, learn.impossible).click();
    const wrong = challenge?.reasons.find((r) => !r.right);
    const right = challenge?.reasons.find((r) => r.right);
    await button(page, wrong?.text ?? "").click();
    await page.waitForSelector(`.said:has-text("${learn.notSolved}")`);
    await accessible(page);
    await button(page, right?.text ?? "").click();
    await page.waitForSelector(`.said:has-text("${learn.isImpossible}")`);
  });
});
