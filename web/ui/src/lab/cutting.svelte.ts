import { crossings, cutAt, nearest, onTheWay, recordsOf, type Cut } from "./cuts";
import type { Lab } from "./lab.svelte";
import type { Run } from "./run";

/** Cutting is the cut that a user draws through the run that is shown. */
export class Cutting {
  readonly #lab: Lab;
  #drawn: { run: Run; cut: Cut } | undefined = $state.raw();

  constructor(lab: Lab) {
    this.#lab = lab;
  }

  /** cut is undefined while none is drawn; another run has none. */
  get cut(): Cut | undefined {
    return this.#drawn && this.#drawn.run === this.#lab.run ? this.#drawn.cut : undefined;
  }

  /** records are those of each process. */
  records: number[][] = $derived.by(() => {
    void this.#lab.grown;
    return this.cut && this.#lab.run ? recordsOf(this.#lab.run) : [];
  });
  crossings = $derived.by(() => (this.cut && this.#lab.run ? crossings(this.#lab.run, this.records, this.cut) : []));
  onTheWay = $derived.by(() => (this.cut && this.#lab.run ? onTheWay(this.#lab.run, this.cut) : []));

  /** toggle draws the cut of all that has happened at the cursor, or removes it. */
  toggle(): void {
    const { run, cursor } = this.#lab;
    this.#drawn = this.cut || !run ? undefined : { run, cut: cutAt(recordsOf(run), cursor) };
  }

  /** put ends what is inside at a process with one of its records, or before all with 0. */
  put(rank: number, record: number): void {
    const { run } = this.#lab;
    if (!run || !this.cut || this.cut[rank] === record) return;
    this.#drawn = { run, cut: this.cut.map((old, other) => (other === rank ? record : old)) };
  }

  /** move takes so many more records of a process inside, or fewer. */
  move(rank: number, by: number): void {
    const records = this.records[rank] ?? [];
    const at = records.indexOf(this.cut?.[rank] ?? 0) + 1;
    this.put(rank, [0, ...records][Math.max(0, Math.min(records.length, at + by))] ?? 0);
  }

  /** repair takes the nearest consistent cut. */
  repair(): void {
    const { run } = this.#lab;
    if (run && this.cut) this.#drawn = { run, cut: nearest(run, this.records, this.cut) };
  }
}
