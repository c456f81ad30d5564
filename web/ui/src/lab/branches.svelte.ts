import type { Source } from "../url/codec";

/** What undo goes back to. */
export interface Doc {
  source: Source;
  text: string;
  cursor: number;
}

/** A Branch is a scenario that an edit made from another. */
export interface Branch {
  id: number;
  parent?: number;
  /** The edit that made it; "" for the first. */
  name: string;
  /** The record at which it was made. */
  at: number;
  /** It only goes on where its parent ends. */
  goesOn: boolean;
  doc: Doc;
  /** The branch to which redo goes. */
  next?: number;
}

/** How many branches are kept. */
const most = 500;

/** Where the tab keeps them while the page is loaded again. */
const place = "conclave-branches";

/** Branches are all scenarios that came of one, as a tree. Nothing is lost by an edit. */
export class Branches {
  #all: Branch[] = $state.raw([]);
  #current = $state(0);
  #last = 0;

  get current(): Branch | undefined {
    return this.#all.find((b) => b.id === this.#current);
  }

  /** first is the scenario from which the present branch came. */
  get first(): Branch | undefined {
    let branch = this.current;
    while (branch?.parent !== undefined) {
      const { parent } = branch;
      const before = this.#all.find((b) => b.id === parent);
      if (!before) break;
      branch = before;
    }
    return branch;
  }

  /** shown are those that are a future of their own, each after its parent. */
  shown: { branch: Branch; depth: number }[] = $derived.by(() => {
    const all = this.#all;
    const superseded = new Set(all.filter((b) => b.goesOn).map((b) => b.parent));
    const found: { branch: Branch; depth: number }[] = [];
    const walk = (parent: number | undefined, depth: number) => {
      for (const branch of all) {
        if (branch.parent !== parent) continue;
        const own = !superseded.has(branch.id) || branch.id === this.#current;
        if (own) found.push({ branch, depth });
        walk(branch.id, own ? depth + 1 : depth);
      }
    };
    walk(undefined, 0);
    return found;
  });

  /** begin forgets everything but one scenario, unless that is a branch which the tab has kept. */
  begin(doc: Doc): void {
    const kept = read();
    const same = kept.find((b) => b.doc.text === doc.text);
    if (same) {
      this.#all = kept;
      this.#last = Math.max(...kept.map((b) => b.id));
      this.#current = same.id;
      return;
    }
    this.#current = ++this.#last;
    this.#all = [{ id: this.#current, name: "", at: 0, goesOn: false, doc }];
  }

  /** add leaves the present branch as it is seen now, for one that an edit makes. */
  add(left: Doc, made: Doc, name: string, goesOn: boolean): void {
    this.#change(this.#current, { doc: left, next: ++this.#last });
    const parent = this.#current;
    this.#all = [...this.#all, { id: this.#last, parent, name, at: left.cursor, goesOn, doc: made }].slice(-most);
    this.#current = this.#last;
    this.#keep();
  }

  /** go leaves the present branch for another, and returns what that is. */
  go(left: Doc, id: number | undefined): Doc | undefined {
    const to = this.#all.find((b) => b.id === id);
    if (!to || id === this.#current) return undefined;
    this.#change(this.#current, { doc: left });
    this.#current = to.id;
    return to.doc;
  }

  /** undo is go to where the present branch came from. */
  undo(left: Doc): Doc | undefined {
    const from = this.#current;
    const doc = this.go(left, this.current?.parent);
    if (doc) this.#change(this.#current, { next: from });
    return doc;
  }

  #keep(): void {
    try {
      sessionStorage.setItem(place, JSON.stringify(this.#all));
    } catch {
      // A tab that may keep nothing has its branches until it is loaded again.
    }
  }

  #change(id: number, change: Partial<Branch>): void {
    this.#all = this.#all.map((b) => (b.id === id ? { ...b, ...change } : b));
  }
}

/** read returns the branches that the tab has kept, or none. */
function read(): Branch[] {
  try {
    const kept: unknown = JSON.parse(sessionStorage.getItem(place) ?? "[]");
    return Array.isArray(kept) ? (kept as (Branch | null)[]).filter((b): b is Branch => typeof b?.id === "number" && typeof b.doc?.text === "string") : [];
  } catch {
    return [];
  }
}
