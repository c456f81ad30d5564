import type { Changes, Lack, Resource } from "./api";

/** A name that is held, and when it changed last; 0 if it was there from the start. */
export interface Row {
  readonly resource: Resource;
  readonly changed: number;
}

export const orders = ["queue", "age", "name"] as const;
export type Order = (typeof orders)[number];

/** Names is what is held of one class under a prefix, made of the changes that come. */
export class Names {
  #rows = new Map<string, Row>();
  /** What is told from the beginning after a reset, until it is complete. */
  #fresh: Map<string, Row> | undefined;
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
      into.set(resource.name, { resource, changed });
    }
    for (const name of changes.gone) into.delete(name);
    if (this.#fresh && !changes.more) {
      this.#rows = this.#fresh;
      this.#fresh = undefined;
    }
    if (!changes.more) this.complete = true;
  }

  /** sorted returns the rows in an order; equal ones by name. */
  sorted(order: Order): Row[] {
    const rows = [...this.#rows.values()];
    const byName = (a: Row, b: Row) => (a.resource.name < b.resource.name ? -1 : 1);
    if (order === "name") return rows.sort(byName);
    if (order === "queue") {
      return rows.sort((a, b) => b.resource.queue_length - a.resource.queue_length || byName(a, b));
    }
    const since = new Map(rows.map((row) => [row, heldSince(row.resource)]));
    return rows.sort((a, b) => (since.get(a) ?? 0) - (since.get(b) ?? 0) || byName(a, b));
  }
}

/** heldSince returns since when a name has been held, in ms. */
export function heldSince(resource: Resource): number {
  let oldest = Infinity;
  for (const holder of resource.holders) oldest = Math.min(oldest, Date.parse(holder.since));
  return oldest;
}

/** same reports whether a table shows two states of a name alike. */
function same(a: Resource, b: Resource): boolean {
  return (
    a.queue_length === b.queue_length &&
    a.holders.length === b.holders.length &&
    a.holders.every((holder, i) => {
      const other = b.holders[i];
      return holder.fence === other?.fence && holder.value === other.value && holder.revoked === other.revoked;
    })
  );
}
