import type { Changes, Holder, Lack, Resource } from "./forms";

/** A name that is held. What tables and problems ask of thousands of rows is kept ready. */
export interface Row {
  readonly resource: Resource;
  /** When it changed last, in ms; 0 if it was there from the start. */
  readonly changed: number;
  /** Since when it has been held, in ms. */
  readonly since: number;
  /** A holder that was asked to leave. */
  readonly asked: Holder | undefined;
}

/** rowOf makes a row of a resource that changed at a moment, in ms. */
export const rowOf = (resource: Resource, changed = 0): Row => ({
  resource,
  changed,
  since: resource.holders.reduce((oldest, holder) => Math.min(oldest, Date.parse(holder.since)), Infinity),
  asked: resource.holders.find((holder) => holder.revoked),
});

export const orders = ["queue", "age", "name"] as const;
export type Order = (typeof orders)[number];

/** Names is what is held of one class under a prefix, made of the changes that come. */
export class Names {
  #rows = new Map<string, Row>();
  /** What is told from the beginning after a reset, until it is complete. */
  #fresh: Map<string, Row> | undefined;
  /** The names of all rows in order, or undefined until somebody asks for it. */
  #ordered: string[] | undefined;
  /** complete says that everything was told once. */
  complete = false;
  /** lack is why nothing is told now. */
  lack: Lack | undefined;

  get rows(): ReadonlyMap<string, Row> {
    return this.#rows;
  }

  /**
   * apply takes in changes that came at a moment, in ms. What was known before a reset is
   * shown until all is told again, so that a change of leaders does not empty the table.
   */
  apply(changes: Changes, now: number): void {
    this.lack = undefined;
    if (changes.reset) this.#fresh = new Map();
    const into = this.#fresh ?? this.#rows;
    for (const resource of changes.resources) {
      const before = this.#rows.get(resource.name);
      const changed = this.complete && !(before && same(before.resource, resource)) ? now : (before?.changed ?? 0);
      if (into === this.#rows && !before) this.#place(resource.name, true);
      into.set(resource.name, rowOf(resource, changed));
    }
    for (const name of changes.gone) {
      if (into.delete(name) && into === this.#rows) this.#place(name, false);
    }
    if (this.#fresh && !changes.more) {
      this.#rows = this.#fresh;
      this.#fresh = this.#ordered = undefined;
    }
    if (!changes.more) this.complete = true;
  }

  /** sorted returns the rows in an order; equal ones by name. */
  sorted(order: Order): Row[] {
    this.#ordered ??= [...this.#rows.keys()].sort();
    const rows = this.#ordered.map((name) => this.#rows.get(name) as Row);
    // Sorting is stable, and comparing numbers is far quicker than comparing names.
    if (order === "queue") rows.sort((a, b) => b.resource.queue_length - a.resource.queue_length);
    if (order === "age") rows.sort((a, b) => a.since - b.since);
    return rows;
  }

  /** place puts a name where it belongs among those in order, or takes it out. */
  #place(name: string, present: boolean): void {
    const names = this.#ordered;
    if (!names) return;
    let [low, high] = [0, names.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((names[middle] as string) < name) low = middle + 1;
      else high = middle;
    }
    if (present) names.splice(low, 0, name);
    else names.splice(low, 1);
  }
}

/** same reports whether a table shows two states of a name alike. */
function same(a: Resource, b: Resource): boolean {
  return (
    a.queue_length === b.queue_length &&
    a.holders.length === b.holders.length &&
    a.closed?.length === b.closed?.length &&
    a.holders.every((holder, i) => {
      const other = b.holders[i];
      return holder.fence === other?.fence && holder.value === other.value && holder.revoked === other.revoked;
    })
  );
}
