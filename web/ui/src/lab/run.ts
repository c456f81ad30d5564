import { fate, type ChunkHead, type Frame, type RunEnd, type RunHead } from "../engine/protocol";

/** An array of numbers that grows. */
type Column = Float64Array | Uint32Array | Uint16Array | Uint8Array;

/** The flag of a fate that says "the link made this copy" is kept beside it. */
const fateBits = 0x7f;

/**
 * Run is what the page knows of a run: the columns of its records and flights. Records
 * have numbers from 1, flights from 0. It grows while chunks come.
 */
export class Run {
  /** How many records there are. */
  count = 0;
  flights = 0;
  time = new Float64Array(1024);
  cause = new Uint32Array(1024);
  rulesLow = new Uint32Array(1024);
  rulesHigh = new Uint32Array(1024);
  row = new Uint32Array(1024);
  index = new Uint32Array(1024);
  process = new Uint16Array(1024);
  peer = new Uint16Array(1024);
  flags = new Uint16Array(1024);
  kind = new Uint8Array(1024);
  type = new Uint8Array(1024);

  sender = new Uint32Array(1024);
  end = new Uint32Array(1024);
  receiver = new Uint16Array(1024);
  flightType = new Uint8Array(1024);
  fate = new Uint8Array(1024);

  /** What ended the run; undefined while records still come. */
  result: RunEnd | undefined;
  /** Which chunk this run has come to. Derived values compare it. */
  version = 0;

  constructor(
    readonly head: RunHead,
    readonly kinds: readonly string[],
  ) {}

  get labels(): readonly number[] {
    return this.head.header.labels;
  }

  /** label names a process. */
  label(rank: number): string {
    return String(this.labels[rank] ?? "?");
  }

  rank(label: number): number {
    return this.labels.indexOf(label);
  }

  kindOf(record: number): string {
    return this.kinds[this.kind[record - 1] ?? 0] ?? "";
  }

  /** has reports whether a record has a flag. */
  has(record: number, bit: number): boolean {
    return ((this.flags[record - 1] ?? 0) & bit) !== 0;
  }

  fateOf(flight: number): number {
    return (this.fate[flight] ?? 0) & fateBits;
  }

  messageName(type: number): string {
    return this.head.messages[type - 1]?.name ?? "?";
  }

  /** fired reports whether a record applied the rule with this place in head.rules. */
  fired(record: number, rule: number): boolean {
    const mask = rule < 32 ? this.rulesLow[record - 1] : this.rulesHigh[record - 1];
    return rule < 64 && (((mask ?? 0) >>> (rule % 32)) & 1) === 1;
  }

  /** flying returns the flights that are on their way after a record, oldest first. */
  flying(at: number): number[] {
    const found: number[] = [];
    for (let f = 0; f < this.flights; f++) {
      const sender = this.sender[f] ?? 0;
      const end = this.end[f] ?? 0;
      if (sender > at) continue;
      if (end === 0 || end > at) found.push(f);
    }
    return found;
  }

  /** flight finds a message by the record that sent it and its receiver. */
  flight(sender: number, to: number): number | undefined {
    for (let f = 0; f < this.flights; f++) {
      if (this.sender[f] === sender && this.receiver[f] === to) return f;
    }
    return undefined;
  }

  /** append adds the columns of a chunk. Base is the run whose first records it shares. */
  append(frame: Frame, base?: Run): void {
    const head = frame.header as unknown as ChunkHead;
    if (head.same && base) this.#share(base, head.same, head.flights.from);
    const reader = new ColumnReader(frame.body ?? new ArrayBuffer(0));
    this.#appendRecords(reader, head.count);
    this.#appendFlights(reader, head.flights.count);
    const landed = reader.uint32(head.ends);
    const records = reader.uint32(head.ends);
    for (let i = 0; i < head.ends; i++) this.#land(landed[i] ?? 0, records[i] ?? 0);
    this.version++;
  }

  #appendRecords(reader: ColumnReader, n: number): void {
    const from = this.count;
    this.#reserve(["time", "cause", "rulesLow", "rulesHigh", "row", "index", "process", "peer", "flags", "kind", "type"], from, n);
    this.time.set(reader.float64(n), from);
    this.cause.set(reader.uint32(n), from);
    this.rulesLow.set(reader.uint32(n), from);
    this.rulesHigh.set(reader.uint32(n), from);
    this.row.set(reader.uint32(n), from);
    this.index.set(reader.uint32(n), from);
    this.process.set(reader.uint16(n), from);
    this.peer.set(reader.uint16(n), from);
    this.flags.set(reader.uint16(n), from);
    this.kind.set(reader.uint8(n), from);
    this.type.set(reader.uint8(n), from);
    this.count += n;
  }

  #appendFlights(reader: ColumnReader, n: number): void {
    const from = this.flights;
    this.#reserve(["sender", "end", "receiver", "flightType", "fate"], from, n);
    this.sender.set(reader.uint32(n), from);
    this.end.set(reader.uint32(n), from);
    this.receiver.set(reader.uint16(n), from);
    this.flightType.set(reader.uint8(n), from);
    this.fate.set(reader.uint8(n), from);
    this.flights += n;
  }

  #land(flight: number, record: number): void {
    this.end[flight] = record;
    const copy = (this.fate[flight] ?? 0) & fate.copy;
    this.fate[flight] = (this.kindOf(record) === "deliver" ? fate.arrived : fate.lost) | copy;
  }

  #share(base: Run, records: number, flights: number): void {
    const recordColumns = ["time", "cause", "rulesLow", "rulesHigh", "row", "index", "process", "peer", "flags", "kind", "type"] as const;
    const flightColumns = ["sender", "end", "receiver", "flightType", "fate"] as const;
    this.#reserve(recordColumns, 0, records);
    this.#reserve(flightColumns, 0, flights);
    for (const name of recordColumns) (this[name] as Column).set(base[name].subarray(0, records));
    for (const name of flightColumns) (this[name] as Column).set(base[name].subarray(0, flights));
    this.count = records;
    this.flights = flights;
    for (let f = 0; f < flights; f++) {
      if ((this.end[f] ?? 0) <= records) continue;
      this.end[f] = 0;
      this.fate[f] = fate.flying | ((this.fate[f] ?? 0) & fate.copy);
    }
  }

  #reserve(names: readonly string[], from: number, n: number): void {
    const columns = this as unknown as Record<string, Column>;
    for (const name of names) {
      const column = columns[name] as Column;
      if (from + n <= column.length) continue;
      const grown = new (column.constructor as new (length: number) => Column)(Math.max(from + n, column.length * 2));
      grown.set(column);
      columns[name] = grown;
    }
  }
}

/** ColumnReader takes typed arrays from a body, one after the other. */
class ColumnReader {
  #at = 0;

  constructor(readonly body: ArrayBuffer) {}

  float64 = (n: number) => new Float64Array(this.#take(8 * n));
  uint32 = (n: number) => new Uint32Array(this.#take(4 * n));
  uint16 = (n: number) => new Uint16Array(this.#take(2 * n));
  uint8 = (n: number) => new Uint8Array(this.#take(n));

  /** The columns of a body need not be aligned, so each is copied. */
  #take(bytes: number): ArrayBuffer {
    const part = this.body.slice(this.#at, this.#at + bytes);
    if (part.byteLength < bytes) throw new RangeError(`a body of ${this.body.byteLength} bytes is too short`);
    this.#at += bytes;
    return part;
  }
}
