/** The protocol of lab/engine, as docs/lab/protocol.md describes it. */
export const protocol = 1;

export interface Request {
  call: string;
  text?: string;
  name?: string;
  run?: number;
  like?: number;
  from?: number;
  to?: number;
  at?: number;
  records?: number;
  ranks?: number[];
  query?: Query;
  format?: string;
  request?: number;
  check?: Check;
  audit?: { algorithm: string; assumption: string; states?: number };
  measure?: { algorithm: string; n: number };
  edit?: Edit;
  challenge?: string;
}

/** The lessons and challenges, as lab/course has them. */
export interface Course {
  lessons: Lesson[];
  challenges: Challenge[];
}

export interface Lesson {
  id: string;
  title: string;
  goal: string;
  steps: Step[];
}

/** A step of a lesson: a scenario of the catalog or a text, shown up to a record; a question; and where the run goes after it. */
export interface Step {
  scenario?: string;
  run?: string;
  at: number;
  then: number;
  process?: number;
  tell: string;
  ask: string;
  answers: Answer[];
  sum: string;
  check?: string;
}

export interface Answer {
  text: string;
  right?: boolean;
  why: string;
}

export interface Challenge {
  id: string;
  title: string;
  goal: string;
  run: string;
  may: string[];
  hints: string[];
  reasons: Answer[];
  sum: string;
}

export interface Graded {
  solved: boolean;
  refused: string[];
  unmet: string[];
}

/** What somebody does after a record, as one more line of the scenario. */
export interface Edit {
  do: string;
  turn?: string;
  rank?: number;
  ranks?: number[];
  flight?: number;
  /** How much later a message arrives, in ns. */
  by?: number;
}

/** What could happen after a record. */
export interface Turns {
  run: number;
  at: number;
  /** Somebody has control there; else these are the turns after control is taken. */
  held: boolean;
  /** The last record before the choices: starts, faults and the rest of an event come after `at` by themselves. */
  from: number;
  taken: number;
  left: number;
  time: number;
  choices: Choice[];
}

export interface Choice {
  turn: string;
  do: "arrive" | "expire" | "give";
  why?: string;
  overtake?: string;
  rank: number;
  from?: number;
  message?: string;
  cause?: number;
  pending?: boolean;
  lo?: number;
  due?: number;
}

/** A search of all schedules. What is absent is the engine's default. */
export interface Check {
  algorithm: string;
  n: number;
  entries?: number;
  timers?: string;
  crashes?: number;
  drops?: number;
  duplicates?: number;
  unordered?: boolean;
  liveness?: boolean;
  reduce?: boolean;
  /** Bytes. */
  memory?: number;
}

/** How far a search has come. */
export interface CheckProgress {
  states: number;
  transitions: number;
  depth: number;
  seconds: number;
}

export interface Checked extends CheckProgress {
  verdict: "proved" | "violated" | "bounded";
  sentence: string;
  bounds: string;
  stopped?: string;
  property?: string;
  text?: string;
  steps?: number;
  scenario?: string;
  story?: { step: number; record: number; text: string }[];
  /** The step after which no schedule keeps the promises; absent: not known. */
  noReturn?: number;
  fate?: string;
  unreached?: string[] | null;
  sometimes?: { what: string; reached: boolean }[] | null;
  command: string;
}

/** A variant of an algorithm with a mistake. */
export interface Broken {
  name: string;
  of: string;
  mistake: string;
  tempting: string;
  wrong: string;
  breaks: string;
  check: Check | null;
}

export interface Query {
  rule?: string;
  message?: string;
  kind?: string;
  rank?: number;
  field?: string;
  text?: string;
  flags?: number;
  last?: boolean;
}

/** A frame of an answer. The header is flat: id, type, and the fields of what it holds. */
export interface Frame {
  header: { id: number; type: "run" | "chunk" | "progress" | "result" | "error" } & Record<string, unknown>;
  body: ArrayBuffer | null;
}

export interface Problem {
  code: "request" | "scenario" | "run" | "limit" | "cancelled" | "internal" | "lost";
  message: string;
  line?: number;
  suggestion?: string;
}

export interface Hello {
  protocol: number;
  build: string;
  host: "wasm" | "native";
  cores: number;
  memory: number;
  calls: string[];
  kinds: string[];
  formats: string[];
}


export interface AlgorithmView {
  name: string;
  title: string;
  family: string;
}

export interface Scenario {
  id: string;
  algorithm: string;
  family: string;
  n: number;
  about: string;
  /** What to look for. */
  objective?: string;
  violation?: string;
  text: string;
}

export interface Catalog {
  algorithms: AlgorithmView[];
  broken: Broken[];
  scenarios: Scenario[];
  /** The algorithms that can be audited, the assumptions, and the algorithms that can be measured. */
  audited: string[];
  assumptions: { name: string; dropped: string }[];
  measured: string[];
}

/** A cell of the table of conclave audit. */
export interface Audited {
  algorithm: string;
  assumption: string;
  verdict: "proved" | "violated" | "bounded" | "does not apply" | "not audited";
  live: boolean;
  why?: string;
  bounds?: string;
  property?: string;
  text?: string;
  steps?: number;
  few_timeouts?: string;
  beyond?: string;
  core?: string;
  needed: boolean;
  refuted: boolean;
  /** The outcome in a few words. */
  short: string;
  /** The scenario of a violation. */
  found?: string;
  story?: { step: number; record: number; text: string }[];
  command: string;
}

/** What was measured of one metric in one regime. */
export interface Figure {
  algorithm: string;
  n: number;
  regime: "idle" | "saturated";
  metric: string;
  theory: number | null;
  bounds: [number, number] | null;
  measured: number;
  formula: string;
  within: boolean;
  said?: { text: string; wrong?: string }[];
}

export interface Header {
  algorithm: string;
  labels: number[];
  traitors?: number[];
  options?: Record<string, string>;
  seed?: number;
}

export interface MessageRef {
  name: string;
  class: string;
  layer: number;
  uses: string[];
  /** asks: the sender waits for the receiver from then on; answers: the receiver no longer waits for the sender. */
  part?: "asks" | "answers";
}

/** A field of the states, with its meaning. */
export interface FieldRef {
  name: string;
  text: string;
}

export interface RuleRef {
  name: string;
  text: string;
  layer: number;
}

/** What an algorithm uses of the topology, by rank. */
export interface Topology {
  kind: string;
  coordinator?: number;
  successor?: number[];
  parent?: number[]; // -1: none
  quorums?: number[][];
}

export interface RunHead {
  run: number;
  name?: string;
  about?: string;
  header: Header;
  d: number;
  messages: MessageRef[];
  rules: RuleRef[];
  fields?: FieldRef[];
  judged?: string[];
  topology?: Topology;
}

export interface ChunkHead {
  run: number;
  from: number;
  same?: number;
  count: number;
  flights: { from: number; count: number };
  ends: number;
}

export interface Violation {
  property: string;
  record: number;
  rank?: number;
  text: string;
}

export interface RunEnd {
  run: number;
  records: number;
  complete: boolean;
  reason: string;
  time: number;
  hash: string;
  met: boolean;
  unmet: string[] | null;
  violations: Violation[] | null;
  entries: number;
  waiting: number;
  inside: number;
  sent: { name: string; layer: number; class: string; count: number }[] | null;
  wait?: { count: number; mean: number; median: number; p99: number; max: number };
}

export interface TraceMessage {
  name: string;
  class?: string;
  from: number;
  to?: number;
  text: string;
}

export interface TraceRecord {
  id: number;
  cause?: number;
  t: number;
  p: number;
  kind: string;
  timer?: string;
  msg?: TraceMessage;
  note?: string;
  rules?: string[];
  effects?: { kind: string; internal?: boolean; fence?: string; cut?: boolean; msg?: TraceMessage }[];
  changes?: { field: string; before: string; after: string }[];
}

export interface Described {
  run: number;
  from: number;
  records: TraceRecord[];
  sentences: string[];
}

export interface ProcessState {
  rank: number;
  record: number;
  client: "away" | "waiting" | "inside";
  down?: boolean;
  paused?: boolean;
  fields: { name: string; value: string; durable?: boolean }[] | null;
  timers: { name: string; layer?: number; armed: number; lo: number; hi: number }[] | null;
}

/** The bits of a record, as lab/trace/journal names them. */
export const flag = {
  hidden: 1,
  network: 2,
  waiting: 4,
  inside: 8,
  down: 16,
  paused: 32,
  granted: 64,
  sends: 128,
  changed: 256,
  saved: 512,
  cut: 1024,
  news: 2048,
  noted: 4096,
} as const;

/** How far a message has come. */
export const fate = { flying: 0, arrived: 1, lost: 2, copy: 0x80 } as const;

/** noRank is the peer of a record that speaks of no other process. */
export const noRank = 65535;
