import { layOut, type Axis } from "../draw/layout";
import { EngineError, type Connect, type Engine } from "../engine/client";
import { flag, type Edit, type Problem, type ProcessState, type RunEnd, type RunHead, type Scenario } from "../engine/protocol";
import { lab as strings } from "../strings/lab";
import { decode, encode, plainView, type Decoded, type Others, type Pick, type Place, type Source } from "../url/codec";
import { Branches, type Doc } from "./branches.svelte";
import { future, past } from "./causality";
import { Choosing } from "./choosing.svelte";
import { Cutting } from "./cutting.svelte";
import { Connection } from "./connection.svelte";
import { Run } from "./run";
import { Texts } from "./texts.svelte";
import { Thumbs } from "./thumbs";
import { unanswered } from "./waits";

/** The states of the processes after a record, of one run. */
interface States {
  run: Run;
  at: number;
  processes: ProcessState[];
}

/** orderOf numbers the types of messages as the pictures of package trace do. */
function orderOf(run: Run): Map<number, number> {
  const order = new Map<number, number>();
  const note = (type: number) => {
    if (type > 0 && !order.has(type)) order.set(type, order.size);
  };
  for (let i = 0; i < run.count; i++) {
    const kind = run.kindOf(i + 1);
    if (kind === "deliver" || kind === "drop") note(run.type[i] ?? 0);
  }
  for (let f = 0; f < run.flights; f++) note(run.flightType[f] ?? 0);
  return order;
}

/** How an edit is seen: at the end of the new run, as one that goes on where the other ended. */
interface How {
  toEnd?: boolean;
  goesOn?: boolean;
}

/** named makes the name of a branch of a line of the scenario: "crash 3 at 1.1". */
const named = (item: string): string => item.replace(/^\{at: ([^,]+), (.*)\}$/, "$2 at $1").replaceAll(": ", " ");

/** A span of time in which nothing changes before the address follows, in ms. */
const addressDelay = 200;

/** Lab is all that the lab's screens show, and what a user can do. */
export class Lab {
  readonly connection: Connection;
  readonly thumbs: Thumbs;
  readonly branches = new Branches();
  readonly choosing = new Choosing(this);
  readonly cutting = new Cutting(this);

  page: "gallery" | "learn" | "compare" | "run" | "check" | "audit" | "charts" | "trouble" = $state("gallery");
  /** The lesson that is shown and its step, from 1; no lesson: the list of all. */
  lesson: { id: string; step: number } = $state.raw({ id: "", step: 1 });
  /** The scenarios that are shown side by side. */
  pair: readonly [string, string] = $state.raw(["", ""]);
  /** The challenge that the run is to solve, or "". */
  challenge = $state("");
  /** The algorithm that the screen of searches begins with, and what else its address says. */
  search: { algorithm: string; params: Others } = $state.raw({ algorithm: "", params: [] });
  trouble: Decoded | undefined = $state.raw();
  source: Source = $state.raw({ id: "" });
  /** The text of the scenario as the user sees it; the run may still be that of an earlier one. */
  text = $state("");
  run: Run | undefined = $state.raw();
  texts: Texts | undefined = $state.raw();
  /** Rises with every chunk of the run. */
  grown = $state(0);
  result: RunEnd | undefined = $state.raw();
  problem: Problem | undefined = $state.raw();
  opening = $state(false);

  cursor = $state(0);
  pick: Pick | undefined = $state.raw();
  axis: Axis = $state("real");
  embed = $state(false);
  presenter = $state(false);
  mark: number | undefined = $state();
  states: States | undefined = $state.raw();
  /** The record at which the hash in the URL does not match this run. */
  differsAt: number | undefined = $state();
  /** A message that is on the screen until the next action. */
  notice = $state("");

  playing = $state(false);
  /** Delays of the algorithm that pass in a second while the run plays. */
  speed = $state(1);
  /** Virtual time while the run plays, else that of the cursor. */
  playTime: number | undefined = $state();

  layout = $derived.by(() => {
    void this.grown;
    return this.run ? layOut(this.run, this.axis) : undefined;
  });
  /** The place of each type of message among those that occur, for its colour. */
  order = $derived.by(() => {
    void this.grown;
    return this.run ? orderOf(this.run) : new Map<number, number>();
  });
  /** The records that the view keeps bright: past, future or all. */
  cone: "past" | "future" | "both" | undefined = $state();
  lit = $derived.by(() => {
    void this.grown;
    const { run, cursor, cone } = this;
    if (!run || !cone || cursor < 1) return undefined;
    if (cone === "past") return past(run, cursor);
    return cone === "future" ? future(run, cursor) : new Set([...past(run, cursor), ...future(run, cursor)]);
  });
  /** Who waits for whom after the record at the cursor. */
  waits = $derived.by(() => {
    void this.grown;
    return this.run ? unanswered(this.run, this.cursor) : [];
  });
  mapShown = $state(true);
  flying = $derived.by(() => {
    void this.grown;
    return this.run?.flying(this.cursor) ?? [];
  });
  /** The scenario of the catalog that runs, unchanged. */
  scenario: Scenario | undefined = $derived.by(() => {
    const source = this.source;
    return "id" in source ? this.connection.catalog?.scenarios.find((s) => s.id === source.id) : undefined;
  });
  sentence = $derived.by(() => {
    void this.texts?.version;
    return this.cursor > 0 ? this.texts?.get(this.cursor)?.sentence : undefined;
  });

  /** The record of which everything is on the screen: states and sentence. */
  known = $derived(this.states?.run === this.run && this.states?.at === this.cursor && (this.cursor === 0 || this.sentence !== undefined) ? this.cursor : undefined);

  /** What the address says that this place does not know, or that a screen reads itself. */
  others: Others = $state.raw([]);
  #horizon: number | undefined = $state(); // how many records of the run are shown
  #wanted = 0;
  #hash: string | undefined;
  #serial = 0;
  #opened: number | undefined; // the request that opens a run
  #asking = false;
  #address: ReturnType<typeof setTimeout> | undefined;

  constructor(other?: Connect) {
    this.connection = new Connection((engine) => this.#renew(engine), other);
    this.thumbs = new Thumbs(this.connection);
  }

  get count(): number {
    void this.grown;
    return this.run?.count ?? 0;
  }

  get stale(): boolean {
    return this.problem !== undefined && this.run !== undefined;
  }

  /** now is the virtual time that the picture shows. */
  get now(): number {
    return this.playTime ?? (this.cursor > 0 ? (this.run?.time[this.cursor - 1] ?? 0) : 0);
  }

  start(): void {
    this.connection.start();
    void this.visit(location.hash);
  }

  /** visit goes to the place that a fragment names. */
  async visit(fragment: string): Promise<void> {
    const decoded = await decode(fragment);
    this.stop();
    this.notice = "";
    this.trouble = undefined;
    if (decoded.problem) {
      this.page = "trouble";
      this.trouble = decoded;
      return;
    }
    const place = decoded.place;
    this.others = place.others;
    this.page = place.page;
    if (place.page === "compare") this.pair = place.ids;
    if (place.page === "learn") this.lesson = { id: place.lesson, step: place.step };
    if (place.page === "check") this.search = { algorithm: place.algorithm, params: place.others };
    if (place.page !== "run") return;
    this.choosing.on = false;
    this.source = place.source;
    this.pick = place.pick;
    this.axis = place.view.axis;
    this.embed = place.view.embed;
    this.mark = undefined;
    this.differsAt = undefined;
    this.#hash = place.hash;
    this.#horizon = undefined;
    this.challenge = place.others.find(([name]) => name === "challenge")?.[1] ?? "";
    this.#load(place.cursor);
  }

  /** show goes to a place of a run without an address of its own. Nothing after it is known before reveal. */
  show(source: Source, cursor: number, process: number | undefined): void {
    this.stop();
    this.choosing.on = false;
    this.source = source;
    this.pick = process ? { process } : undefined;
    this.axis = "real";
    this.embed = false;
    this.mark = this.differsAt = this.#hash = undefined;
    this.#horizon = cursor;
    this.#load(cursor);
  }

  /** Whether the run goes on after the records that are shown. */
  get held(): boolean {
    return this.#horizon !== undefined;
  }

  /** reveal shows the rest of a run, and goes to a place in it. */
  reveal(cursor: number): void {
    this.#horizon = undefined;
    this.#wanted = cursor;
    if (this.connection.engine && this.text) this.#open(this.connection.engine, this.text);
  }

  /** load finds the text of the source, once the catalog is there. */
  #load(cursor: number): void {
    const { source } = this;
    this.#wanted = cursor;
    this.cursor = 0;
    this.run = this.texts = this.result = this.states = this.problem = undefined;
    const { catalog, engine } = this.connection;
    if (!catalog || !engine) return; // renew comes back here
    const text = "text" in source ? source.text : catalog.scenarios.find((s) => s.id === source.id)?.text;
    if (text !== undefined) {
      this.branches.begin({ source, text, cursor });
      this.#open(engine, text);
      return;
    }
    this.page = "trouble";
    this.trouble = { problem: "unknown", detail: "id" in source ? source.id : "", partial: "" };
  }

  #renew(engine: Engine): void {
    if (this.page !== "run" && (this.page !== "learn" || !this.run)) return;
    if (this.text === "" || !this.run) this.#load(this.#wanted);
    else {
      this.#wanted = this.cursor;
      this.#open(engine, this.text);
    }
  }

  /** edit runs a changed text. The run before stays until the new one has records. */
  edit(text: string, name: string = strings.branches.typed, how: How = {}): void {
    if (text === this.text) return;
    const cursor = how.toEnd ? Number.MAX_SAFE_INTEGER : this.cursor;
    const made = { source: { text }, text, cursor };
    this.branches.add(this.#here(), made, name, how.goesOn ?? this.branches.current?.name === name);
    this.#restore(made);
  }

  /** The scenario of the catalog that is shown, or from which the present branch came. */
  get origin(): string | undefined {
    const source = this.branches.first?.doc.source ?? this.source;
    return this.scenario?.id ?? ("id" in source ? source.id : undefined);
  }

  /** here is what the present branch keeps. */
  #here(): Doc {
    return { source: this.source, text: this.text, cursor: this.cursor };
  }

  /** branch goes to another branch. */
  branch(id: number): void {
    const doc = this.branches.go(this.#here(), id);
    if (doc) this.#restore(doc);
  }

  /** canEdit reports whether the engine can add what a user does to the scenario that is shown. */
  get canEdit(): boolean {
    return (this.connection.hello?.calls.includes("edit") ?? false) && this.run !== undefined && this.problem === undefined;
  }

  /** act adds to the scenario what somebody does at the cursor, and runs it. */
  async act(edit: Edit, how: How = {}): Promise<void> {
    const { run, text } = this;
    const engine = this.texts?.engine;
    if (!run || !engine || !this.canEdit) return;
    this.stop();
    try {
      const done = await engine.call<{ text: string; line: number; item: string }>({ call: "edit", run: run.head.run, at: this.cursor, text, edit });
      // Another change may have come before the answer.
      if (this.run !== run || this.text !== text) return;
      this.edit(done.text, named(done.item), { goesOn: false, ...how });
      if (edit.do !== "turn") this.notice = strings.act.added(done.line, done.item);
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      this.notice = error.problem.message;
    }
  }

  undo(): void {
    const doc = this.branches.undo(this.#here());
    if (doc) this.#restore(doc);
  }

  redo(): void {
    const next = this.branches.current?.next;
    if (next !== undefined) this.branch(next);
  }

  get canUndo(): boolean {
    return this.branches.current?.parent !== undefined;
  }

  get canRedo(): boolean {
    return this.branches.current?.next !== undefined;
  }

  #restore(doc: Doc): void {
    this.stop();
    this.source = doc.source;
    this.#wanted = doc.cursor;
    if (this.connection.engine) this.#open(this.connection.engine, doc.text);
    else this.text = doc.text;
  }

  #open(engine: Engine, text: string): void {
    const serial = ++this.#serial;
    // A run of an engine that has ended has no number that this engine knows.
    const before = this.texts?.engine === engine ? this.run : undefined;
    this.text = text;
    this.opening = true;
    this.differsAt = undefined;
    if (this.#opened !== undefined) void engine.call({ call: "cancel", request: this.#opened }).catch(() => undefined);
    const name = this.scenario ? `${this.scenario.id}.yaml` : "scenario.yaml";
    let made: Run | undefined;
    const { id, answer } = engine.start({ call: "open", text, name, ...(this.#horizon ? { records: this.#horizon } : {}) }, (frame) => {
      if (serial !== this.#serial) return;
      if (frame.header.type === "run") made = new Run(frame.header as unknown as RunHead, this.connection.hello?.kinds ?? []);
      if (frame.header.type !== "chunk" || !made) return;
      made.append(frame);
      this.#grow(engine, made);
    });
    this.#opened = id;
    answer
      .then((frame) => {
        if (serial !== this.#serial || !made) return;
        this.#grow(engine, made);
        this.#finish(made, frame.header as unknown as RunEnd);
        if (before) void engine.call({ call: "close", run: before.head.run }).catch(() => undefined);
      })
      .catch((error: unknown) => {
        if (!(error instanceof EngineError)) throw error;
        if (serial === this.#serial && error.problem.code !== "lost") this.problem = error.problem;
      })
      .finally(() => {
        if (serial !== this.#serial) return;
        this.opening = false;
        this.#opened = undefined;
        void this.choosing.refresh();
      });
  }

  /** grow shows the records that have come. */
  #grow(engine: Engine, run: Run): void {
    if (this.run !== run) {
      this.texts?.close();
      this.run = run;
      this.texts = new Texts(engine, run);
      this.problem = undefined;
      this.result = undefined;
      this.states = undefined;
    }
    this.grown++;
    if (this.cursor !== this.#wanted) this.cursor = Math.min(this.#wanted, run.count);
    void this.refresh();
  }

  #finish(run: Run, end: RunEnd): void {
    run.result = end;
    this.result = end;
    this.cursor = Math.min(this.cursor, run.count);
    this.#wanted = this.cursor;
    if (end.reason === "held") this.choosing.on = true;
    if (this.#hash !== undefined) void this.#compare(run, this.#hash);
    this.#hash = undefined;
  }

  /** compare tells whether the URL was made with a run that was the same up to the cursor. */
  async #compare(run: Run, hash: string): Promise<void> {
    const at = this.cursor;
    const answer = await this.connection.engine?.call<{ hash: string }>({ call: "hash", run: run.head.run, at });
    if (answer && answer.hash !== hash && this.run === run) this.differsAt = at;
  }

  /** more lets a run that met its limit go on. */
  async more(): Promise<void> {
    const { run } = this;
    const { engine } = this.connection;
    if (!run || !engine || this.opening) return;
    this.opening = true;
    try {
      const end = await engine.call<RunEnd>({ call: "more", run: run.head.run, records: Math.min(1_000_000, run.count + 200_000) }, (frame) => {
        if (frame.header.type !== "chunk" || this.run !== run) return;
        run.append(frame);
        this.#grow(engine, run);
      });
      if (this.run === run) this.#finish(run, end);
    } finally {
      this.opening = false;
    }
  }

  /** go moves the cursor: so many records have happened then. */
  go(record: number): void {
    this.playTime = undefined;
    this.cursor = this.#wanted = Math.max(0, Math.min(record, this.count));
    this.notice = "";
    void this.refresh();
  }

  /** select moves to a record and shows what belongs to it. */
  select(pick: Pick | undefined): void {
    this.pick = pick;
  }

  /** seek returns the next record in a direction for which test holds, or undefined. */
  seek(step: 1 | -1, test: (run: Run, record: number) => boolean): number | undefined {
    const { run } = this;
    if (!run) return undefined;
    for (let record = this.cursor + step; record >= 1 && record <= run.count; record += step) {
      if (test(run, record)) return record;
    }
    return undefined;
  }

  seekProcess(step: 1 | -1, rank: number): number | undefined {
    return this.seek(step, (run, record) => run.process[record - 1] === rank && !run.has(record, flag.network));
  }

  seekEntry(step: 1 | -1): number | undefined {
    return this.seek(step, (run, record) => run.has(record, flag.granted));
  }

  seekRule(step: 1 | -1, rule: number): number | undefined {
    return this.seek(step, (run, record) => run.fired(record, rule));
  }

  play(): void {
    if (!this.run) return;
    if (this.cursor >= this.count) this.go(0);
    this.playing = true;
    this.playTime = undefined;
  }

  stop(): void {
    this.playing = false;
    this.playTime = undefined;
  }

  /** advance lets some virtual time pass while the run plays. */
  advance(nanoseconds: number): void {
    const { run } = this;
    if (!run) return;
    const last = run.time[run.count - 1] ?? 0;
    const now = this.now + nanoseconds;
    let cursor = this.cursor;
    while (cursor < run.count && (run.time[cursor] ?? 0) <= now) cursor++;
    this.playTime = Math.min(now, last);
    if (cursor !== this.cursor) {
      this.cursor = this.#wanted = cursor;
      void this.refresh();
    }
    if (cursor >= run.count) this.stop();
  }

  /** refresh asks for the states at the cursor. Of several questions only the last counts. */
  async refresh(): Promise<void> {
    void this.choosing.refresh();
    if (this.#asking) return;
    this.#asking = true;
    try {
      for (;;) {
        const { run, cursor: at } = this;
        const engine = this.texts?.engine;
        if (!run || !engine || engine !== this.connection.engine || (this.states?.run === run && this.states.at === at)) return;
        const ranks = this.#statesOf(run);
        const answer = await engine.call<{ processes: ProcessState[] }>({ call: "states", run: run.head.run, at, ...(ranks ? { ranks } : {}) });
        if (this.run === run) this.states = { run, at, processes: answer.processes };
      }
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
    } finally {
      this.#asking = false;
    }
  }

  /** Of many processes only those near the record and the selected one are asked for. */
  #statesOf(run: Run): number[] | undefined {
    if (run.labels.length <= 60) return undefined;
    const ranks = new Set<number>();
    if (this.pick && "process" in this.pick) ranks.add(run.rank(this.pick.process));
    for (let record = this.cursor; record >= 1 && ranks.size < 12; record--) {
      if (!run.has(record, flag.network)) ranks.add(run.process[record - 1] ?? 0);
    }
    for (let rank = 0; ranks.size < 12 && rank < run.labels.length; rank++) ranks.add(rank);
    return [...ranks].filter((rank) => rank >= 0).sort((a, b) => a - b);
  }

  /** place is where the lab is, as a URL keeps it. */
  place(): Place {
    if (this.page !== "run") return { page: "gallery", others: this.others };
    return {
      page: "run",
      source: this.source,
      cursor: this.cursor,
      ...(this.pick ? { pick: this.pick } : {}),
      view: { ...plainView, axis: this.axis, embed: this.embed },
      others: this.others,
    };
  }

  /** follow lets the address follow the place, a moment after the last change. */
  follow(): void {
    clearTimeout(this.#address);
    if (this.page !== "run" || this.problem || !this.run) return;
    const place = this.place();
    this.#address = setTimeout(() => void this.#write(place), addressDelay);
  }

  async #write(place: Place): Promise<void> {
    const fragment = await encode(place);
    if (this.page === "run" && fragment !== location.hash) history.replaceState(history.state, "", fragment);
  }

  /** url is the address to share: it has the hash of the run too. */
  async url(): Promise<string> {
    const place = this.place();
    if (place.page === "run" && this.run && this.cursor > 0) {
      const answer = await this.connection.engine?.call<{ hash: string }>({ call: "hash", run: this.run.head.run, at: this.cursor });
      if (answer) place.hash = answer.hash;
    }
    return new URL(await encode(place), location.href).href;
  }
}
