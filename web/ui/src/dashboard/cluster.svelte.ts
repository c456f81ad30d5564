import { ranked, why, type Class } from "./api";
import type { Changes, Lack, Resource, Sample } from "./forms";
import { History, leaderOf } from "./history";
import { Names, rowOf, type Order, type Row } from "./names";
import { problems, type Problem } from "./problems";
import { staleAfter, watch, type Stream } from "./stream";

/** How often what depends on the time alone is shown anew, in ms. */
const tick = 500;
/** How often names are asked for that are too many to be watched, in ms. */
const rankEvery = 5000;
/** How often the usual length of holds is looked up, of how many, and from which age on, in ms. */
const usualEvery = 5000;
const usualAtOnce = 5;
const usualFrom = 60_000;
/** How many ended holds tell what is usual. */
const usualLeast = 3;

/** Cluster is the live state of the cluster, as one server tells it. */
export class Cluster {
  sample: Sample | undefined = $state.raw();
  now: number = $state(Date.now());
  /** Why there is no connection, once one was lost or refused. */
  lost: Error | undefined = $state.raw();
  /** Why the state of the servers is not told, if the rules do not let this page see it. */
  hidden: string | undefined = $state();
  prefixes: Record<Class, string> = $state({ locks: "", elections: "" });
  /** Rows of a class that are too many to be watched: the first of them. */
  first: Record<Class, Resource[]> = $state.raw({ locks: [], elections: [] });

  history = new History();
  #names: Record<Class, Names> = { locks: new Names(), elections: new Names() };
  #versions: Record<Class, number> = $state({ locks: 0, elections: 0 });
  #came: number = $state(0); // when the newest sample came
  #told: Record<Class, number> = { locks: 0, elections: 0 }; // when a class was known to be current
  #offset = 0; // of the server's clock
  #usual = new Map<string, number>();
  #full = new Map<number, number>();
  #exhausted = new Map<number, number>();
  #stream: Stream | undefined;
  #timers: ReturnType<typeof setInterval>[] = [];
  #aging: ReturnType<typeof setTimeout> | undefined;
  #ended = new AbortController();
  #sort: Order = "queue";

  /** serverNow is the time by the clock of the server, in ms. */
  get serverNow(): number {
    return this.now + this.#offset;
  }

  /** old is how long ago the newest sample came, in ms. */
  get old(): number {
    return this.#came === 0 ? 0 : Math.max(0, this.now - this.#came);
  }

  /** state tells whether what is shown is of now. */
  get state(): "connecting" | "live" | "stale" {
    if (this.lost) return "stale";
    if (this.#came === 0) return "connecting";
    return this.old > staleAfter ? "stale" : "live";
  }

  /** oldNames is how long ago a leader told the names of a class last, in ms. */
  oldNames(of: Class): number {
    void this.#versions[of];
    return Math.max(0, this.now - (this.#told[of] || this.#came));
  }

  /** names returns what is known of a class; it is read again whenever that changes. */
  names(of: Class): Names {
    void this.#versions[of];
    return this.#names[of];
  }

  /** current tells whether the names of a class are told by a leader now. */
  current(of: Class): boolean {
    const { sample } = this;
    if (this.state !== "live" || this.names(of).lack) return false;
    if (!sample) return this.hidden !== undefined; // a leader told them, or there would be a lack
    return sample.leader !== 0 && leaderOf(sample)?.problem === undefined;
  }

  row(of: Class, name: string): Row | undefined {
    const known = this.names(of).rows.get(name);
    if (known) return known;
    const resource = this.first[of].find((r) => r.name === name);
    return resource && rowOf(resource);
  }

  get problems(): Problem[] {
    if (!this.sample) return [];
    const rows = { locks: this.names("locks").rows.values(), elections: this.names("elections").rows.values() };
    return problems({ sample: this.sample, rows, usual: this.#usual, full: this.#full }, this.serverNow);
  }

  /** start follows the cluster until stop; a page that is hidden does not. */
  start(): void {
    document.addEventListener("visibilitychange", this.#look);
    this.#timers = [
      setInterval(() => (this.now = Date.now()), tick),
      setInterval(() => void this.#learn(), usualEvery),
      setInterval(() => void this.#rank(), rankEvery),
    ];
    this.#look();
  }

  stop(): void {
    document.removeEventListener("visibilitychange", this.#look);
    this.#timers.forEach(clearInterval);
    this.#ended.abort();
    this.#close();
  }

  /** retry connects at once. */
  retry(): void {
    this.#stream?.retry();
  }

  /** restart forgets everything, and follows the cluster as somebody else. */
  restart(): void {
    this.#close();
    this.sample = this.lost = this.hidden = undefined;
    this.history = new History();
    this.first = { locks: [], elections: [] };
    this.#came = 0;
    for (const of of ["locks", "elections"] as const) {
      this.#names[of] = new Names();
      this.#told[of] = 0;
      this.#versions[of]++;
    }
    for (const known of [this.#usual, this.#full, this.#exhausted]) known.clear();
    this.#look();
  }

  /** see sets which names are watched, and in which order those that are too many come. */
  see(of: Class, prefix: string, sort: Order): void {
    const sorted = sort !== this.#sort;
    this.#sort = sort;
    if (this.prefixes[of] === prefix) {
      if (sorted) void this.#rank();
      return;
    }
    this.prefixes[of] = prefix;
    this.#names[of] = new Names();
    this.first = { ...this.first, [of]: [] };
    this.#versions[of]++;
    if (this.#stream) {
      this.#close();
      this.#open();
    }
  }

  #look = (): void => {
    if (document.visibilityState === "hidden") {
      this.#close();
    } else if (!this.#stream) {
      this.now = Date.now();
      this.#open();
    }
  };

  #close(): void {
    this.#stream?.close();
    this.#stream = undefined;
  }

  #open(): void {
    const stream = watch(
      { status: "1s", ...this.prefixes },
      {
        open: () => undefined,
        event: (kind, data) => {
          if (stream === this.#stream) this.#take(kind, data);
        },
        closed: (error) => {
          if (stream === this.#stream) this.lost = error;
        },
      },
    );
    this.#stream = stream;
  }

  #take(kind: string, data: unknown): void {
    switch (kind) {
      case "status":
        this.#takeSample(data as Sample);
        break;
      case "locks":
      case "elections":
        this.#names[kind].apply(data as Changes, Date.now());
        this.#versions[kind]++;
        break;
      case "lack": {
        const lack = data as Lack;
        if (lack.part === "status") {
          if (lack.code === "DENIED") this.#hide(lack.message);
          break; // otherwise no sample comes: it grows old
        }
        this.#names[lack.part].lack = lack;
        this.#versions[lack.part]++;
        void this.#rank();
        break;
      }
    }
  }

  /** hide forgets the servers: the rules do not let this page see them. */
  #hide(why: string): void {
    this.now = this.#came = Date.now();
    this.lost = this.sample = undefined;
    this.hidden = why;
  }

  #takeSample(sample: Sample): void {
    const now = Date.now();
    this.lost = this.hidden = undefined;
    this.now = this.#came = now;
    // What is shown is marked at once when it is old, not at the next tick.
    clearTimeout(this.#aging);
    this.#aging = setTimeout(() => (this.now = Date.now()), staleAfter + 1);
    this.#offset = Date.parse(sample.time) - now;
    for (const { id, status } of sample.servers) {
      const before = this.#exhausted.get(id);
      const exhausted = status?.figures?.exhausted;
      if (exhausted === undefined) continue;
      if (before !== undefined && exhausted > before) this.#full.set(id, now + this.#offset);
      this.#exhausted.set(id, exhausted);
    }
    this.history.add(sample);
    this.sample = sample;
    for (const of of ["locks", "elections"] as const) if (this.current(of)) this.#told[of] = now;
  }

  /** tooMany tells whether the names of a class are too many to be watched. */
  tooMany(of: Class): boolean {
    return this.names(of).lack?.code === "EXHAUSTED";
  }

  async #rank(): Promise<void> {
    for (const of of ["locks", "elections"] as const) {
      if (!this.#stream || this.#names[of].lack?.code !== "EXHAUSTED") continue;
      const prefix = this.prefixes[of];
      try {
        const list = await ranked(of, prefix, this.#sort, this.#ended.signal);
        if (prefix === this.prefixes[of]) this.first = { ...this.first, [of]: list };
      } catch (failed) {
        if (this.#ended.signal.aborted || prefix !== this.prefixes[of]) continue;
        const { lack } = this.#names[of];
        if (lack) lack.message = failed instanceof Error ? failed.message : String(failed);
        this.#versions[of]++;
      }
    }
  }

  /** learn looks up how long the locks that others wait for are usually held. */
  async #learn(): Promise<void> {
    if (this.state !== "live" || !this.#stream) return;
    const now = this.serverNow;
    const asked: Resource[] = [];
    const held = new Set<string>();
    for (const { resource, since } of this.#names.locks.rows.values()) {
      const fence = resource.holders[0]?.fence ?? "";
      held.add(fence);
      const due = resource.queue_length > 0 && now - since > usualFrom && !this.#usual.has(fence);
      if (due && asked.length < usualAtOnce) asked.push(resource);
    }
    for (const fence of this.#usual.keys()) if (!held.has(fence)) this.#usual.delete(fence);
    for (const { name, holders } of asked) {
      try {
        const { past } = await why("locks", name, this.#ended.signal);
        const lasted = past.map((p) => Date.parse(p.until) - Date.parse(p.since));
        this.#usual.set(holders[0]?.fence ?? "", lasted.length >= usualLeast ? Math.max(...lasted) : Infinity);
      } catch {
        return; // the stream tells what is wrong
      }
    }
  }
}
