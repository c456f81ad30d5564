import type { Report, Sample, Status } from "./forms";

/** What is kept of one sample: the figures of the server that led. */
interface Point {
  at: number; // ms, by the server's clock
  leader: number;
  /** Fences grow by one with each grant, but for the upper 24 bits. */
  fence: bigint;
  applied: number;
  fsyncs: number;
  requests: number;
  latencies: ReadonlyMap<number, number>;
}

export type Counter = "grants" | "entries" | "fsyncs" | "requests";

/** How long samples are kept, in ms. */
const kept = 10 * 60_000;

/** leaderOf returns what the leader said of itself, if a sample has it. */
export const leaderOf = (sample: Sample): Report | undefined => sample.servers.find((s) => s.id === sample.leader && s.status !== undefined);

/** History keeps the samples of the last 10 minutes: a server keeps none. */
export class History {
  #points: Point[] = [];

  add(sample: Sample): void {
    const at = Date.parse(sample.time);
    const said = leaderOf(sample);
    // The same report may come with several samples, while there is no newer one.
    const point = said?.status?.figures && pointOf(Date.parse(said.at ?? sample.time), said.status);
    const last = this.#points.at(-1);
    if (point && (!last || point.at > last.at)) this.#points.push(point);
    const first = this.#points.findIndex((p) => p.at >= at - kept);
    if (first > 0) this.#points.splice(0, first);
  }

  /** rates returns a counter per second between neighbouring samples; undefined where they do not compare. */
  rates(of: Counter, most: number): (number | undefined)[] {
    const points = this.#points.slice(-most - 1);
    return points.slice(1).map((to, i) => rate(points[i], to, of));
  }

  /** rate returns a counter per second over the last window, in ms. */
  rate(of: Counter, window: number): number | undefined {
    const [from, to] = this.#span(window);
    return rate(from, to, of);
  }

  /** quantile returns how many us the fraction q of requests took at most, over the last window. */
  quantile(q: number, window: number): number | undefined {
    const [from, to] = this.#span(window);
    if (!to || !comparable(from, to)) return undefined;
    const counts: [number, number][] = [];
    let all = 0;
    for (const [us, n] of to.latencies) {
      const more = n - (from.latencies.get(us) ?? 0);
      if (more > 0) counts.push([us, more]);
      all += Math.max(more, 0);
    }
    let seen = 0;
    for (const [us, n] of counts.sort(([a], [b]) => a - b)) {
      seen += n;
      if (seen >= q * all) return us;
    }
    return undefined;
  }

  /** The oldest sample within the window that compares with the newest, and that. */
  #span(window: number): [Point | undefined, Point | undefined] {
    const to = this.#points.at(-1);
    const from = to && this.#points.find((p) => p.at >= to.at - window && comparable(p, to));
    return [from, to];
  }
}

function pointOf(at: number, status: Status): Point | undefined {
  const { figures } = status;
  if (!figures) return undefined;
  return {
    at,
    leader: status.server,
    fence: BigInt(status.fence),
    applied: Number(status.applied_index),
    fsyncs: figures.fsyncs,
    requests: figures.requests,
    latencies: new Map(figures.latencies),
  };
}

/** comparable reports whether two samples are of the same server, and that did not restart between them. */
function comparable(from: Point | undefined, to: Point): from is Point {
  return from !== undefined && from !== to && from.leader === to.leader && from.requests <= to.requests && from.fsyncs <= to.fsyncs;
}

const epochBits = 40n;

function rate(from: Point | undefined, to: Point | undefined, of: Counter): number | undefined {
  if (!to || !comparable(from, to) || to.at <= from.at) return undefined;
  const per = 1000 / (to.at - from.at);
  switch (of) {
    case "grants":
      return from.fence >> epochBits === to.fence >> epochBits ? Number(to.fence - from.fence) * per : undefined;
    case "entries":
      return (to.applied - from.applied) * per;
    case "fsyncs":
      return (to.fsyncs - from.fsyncs) * per;
    case "requests":
      return (to.requests - from.requests) * per;
  }
}
