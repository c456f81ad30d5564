import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect } from "vitest";
import { words } from "../src/strings/dashboard";
import { accessible, flow, picture, sizes, useBrowser } from "./browser";
import { Cluster, ended, eventually } from "./cluster";

useBrowser();

let cluster: Cluster, secure: Cluster;
const tokens = { program: "", viewer: "", operator: "", reader: "", fickle: "" };

beforeAll(async () => {
  cluster = await Cluster.start();
  await eventually("a level that has rules", async () => ((await cluster.level()) >= 4 ? true : undefined));
  await cluster.administer("access", "init", "--admin", "cert:root");
  await cluster.administer("access", "role", "set", "batch", "allow read,hold on prefix reports/");
  await cluster.administer("access", "role", "set", "reader", "allow read on prefix reports/");
  for (const [name, role] of [["program", "batch"], ["viewer", "viewer"], ["operator", "operator"], ["reader", "reader"], ["fickle", "operator"]] as const) {
    tokens[name] = await cluster.administer("access", "token", "create", name);
    await cluster.administer("access", "grant", `token:${name}`, role);
  }
  cluster.token = tokens.program;
  secure = await Cluster.secure();
});
afterAll(async () => {
  await cluster?.stop();
  await secure?.stop();
});

const origin = () => cluster.origin(1);

/** A browser reports each request that is refused. */
const refused = { expected: /Failed to load resource.* 40[13]/ };

const sheet = (page: Page) => page.getByRole("dialog", { name: words.identity });

/** signIn opens a place of the page and gives a token. */
async function signIn(page: Page, place: string, token: string): Promise<void> {
  await page.goto(`${origin()}/#${place}`);
  await sheet(page).getByRole("textbox", { name: words.token }).fill(token);
  await page.keyboard.press("Enter");
  await page.waitForSelector(".state.live");
  await sheet(page).waitFor({ state: "detached" });
}

const row = (page: Page, name: string) => page.locator("tbody tr", { has: page.getByRole("link", { name, exact: true }) });

flow(
  "nothing is shown without a proof; a wrong token is refused; a viewer sees everything and changes nothing",
  origin,
  async (page) => {
    const holder = await cluster.open("report", "db1");
    await cluster.acquire(holder, "reports/a");
    await page.goto(`${origin()}/#locks`);
    await sheet(page).getByText(/The server refuses to answer: .*client certificate or a token/).waitFor();
    await accessible(page);
    await picture(page, "docs/dashboard/sign-in-light.png");
    await sheet(page).getByRole("textbox", { name: words.token }).fill(`${tokens.viewer.slice(0, -2)}AA`);
    await page.keyboard.press("Enter");
    await sheet(page).getByText(/The server refuses this token: the token cvt1_.{4}\.\.\. is unknown or revoked/).waitFor();
    await accessible(page);
    await sheet(page).getByRole("textbox", { name: words.token }).fill(tokens.viewer);
    await page.keyboard.press("Enter");
    await page.waitForSelector(".state.live");
    await page.getByRole("button", { name: "token:viewer" }).waitFor();

    await row(page, "reports/a").getByRole("link").click();
    const leave = page.getByRole("button", { name: words.leave("locks") });
    await page.getByText(/token:viewer may not revoke "reports\/a"/).waitFor();
    expect(await leave.isDisabled()).toBe(true);
    await accessible(page);
    await picture(page, "docs/dashboard/viewer-light.png");
    await page.goto(`${origin()}/#cluster`);
    await page.getByText(/token:viewer may not change members, settings, guards or views/).waitFor();
    expect(await page.getByRole("button", { name: words.handOver }).isDisabled()).toBe(true);
    await accessible(page);
    await page.goto(`${origin()}/#sessions`);
    await page.getByText(/You may not end sessions: token:viewer may not end the session of another principal/).waitFor();
    for (const button of await page.getByRole("button", { name: /^End the session of/ }).all()) expect(await button.isDisabled()).toBe(true);
    await accessible(page);

    const kept = await page.evaluate(async () =>
      JSON.stringify([
        { ...localStorage },
        { ...sessionStorage },
        document.cookie,
        location.href,
        history.state,
        document.documentElement.outerHTML,
        [...document.querySelectorAll("input")].map((input) => input.value),
        await indexedDB.databases(),
        await caches.keys(),
      ]),
    );
    expect(kept).not.toContain(tokens.viewer.slice(-20));

    await page.getByRole("button", { name: "token:viewer" }).click();
    await sheet(page).getByText("viewer", { exact: true }).waitFor();
    await sheet(page).getByText(words.proof("token:viewer", true)).waitFor();
    await page.setViewportSize(sizes.phone);
    await accessible(page);
    await sheet(page).getByRole("button", { name: words.forget }).click();
    await sheet(page).getByText(/refuses to answer: anonymous/).waitFor();
    expect(await page.locator("tbody tr").count(), "what the viewer saw is gone").toBe(0);
    await page.reload();
    await sheet(page).getByText(/refuses to answer: anonymous/).waitFor();
    await cluster.post("close", { session: holder });
  },
  refused,
);

flow(
  "an operator acts with a token; when its role is withdrawn, the sheet shows the line of the server; when the token is revoked, the page asks for another",
  origin,
  async (page) => {
    const holder = await cluster.open("report", "db1");
    const hold = await cluster.acquire(holder, "reports/nightly");
    await signIn(page, "locks?name=reports%2Fnightly", tokens.operator);
    const leave = page.getByRole("button", { name: words.leave("locks") });
    await leave.click();
    const action = page.getByRole("dialog");
    await action.getByLabel(words.reason).fill("db1 goes down");
    await page.keyboard.press("Enter");
    await action.getByText(/report 4711 on db1 was asked to leave at/).waitFor();
    await cluster.post("release", { session: holder, hold });
    await action.getByText(/It has left: released, /).waitFor();

    await cluster.acquire(holder, "reports/nightly");
    await page.reload(); // which forgets the token
    await signIn(page, "locks?name=reports%2Fnightly", tokens.fickle);
    await leave.click();
    await action.getByLabel(words.reason).fill("too late");
    await cluster.administer("access", "withdraw", "token:fickle", "operator");
    await page.keyboard.press("Enter");
    await action.getByText(/The server does not let you do this: token:fickle /).waitFor();
    await accessible(page);
    expect((await cluster.locks("reports/nightly"))[0]?.holders[0]?.revoked).toBeFalsy();
    await page.keyboard.press("Escape");
    await cluster.administer("access", "grant", "token:fickle", "viewer");
    await page.getByText(/token:fickle may not revoke/).waitFor();
    expect(await leave.isDisabled()).toBe(true);
    await page.waitForSelector(".state.live"); // so that there is something to become old
    await cluster.administer("access", "token", "revoke", "fickle");
    await sheet(page).getByText(/The server refuses to answer: the token cvt1_.* is unknown or revoked/).waitFor();
    await page.getByText(/\d s old|last known/).first().waitFor();
    await accessible(page);
    await sheet(page).getByRole("textbox", { name: words.token }).fill(tokens.viewer);
    await page.keyboard.press("Enter");
    await page.waitForSelector(".state.live");
    await cluster.post("close", { session: holder });
  },
  refused,
);

flow(
  "a program that may read names and not see the servers is told so",
  origin,
  async (page) => {
    const holder = await cluster.open("report", "db1");
    await cluster.acquire(holder, "reports/a");
    await signIn(page, "cluster", tokens.reader);
    await page.getByText(/The server does not show you this: token:reader may not see the status of the cluster/).waitFor();
    await accessible(page);
    await page.goto(`${origin()}/#locks`);
    await row(page, "reports/a").getByRole("link").click();
    await page.getByText("Held by report 4711 on db1").waitFor();
    expect(await page.getByText(/last known/).count()).toBe(0);
    await page.goto(`${origin()}/#sessions`);
    await page.getByText(/The server does not show you this: token:reader may not list sessions/).waitFor();
    await accessible(page);
    await cluster.post("close", { session: holder });
  },
  refused,
);

flow(
  "the certificate of a browser proves who acts: no token is asked for",
  () => secure.origin(1),
  async (page) => {
    const holder = secure.command("lock", "reports/nightly", "--", "sleep", "600");
    await page.goto(`${secure.origin(1)}/#locks?name=reports%2Fnightly`);
    await page.getByText(/^Held by /).waitFor();
    await page.getByRole("button", { name: "cert:alice" }).click();
    await sheet(page).getByText(words.proof("cert:alice", false)).waitFor();
    await accessible(page);
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: words.leave("locks") }).click();
    const action = page.getByRole("dialog");
    await action.getByLabel(words.reason).fill("the report is wrong");
    await page.keyboard.press("Enter");
    await action.getByText(/It has left: released, /).waitFor();
    await ended(holder, "SIGTERM");
    const record = await secure.administer("audit-log", "--json");
    expect(record.split("\n").filter((line) => line.includes("revoke") && line.includes("cert:alice"))).toHaveLength(1);
  },
  { context: () => ({ ignoreHTTPSErrors: true, clientCertificates: [secure.certificate("alice")] }) },
);

flow(
  "a browser without a certificate is asked for a token by the same server",
  () => secure.origin(1),
  async (page) => {
    await page.goto(`${secure.origin(1)}/#locks`);
    await sheet(page).getByText(/The server refuses to answer: .*client certificate or a token/).waitFor();
  },
  { ...refused, context: { ignoreHTTPSErrors: true } },
);
