import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect } from "vitest";
import { words } from "../src/strings/dashboard";
import { accessible, flow, picture, sizes, useBrowser } from "./browser";
import { Cluster, eventually } from "./cluster";

useBrowser();

let cluster: Cluster;
let at = 1; // the server whose page is shown

beforeAll(async () => {
  cluster = await Cluster.start();
});
afterEach(() => cluster.restore());
afterAll(async () => cluster?.stop());

const origin = () => cluster.origin(at);

/** A browser reports each request that fails; flows in which servers die expect it. */
const dying = { expected: /Failed to load resource|ERR_|net::|Failed to fetch/ };

async function open(page: Page, fragment: string): Promise<void> {
  await page.goto(`${origin()}/#${fragment}`);
  await page.waitForSelector(".state.live");
}

/** The level that a new cluster comes to by itself. */
const newest = 5;

const row = (page: Page, name: string) => page.locator("tbody tr", { has: page.getByRole("link", { name, exact: true }) });

const problem = (page: Page, text: string | RegExp) => page.getByRole("region", { name: words.problems }).getByText(text).first().waitFor();

/** mark leaves something in the page that a reload would take away. */
const mark = (page: Page) => page.evaluate(() => void ((globalThis as { marked?: boolean }).marked = true));
/** noting lets the page note when something is shown, and returns what waits for that: how long it took since a moment, in ms. */
async function noting(page: Page, selector: string): Promise<(since: number) => Promise<number>> {
  await page.evaluate((selector) => {
    const note = globalThis as { shownAt?: number };
    delete note.shownAt;
    const look = () => void (document.querySelector(selector) ? (note.shownAt = Date.now()) : setTimeout(look, 20));
    look();
  }, selector);
  return async (since) => {
    const shown = await page.waitForFunction(() => (globalThis as { shownAt?: number }).shownAt);
    return Number(await shown.jsonValue()) - since;
  };
}

/** What is stale is marked after 2 s at most. The rest is for a busy machine. */
const markedAfter = 2500;
const marked = (page: Page) => page.evaluate(() => (globalThis as { marked?: boolean }).marked === true);

describe("an empty cluster", () => {
  flow("shows no tab for namespaces at a level that has none, and their address says why", origin, async (page) => {
    await expect.poll(() => cluster.level(), { timeout: 10_000 }).toBe(newest);
    for (let level = newest - 1; level >= 2; level--) await cluster.post("upgrade", { action: "lower", level });
    await open(page, "cluster");
    await page.locator(".servers tbody tr").first().waitFor();
    expect(await page.getByRole("link", { name: words.tabs.namespaces, exact: true }).count()).toBe(0);
    await open(page, "namespaces");
    await page.getByText(/An algorithm between the servers may guard locks from level 3 .* This cluster is at level 2\./).waitFor();
    await accessible(page);
    for (let level = 3; level <= newest; level++) await cluster.post("upgrade", { action: "finish", level });
  });

  flow("says what would appear, and rows appear when locks are taken", origin, async (page) => {
    await open(page, "locks");
    await page.getByText(words.noNames.locks).waitFor();
    await accessible(page);
    const session = await cluster.open("report", "db1");
    const hold = await cluster.acquire(session, "first");
    await row(page, "first").getByText("report 4711 on db1").waitFor();
    await page.getByText("1 lock held").waitFor();
    await cluster.post("release", { session, hold });
    await page.getByText(words.noNames.locks).waitFor();
    await open(page, "elections");
    await page.getByText(words.noNames.elections).waitFor();
    await cluster.post("close", { session });
    await open(page, "sessions");
    await page.getByText(words.noSessions).waitFor();
  });
});

describe("a cluster at work", () => {
  let sessions: string[] = [];

  beforeAll(async () => {
    const programs = ["report", "indexer", "billing", "deploy"];
    sessions = await Promise.all(Array.from({ length: 12 }, (_, i) => cluster.open(programs[i % 4] ?? "", ["db1", "db2", "app3"][i % 3] ?? "", 4000 + 7 * i)));
    const [a = "", b = "", c = "", d = ""] = sessions;
    for (let i = 0; i < 6; i++) await cluster.post("release", { session: b, hold: await cluster.acquire(b, "reports/nightly") });
    await cluster.acquire(a, "reports/nightly");
    await cluster.acquire(b, "reports/weekly");
    await cluster.acquire(c, "billing/run-2026-11");
    for (const name of ["index/shard-1", "index/shard-2", "deploy/eu", "deploy/us"]) await cluster.acquire(d, name);
    for (const session of sessions.slice(4, 9)) cluster.queue(session, "reports/nightly");
    for (const session of sessions.slice(9, 11)) cluster.queue(session, "billing/run-2026-11");
    for (const session of [a, b, c]) await cluster.acquire(session, "docs/handbook", { shared: true });
    for (const session of [a, b]) await cluster.acquire(session, "pool/gpu", { limit: 3 });
    await cluster.post("campaign", { session: a, name: "scheduler", value: "app3:9000" });
  });
  // A lock that others wait for longer than usual is a problem, which later flows do not expect.
  afterAll(() => Promise.all(sessions.slice(4, 11).map((session) => cluster.post("close", { session }))));

  flow("shows servers, locks, why, elections and sessions, all by keys", origin, async (page) => {
    await open(page, "cluster");
    await page.getByText(words.noProblem).waitFor();
    await page.locator(".servers tbody tr").nth(2).waitFor();
    await accessible(page);
    await picture(page, "docs/dashboard/cluster-light.png");
    await page.keyboard.press("g");
    await page.keyboard.press("l");
    await row(page, "reports/nightly").getByText("report 4000 on db1").waitFor();
    await row(page, "docs/handbook").getByText("shared, +2").waitFor();
    await row(page, "pool/gpu").getByText("2 of 3").waitFor();
    expect(await page.locator("tbody th").first().textContent()).toContain("reports/nightly");
    await page.keyboard.press("j");
    await page.getByText("5 wait, the first in front:").waitFor();
    expect(await page.locator(".past li").count()).toBe(6);
    await page.keyboard.press("Enter");
    expect(await page.evaluate(() => document.activeElement?.className)).toContain("why");
    await accessible(page);
    await picture(page, "docs/dashboard/locks-light.png");
    await page.keyboard.press("j");
    await page.getByText("2 wait, the first in front:").waitFor();
    expect(new URL(page.url()).hash).toBe("#locks?name=billing%2Frun-2026-11");
    await page.keyboard.press("Escape");
    await page.getByText(words.whyEmpty).waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("reports/");
    const streams: string[] = [];
    page.on("request", (request) => void (request.url().includes("/v1/watch") && streams.push(request.url())));
    await page.getByText("2 locks held").waitFor();
    expect(await page.locator("tbody tr").count()).toBe(2);
    expect(streams.length, "one stream for a prefix, however it is typed").toBeLessThanOrEqual(1);
    await page.keyboard.type("none");
    await page.getByText(words.noNamesUnder("reports/none", "locks")).waitFor();
    await page.keyboard.press("Escape");
    await page.keyboard.press("g");
    await page.keyboard.press("e");
    await row(page, "scheduler").getByText("app3:9000").waitFor();
    await accessible(page);
    await page.keyboard.press("g");
    await page.keyboard.press("s");
    await page.getByText("12 sessions").waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("indexer");
    await page.getByText("3 of 12 sessions").waitFor();
    await accessible(page);
    await page.keyboard.press("Escape");
    await page.keyboard.press("?");
    await page.getByRole("dialog").getByText("next and previous row").waitFor();
    await accessible(page);
  });

  flow(
    "is readable in the dark and on a phone",
    origin,
    async (page) => {
      await open(page, "locks?name=reports%2Fnightly");
      await page.getByText("5 wait, the first in front:").waitFor();
      await accessible(page);
      await picture(page, "docs/dashboard/locks-dark.png");
      await page.setViewportSize(sizes.phone);
      await page.getByText("5 wait, the first in front:").waitFor();
      await accessible(page);
      await page.keyboard.press("Escape");
      await open(page, "cluster");
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      expect(wide).toBeLessThanOrEqual(sizes.phone.width);
      await accessible(page);
      await picture(page, "docs/dashboard/cluster-phone.png");
    },
    { context: { colorScheme: "dark" } },
  );

  flow("tells of a holder that was asked to leave until it has left", origin, async (page) => {
    await open(page, "cluster");
    const [, , , holder = ""] = sessions;
    await cluster.post("revoke", { session: sessions[0] ?? "", lock: "deploy/eu", reason: "db1 goes down" });
    await page.getByRole("link", { name: /deploy 4021 on db1 was asked to leave deploy\/eu and has not left: db1 goes down/ }).click();
    await page.getByText(words.askedBecause("db1 goes down")).waitFor();
    const locks = (await (await fetch(`${origin()}/v1/locks?prefix=deploy/eu`)).json()) as { locks: { holders: { hold: string }[] }[] };
    await cluster.post("release", { session: holder, hold: locks.locks[0]?.holders[0]?.hold ?? "" });
    await page.getByText(words.free).waitFor();
    await page.getByText(words.noProblem).waitFor();
  });

  flow("shares six connections between its tabs, and a hidden tab has none", origin, async (page) => {
    const watches = async () => {
      const leader = await cluster.leader();
      return (await cluster.status(leader)).figures?.watches;
    };
    const wanted = (n: number) => eventually(`${n} watches`, async () => ((await watches()) === n ? true : undefined));
    await wanted(0);
    await open(page, "locks");
    const others = await Promise.all(Array.from({ length: 4 }, () => page.context().newPage()));
    for (const other of others) await open(other, "locks?name=reports%2Fnightly");
    for (const other of others) await other.getByText("5 wait, the first in front:").waitFor();
    await wanted(10);
    const [sixth, seventh] = await Promise.all([page.context().newPage(), page.context().newPage()]);
    await open(sixth, "cluster");
    await wanted(12);
    // The seventh tab in view waits until others are hidden, and the first ones stay live.
    let loaded = false;
    const loading = open(seventh, "cluster").then(() => void (loaded = true));
    const session = await cluster.open("report", "db1");
    await cluster.acquire(session, "while/another/waits");
    await row(page, "while/another/waits").waitFor();
    await cluster.post("close", { session });
    await row(page, "while/another/waits").waitFor({ state: "detached" });
    const hide = (other: Page, state: string) =>
      other.evaluate((now) => {
        Object.defineProperty(document, "visibilityState", { configurable: true, get: () => now });
        document.dispatchEvent(new Event("visibilitychange"));
      }, state);
    expect(loaded).toBe(false);
    await wanted(12);
    for (const other of others) await hide(other, "hidden");
    await loading;
    await wanted(6);
    await seventh.close();
    await sixth.close();
    await wanted(2);
    await hide(others[0] ?? page, "visible");
    await wanted(4);
    await others[0]?.waitForSelector(".state.live");
  });
});

describe("what an operator changes", () => {
  /** reached is a lock that one program holds and another waits for. */
  async function contended(name: string, ttl: string): Promise<{ holder: string; hold: string; waiter: string }> {
    const holder = await cluster.open("report", "db1", 4711, ttl);
    const waiter = await cluster.open("indexer", "db2", 4712);
    const hold = await cluster.acquire(holder, name);
    cluster.queue(waiter, name);
    return { holder, hold, waiter };
  }

  flow("a holder is asked to leave, leaves, and the next one enters", origin, async (page) => {
    const { holder, hold, waiter } = await contended("ask/politely", "30s");
    await open(page, "locks?name=ask%2Fpolitely");
    await page.getByText("1 waits, the first in front:").waitFor();
    await page.getByRole("button", { name: words.leave("locks") }).click();
    const sheet = page.getByRole("dialog");
    await sheet.getByText("When it has left, indexer 4712 on db2 is next.").waitFor();
    await sheet.getByText("If it does not leave within 30 s, the TTL of its session, the lock is taken away.").waitFor();
    await accessible(page);
    await page.keyboard.press("Enter"); // without a reason nothing is sent
    await page.keyboard.type("db1 goes down at 18:00");
    await picture(page, "docs/dashboard/leave-light.png");
    await page.keyboard.press("Enter");
    await sheet.getByText(/report 4711 on db1 was asked to leave at/).waitFor();
    await sheet.getByText(/It has not left yet\. It is dropped in at most/).waitFor();
    await accessible(page);
    const renewed = await cluster.post("renew", { session: holder });
    expect(renewed.revoked, "the holder is told").toEqual([hold]);
    await cluster.post("release", { session: holder, hold });
    await sheet.getByText(/It has left: released, /).waitFor();
    await sheet.getByText(/indexer 4712 on db2 holds it now, with the fence/).waitFor();
    await page.keyboard.press("Escape");
    await page.getByText(/: db1 goes down at 18:00/).waitFor();
    await row(page, "ask/politely").getByText("indexer 4712 on db2").waitFor();
    expect((await cluster.sessions()).filter((s) => s.program === "dashboard"), "the page leaves no session behind").toEqual([]);
    for (const session of [holder, waiter]) await cluster.post("close", { session });
  });

  flow("one that does not leave loses its hold after its TTL", origin, async (page) => {
    const { holder, waiter } = await contended("ask/in vain", "2s");
    const renewing = setInterval(() => void cluster.post("renew", { session: holder }).catch(() => undefined), 500);
    try {
      await open(page, "locks?name=ask%2Fin+vain");
      await page.getByRole("button", { name: words.leave("locks") }).click();
      const sheet = page.getByRole("dialog");
      await sheet.getByLabel(words.reason).fill("maintenance");
      await sheet.getByRole("button", { name: words.leaveVerb }).click();
      await sheet.getByText(/It has left: dropped: did not leave in time, /).waitFor();
      await sheet.getByText(/indexer 4712 on db2 holds it now/).waitFor();
      await sheet.getByRole("button", { name: words.close }).last().click();
      await sheet.waitFor({ state: "detached" });
    } finally {
      clearInterval(renewing);
    }
    for (const session of [holder, waiter]) await cluster.post("close", { session });
  });

  flow(
    "a request that comes too late asks nobody, and says so",
    origin,
    async (page) => {
      const { holder, hold, waiter } = await contended("ask/late", "30s");
      await open(page, "locks?name=ask%2Flate");
      await page.getByRole("button", { name: words.leave("locks") }).click();
      const sheet = page.getByRole("dialog");
      await sheet.getByLabel(words.reason).fill("too late");
      await cluster.post("release", { session: holder, hold });
      await row(page, "ask/late").getByText("indexer 4712 on db2").waitFor();
      await sheet.getByRole("button", { name: words.leaveVerb }).click();
      await sheet.getByText(/Nothing was changed: /).waitFor();
      await accessible(page);
      const [held] = await cluster.locks("ask/late");
      expect(held?.holders[0]?.revoked).toBeFalsy();
      for (const session of [holder, waiter]) await cluster.post("close", { session });
    },
    dying,
  );

  flow("a session is ended: its waits go at once, its holds when it releases them", origin, async (page) => {
    const { holder, waiter } = await contended("end/mine", "30s");
    const hold = await cluster.acquire(waiter, "end/other");
    await open(page, "sessions");
    await page.getByRole("button", { name: words.endSessionOf("indexer 4712 on db2") }).click();
    const sheet = page.getByRole("dialog");
    await sheet.getByText("Its 1 wait is withdrawn at once.").waitFor();
    await sheet.getByText(/It is asked to leave its hold\. What it does not release within 10 min/).waitFor();
    await accessible(page);
    await sheet.getByLabel(words.reasonEnd).fill("leaked");
    await sheet.getByRole("button", { name: words.endVerb }).click();
    await sheet.getByText(words.endWaits(1)).waitFor();
    expect((await cluster.locks("end/mine"))[0]?.queue_length).toBe(0);
    await cluster.post("release", { session: waiter, hold });
    await sheet.getByText(words.endDone).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: words.endSessionOf("indexer 4712 on db2") }).waitFor({ state: "detached" });
    await cluster.post("close", { session: holder });
  });

  flow("the leadership is handed over; a server that cannot lead says why", origin, async (page) => {
    const [to = 0, other = 0] = await cluster.followers();
    at = await cluster.leader();
    await cluster.kill(other);
    await open(page, "cluster");
    await mark(page);
    await problem(page, new RegExp(`Server ${other} does not answer`));
    await page.getByRole("button", { name: words.handOver }).click();
    const sheet = page.getByRole("dialog");
    expect(await sheet.getByRole("radio", { name: `server ${at}: ${words.notLeader.leads}` }).isDisabled()).toBe(true);
    expect(await sheet.getByRole("radio", { name: `server ${other}: ${words.notLeader.silent}` }).isDisabled()).toBe(true);
    expect(await sheet.getByRole("button", { name: words.handOverVerb(undefined) }).isDisabled()).toBe(true);
    await sheet.getByRole("radio", { name: words.leaderIs(to), exact: true }).check();
    await accessible(page);
    await picture(page, "docs/dashboard/hand-over-light.png");
    await sheet.getByRole("button", { name: words.handOverVerb(to) }).click();
    await sheet.getByText(new RegExp(`Server ${to} leads, in term \\d+\\.`)).waitFor();
    expect(await cluster.leader()).toBe(to);
    await page.keyboard.press("Escape");
    await page.getByText(words.leaderIs(to), { exact: true }).waitFor();
    expect(await marked(page)).toBe(true);
  }, dying);

  flow("without a leader nothing can be changed, and the sheet says so", origin, async (page) => {
    at = await cluster.leader();
    const { holder, waiter } = await contended("ask/nobody", "5m");
    await open(page, "locks?name=ask%2Fnobody");
    await page.getByRole("button", { name: words.leave("locks") }).click();
    for (const id of await cluster.followers()) await cluster.kill(id);
    const sheet = page.getByRole("dialog");
    await sheet.getByText(words.noActing).waitFor();
    await sheet.getByLabel(words.reason).fill("now");
    expect(await sheet.getByRole("button", { name: words.leaveVerb }).isDisabled()).toBe(true);
    await accessible(page);
    await cluster.restore();
    await sheet.getByText(words.noActing).waitFor({ state: "detached" });
    for (const session of [holder, waiter]) await cluster.post("close", { session });
  }, dying);
});

describe("a cluster in trouble", () => {
  flow(
    "follows a change of leaders without a reload",
    origin,
    async (page) => {
      const leader = await cluster.leader();
      const [follower = 1] = await cluster.followers();
      at = follower;
      await open(page, "cluster");
      await mark(page);
      await page.getByText(words.leaderIs(leader), { exact: true }).waitFor();
      const marks = await noting(page, `.state.stale, .servers tr:nth-child(${leader}) .bad`);
      const killed = Date.now();
      await cluster.kill(leader);
      expect(await marks(killed), "ms until the row of the leader is marked").toBeLessThan(markedAfter);
      await problem(page, new RegExp(`Server ${leader} does not answer`));
      const next = await cluster.leader();
      await page.getByText(words.leaderIs(next), { exact: true }).waitFor();
      await page.locator('a[href="#locks"]').first().click();
      const session = await cluster.open("after", "db1");
      await cluster.acquire(session, "after/the/change");
      await row(page, "after/the/change").waitFor();
      cluster.run(leader);
      await page.getByText(words.noProblem).waitFor();
      expect(await marked(page)).toBe(true);
      await cluster.post("close", { session });
    },
    dying,
  );

  flow(
    "says that its server is gone, and which others there are, and comes back by itself",
    origin,
    async (page) => {
      await open(page, "locks");
      await page.locator("tbody tr").first().waitFor();
      await mark(page);
      const rows = await page.locator("tbody tr").count();
      await cluster.kill(at);
      await page.waitForSelector(".state.stale", { timeout: 2500 });
      await page.getByRole("alert").getByText(/Connection lost\. What is shown is/).waitFor();
      expect(await page.locator(".lost a").count()).toBe(2);
      expect(await page.locator("tbody tr").count()).toBe(rows);
      await page.getByText(/last known/).waitFor();
      await accessible(page);
      await picture(page, "docs/dashboard/lost-light.png");
      cluster.run(at);
      await page.waitForSelector(".state.live");
      await page.getByText(/last known/).waitFor({ state: "detached" });
      expect(await marked(page)).toBe(true);
    },
    dying,
  );

  flow(
    "is marked as old when its server hangs",
    origin,
    async (page) => {
      await open(page, "locks");
      await page.locator("tbody tr").first().waitFor();
      const marks = await noting(page, ".state.stale");
      const stopped = Date.now();
      cluster.signal(at, "SIGSTOP");
      expect(await marks(stopped), "ms until the rows are marked").toBeLessThan(markedAfter);
      await page.getByText(/last known/).waitFor();
      cluster.signal(at, "SIGCONT");
      await page.waitForSelector(".state.live");
      await page.getByText(/last known/).waitFor({ state: "detached" });
    },
    dying,
  );

  flow(
    "says that there is no quorum, keeps what was known, and goes on when there is one again",
    origin,
    async (page) => {
      await open(page, "locks");
      await page.locator("tbody tr").first().waitFor();
      await mark(page);
      const rows = await page.locator("tbody tr").count();
      const others = [1, 2, 3].filter((id) => id !== at);
      for (const id of others) await cluster.kill(id);
      await problem(page, /No leader since .*\. Nothing is granted\./);
      await problem(page, `No quorum: 1 of 3 voters answers server ${at}`);
      expect(await page.locator("tbody tr").count()).toBe(rows);
      await page.getByText(/last known/).waitFor();
      await accessible(page);
      await picture(page, "docs/dashboard/no-quorum-light.png");
      for (const id of others) cluster.run(id);
      await page.getByText(words.noProblem).waitFor();
      await page.getByText(/last known/).waitFor({ state: "detached" });
      expect(await page.locator("tbody tr").count()).toBe(rows);
      expect(await marked(page)).toBe(true);
    },
    dying,
  );
});
