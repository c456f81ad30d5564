import { flag } from "../engine/protocol";
import type { Run } from "../lab/run";

/** recordsUntil returns how many records of a run have happened at a time, that time included. */
export function recordsUntil(run: Run, time: number): number {
  let low = 0;
  let high = run.count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((run.time[middle] ?? 0) <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** nextTime returns the first time after another one at which a record of any run is, or undefined. */
export function nextTime(runs: readonly Run[], time: number): number | undefined {
  const times = runs.flatMap((run) => {
    const at = recordsUntil(run, time);
    return at < run.count ? [run.time[at] ?? 0] : [];
  });
  return times.length > 0 ? Math.min(...times) : undefined;
}

/** previousTime returns the last time before another one at which a record of any run is; -1 is before all. */
export function previousTime(runs: readonly Run[], time: number): number {
  let last = -1;
  for (const run of runs) {
    let at = recordsUntil(run, time);
    while (at > 0 && (run.time[at - 1] ?? 0) >= time) at--;
    if (at > 0) last = Math.max(last, run.time[at - 1] ?? 0);
  }
  return last;
}

/** clients says who waits and who is inside after so many records. */
function clients(run: Run, at: number): string {
  const state = new Uint16Array(run.labels.length);
  for (let record = 1; record <= at; record++) {
    if (!run.has(record, flag.network)) state[run.process[record - 1] ?? 0] = run.flags[record - 1] ?? 0;
  }
  return [...state].map((flags) => (flags & flag.inside ? "i" : flags & flag.waiting ? "w" : "-")).join("");
}

/** differs reports whether others wait or are inside in two runs at a time. */
export const differs = (a: Run, b: Run, time: number): boolean => clients(a, recordsUntil(a, time)) !== clients(b, recordsUntil(b, time));

/** nextDifference returns the first time after another one at which the clients differ and did not just before. */
export function nextDifference(a: Run, b: Run, time: number): number | undefined {
  let was = differs(a, b, time);
  for (let at = nextTime([a, b], time); at !== undefined; at = nextTime([a, b], at)) {
    const is = differs(a, b, at);
    if (is && !was) return at;
    was = is;
  }
  return undefined;
}
