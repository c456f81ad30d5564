import type { ChildProcess } from "node:child_process";
import { afterAll, beforeAll, expect } from "vitest";
import type { View } from "../src/dashboard/forms";
import { words } from "../src/strings/dashboard";
import { accessible, flow, picture, sizes, useBrowser } from "./browser";
import { Cluster, ended, eventually } from "./cluster";

useBrowser();

let cluster: Cluster;

beforeAll(async () => {
  cluster = await Cluster.start();
  await eventually("level 3", async () => (((await cluster.status(1)).level ?? 0) >= 3 ? true : undefined));
});
afterAll(async () => cluster?.stop());

const origin = () => cluster.origin(1);
/** guarded waits until a guard stands, with no change under way and all servers as members. */
const guarded = (prefix: string, algorithm: string) =>
  eventually(`${algorithm} guards ${prefix}`, async () => {
    const view = (await (await fetch(`${origin()}/v1/view`)).json()) as View;
    return view.guards.some((g) => g.prefix === prefix && g.algorithm === algorithm && !g.change) && (algorithm === "agreement" || view.members.length === Cluster.size) ? true : undefined;
  });

flow("a cluster that could have namespaces shows the tab, and how to make one", origin, async (page) => {
  await page.goto(`${origin()}/#cluster`);
  await page.getByRole("link", { name: words.tabs.namespaces, exact: true }).click();
  await page.getByText(words.noNamespaces).waitFor();
  await accessible(page);
});

flow("namespaces, the servers that guard, what is held, why, a change that waits, and how the servers watch each other", origin, async (page) => {
  await cluster.post("guards", { prefix: "reports/", algorithm: "suzuki-kasami" });
  await cluster.post("guards", { prefix: "units/", algorithm: "k-ricart-agrawala", options: "k=3" });
  for (const [prefix, algorithm] of [["reports/", "suzuki-kasami"], ["units/", "k-ricart-agrawala"]] as const) await guarded(prefix, algorithm);
  const commands: ChildProcess[] = [cluster.command("lock", "reports/nightly", "--", "sleep", "600")];
  try {
    await eventually("a holder", async () => ((await cluster.locks("reports/")).length === 1 ? true : undefined));
    commands.push(cluster.command("lock", "reports/nightly", "--", "sleep", "600"));
    await page.goto(`${origin()}/#cluster`);
    await page.waitForSelector(".state.live");
    await page.keyboard.press("g");
    await page.keyboard.press("n");
    const spaces = page.getByRole("group", { name: words.tabs.namespaces, exact: true });
    await spaces.getByRole("row", { name: /reports\/ suzuki-kasami/ }).waitFor();
    await spaces.getByRole("row", { name: /units\/ k-ricart-agrawala k=3/ }).waitFor();
    await page.getByRole("group", { name: words.guards }).getByText("open", { exact: true }).nth(2).waitFor();
    await accessible(page);
    await spaces.getByRole("link", { name: "reports/" }).click();
    await page.getByText("1 lock held:").waitFor();
    await page.getByText(/^by .*, 1 waits$/).waitFor();
    await picture(page, "docs/dashboard/namespaces-light.png");
    await page.emulateMedia({ colorScheme: "dark" });
    await page.setViewportSize(sizes.phone);
    await accessible(page);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(sizes.phone.width);
    await page.setViewportSize(sizes.desktop);

    // The change waits until nothing is held; the page shows it, and how far it is.
    await cluster.post("guards", { prefix: "reports/", algorithm: "agreement" });
    await spaces.getByText("to the log (agreement)").waitFor();
    await page.getByText(/Nothing more is granted here until nothing is held\./).waitFor();
    await accessible(page);
    await page.getByRole("link", { name: "reports/nightly" }).click();
    await page.getByText("suzuki-kasami guards the names that start with reports/.").waitFor();
    await page.getByText(/its client holds it/).waitFor();
    await accessible(page);

    // The home of the holder does not answer: nobody says that the lock is free.
    const silence = { past: [], guard: { prefix: "reports/", algorithm: "suzuki-kasami" }, homes: [{ server: 2, held: false, queue_length: 0, problem: "connection refused" }] };
    await page.route("**/v1/locks/*/why?*", (route) => route.fulfill({ json: silence }));
    await page.route("**/v1/locks?*", (route) => route.fulfill({ json: { locks: [], more: false, silent: [2] } }));
    await page.reload();
    await page.getByText(words.unknown).waitFor();
    expect(await page.getByText(words.free).count()).toBe(0);
    await page.goto(`${origin()}/#namespaces?name=reports/`);
    await page.getByText(words.unknown).waitFor();
    expect(await page.getByText("No lock is held here.").count()).toBe(0);
    await page.unroute("**/v1/locks/*/why?*");
    await page.unroute("**/v1/locks?*");

    for (const command of commands.splice(0)) await ended(command, "SIGTERM");
    await page.goto(`${origin()}/#namespaces?name=reports/`);
    await spaces.getByRole("row", { name: /reports\/ the log \(agreement\)/ }).waitFor();
    await page.getByText("No lock is held here.").waitFor();

    // The servers watch each other, and elect who coordinates. One that falls silent is suspected, and loses its seat.
    await page.getByText(words.unwatched).waitFor();
    await cluster.post("view/watch", { stack: "swim+bully", reason: "to see them work" });
    await page.getByText(/watch each other with swim, and elect their coordinator with bully/).waitFor();
    const watching = page.getByRole("group", { name: words.watch });
    const epochs = page.getByRole("group", { name: words.epochs });
    for (const id of [1, 2, 3]) await watching.getByRole("row", { name: new RegExp(`^${id} nobody `) }).waitFor();
    await epochs.getByRole("row", { name: /the watch stack changed/ }).waitFor();
    await epochs.getByRole("row", { name: /server 3 was elected/ }).waitFor();
    await page.getByText(/, 3 servers, server 3 coordinates/).waitFor();
    await page.emulateMedia({ colorScheme: "light" });
    await epochs.scrollIntoViewIfNeeded();
    await accessible(page);
    await picture(page, "docs/dashboard/watch-light.png");
    const silent = (await cluster.followers()).find((id) => id !== 1) ?? 0;
    cluster.signal(silent, "SIGSTOP");
    await epochs.getByRole("row", { name: `the seat of server ${silent} has ended` }).waitFor();
    cluster.signal(silent, "SIGCONT");
    await epochs.getByRole("row", { name: `server ${silent} takes part` }).waitFor();
    await page.getByText(/, 3 servers/).waitFor();
  } finally {
    await cluster.restore();
    for (const command of commands) await ended(command, "SIGTERM");
  }
});
