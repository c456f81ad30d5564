import { expect, test } from "vitest";
import type { Figures, Member, Report, Resource, Sample, Status } from "./forms";
import { History } from "./history";
import { rowOf } from "./names";
import { hashOf, placeOf, type Place } from "./place";
import { problems, type Known } from "./problems";
import { pauseAfter } from "./stream";

const start = Date.parse("2026-11-23T12:00:00Z");

const figures = (more: Partial<Figures> = {}): Figures => ({
  requests: 0, replies: 0, exhausted: 0, fsyncs: 0, snapshots: 0, leader_changes: 1, pending: 0, streams: 0, watches: 0,
  disk_bytes: 1, log_bytes: 1, latencies: [], ...more,
});

const status = (server: number, leader: number, more: Partial<Status> = {}): Status => ({
  cluster: "c", server, leader, term: "2", commit_index: "1", applied_index: "1", snapshot_index: "0", level: 4, clocks: [], sessions: 0, locks: 0, elections: 0, waiters: 0,
  fence: "1099511627776", version: "v", uptime: "1m", state_bytes: 10, state_limit_bytes: 1000, figures: figures(), ...more,
});

const member = (id: number, leader: number, more: Partial<Member> = {}): Member => ({
  id, peer_address: "", client_address: `10.0.0.${id}:7400`, voter: true, leader: id === leader, connected: true, match_index: "1",
  learner: false, behind: "0", stage: "settled", ...more,
});

/** A sample of three servers, as server 1 tells it after some seconds. */
function sample(seconds: number, leader: number, of: Partial<Status> = {}): Sample {
  const time = new Date(start + seconds * 1000).toISOString();
  const servers: Report[] = [1, 2, 3].map((id) => ({ id, at: time, status: status(id, leader, id === leader ? of : {}) }));
  return { ...status(1, leader), time, servers, members: [1, 2, 3].map((id) => member(id, leader)) };
}

test("rates and quantiles are of the server that leads, and not over a change of leaders", () => {
  const history = new History();
  for (let s = 0; s <= 20; s++) {
    history.add(sample(s, 2, { fence: String(1_099_511_627_776 + 5 * s), applied_index: String(7 * s), figures: figures({ fsyncs: 3 * s, latencies: [[100, 98 * s], [2000, 2 * s]] }) }));
  }
  expect(history.rate("grants", 10_000)).toBeCloseTo(5);
  expect(history.rate("entries", 10_000)).toBeCloseTo(7);
  expect(history.rate("fsyncs", 10_000)).toBeCloseTo(3);
  expect([history.quantile(0.5, 60_000), history.quantile(0.99, 60_000)]).toEqual([100, 2000]);
  expect(history.rates("grants", 5)).toHaveLength(5);
  history.add(sample(21, 3));
  expect(history.rate("grants", 10_000)).toBeUndefined();
  expect(history.rates("grants", 2).at(-1)).toBeUndefined();
  expect(history.quantile(0.5, 60_000)).toBeUndefined();
  history.add(sample(22, 3));
  expect(history.rate("fsyncs", 10_000)).toBe(0);
});

test("a server that restarted, or repeats what it said, gives no rate", () => {
  const history = new History();
  history.add(sample(0, 2, { figures: figures({ fsyncs: 50, requests: 9 }) }));
  history.add(sample(0, 2, { figures: figures({ fsyncs: 50, requests: 9 }) }));
  expect(history.rates("fsyncs", 9)).toEqual([]);
  history.add(sample(1, 2, { figures: figures({ fsyncs: 1 }) }));
  expect(history.rates("fsyncs", 9)).toEqual([undefined]);
});

const known = (of: Sample, locks: Resource[] = [], more: Partial<Known> = {}): Known => ({
  sample: of, rows: { locks: locks.map((resource) => rowOf(resource)), elections: [] }, usual: new Map(), full: new Map(), ...more,
});

const ids = (k: Known) => problems(k, start + 100_000).map((p) => p.id);

const lock = (name: string, queue: number, revoked = false): Resource => ({
  name, limit: 1, queue_length: queue, waiters: [],
  holders: [{ session_id: "s-1", hold: "1", fence: name, since: new Date(start).toISOString(), host: "db1", pid: 1, program: "p", revoked, reason: "r" }],
});

test("a cluster without a problem has none", () => {
  expect(ids(known(sample(1, 2), [lock("a", 5)]))).toEqual([]);
});

test("no leader, and no quorum", () => {
  const alone = sample(1, 0);
  expect(ids(known(alone))).toEqual(["leader"]);
  alone.servers = alone.servers.map((s) => (s.id === 1 ? s : { ...s, problem: "refused" }));
  expect(ids(known(alone))).toEqual(["leader", "quorum", "gone-2", "gone-3"]);
  expect(problems(known(alone), start)[1]?.text).toBe("No quorum: 1 of 3 voters answers server 1. Start the others, or restore the network between them.");
});

test("members that are cut off, silent or behind", () => {
  const of = sample(1, 2);
  of.members = [member(1, 2, { behind: "18204" }), member(2, 2), member(3, 2, { connected: false, behind: "1" })];
  expect(problems(known(of), start).map((p) => p.text)).toEqual(["Server 1 is 18,204 entries behind.", "Server 3 is not connected to the leader and is 1 entry behind."]);
  of.servers = of.servers.map((s) => (s.id === 3 ? { ...s, problem: "timeout" } : s));
  expect(problems(known(of), start).at(-1)?.text).toMatch(/^Server 3 does not answer since .* and is 1 entry behind\.$/);
});

test("a disk that hangs, a full queue, a state near its limit", () => {
  const of = sample(1, 2, { state_bytes: 950, figures: figures({ stalled: "a write" }) });
  expect(ids(known(of, [], { full: new Map([[2, start + 99_000]]) }))).toEqual(["stalled-2", "full-2", "limit"]);
  expect(ids(known(of, [], { full: new Map([[2, start]]) }))).toEqual(["stalled-2", "limit"]);
});

test("holds that last longer than usual while others wait, and holders that do not leave", () => {
  const usual = new Map([["a", 10_000], ["b", 90_000], ["c", Infinity], ["d", 10_000]]);
  const of = known(sample(1, 2), [lock("a", 1), lock("b", 1), lock("c", 1), lock("d", 0), lock("e", 0, true)], { usual });
  expect(ids(of)).toEqual(["long-a", "revoked-locks-e"]);
  const many = known(sample(1, 2), Array.from({ length: 9 }, (_, i) => lock(`x${i}`, 0, true)));
  expect(problems(many, start).map((p) => p.text)).toEqual([
    ...["x0", "x1", "x2"].map((name) => `p 1 on db1 was asked to leave ${name} and has not left: r.`),
    "6 more locks have a problem.",
  ]);
});

test("a place survives its fragment, whatever the names", () => {
  for (const place of [
    { tab: "locks", prefix: "a/ &?#=%\u202e", sort: "age", name: "x y/ü🙂" },
    { tab: "elections", prefix: "", sort: "queue", name: "" },
    { tab: "sessions", prefix: "", sort: "name", name: undefined },
  ] satisfies Place[]) {
    expect(placeOf(hashOf(place))).toEqual(place);
  }
  expect(placeOf("#nonsense?sort=size&x=%")).toEqual({ tab: "cluster", prefix: "", sort: "queue", name: undefined });
});

test("pauses between attempts grow to a bound, and half of each is chance", () => {
  expect([0, 1, 2, 20].map((n) => pauseAfter(n, 1))).toEqual([250, 500, 1000, 10_000]);
  expect(pauseAfter(3, 0)).toBe(1000);
});
