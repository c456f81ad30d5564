/** The groups of the gallery, in the order of a course. Each scenario has an objective in lab/course/objectives.yaml. */
export const groups: readonly { title: string; ids: readonly string[] }[] = [
  {
    title: "Start here",
    ids: ["maekawa-deadlock", "maekawa-without-deadlock", "mutex/lamport", "mutex/ricart-agrawala", "mutex/token-ring", "clock/lamport-clock-is-not-strong"],
  },
  {
    title: "Mutual exclusion",
    ids: [
      "mutex/central", "mutex/suzuki-kasami", "mutex/raymond", "mutex/maekawa", "mutex/singhal", "mutex/k-ricart-agrawala", "mutex/majority",
      "documents/001-ring-order",
    ],
  },
  {
    title: "What goes wrong",
    ids: [
      "lamport-without-fifo", "lamport-with-fifo", "singhal-lost-request", "lost-token", "recovered-token", "ricart-agrawala-clock-0",
      "raymond-crash", "documents/004-ricart-agrawala-second-waiter", "majority-reset-coordinator",
    ],
  },
  {
    title: "Elections",
    ids: [
      "bully", "documents/000-bully-helper", "election/chang-roberts", "documents/002-ring-all-start", "election/chang-roberts-printed-nobody",
      "election/ring-list-starter-crashes", "super-peer-crash",
    ],
  },
  {
    title: "Failure detectors",
    ids: ["detectors/heartbeat-slow-link", "detectors/phi-adapts", "detectors/swim", "detectors/swim-one-way-cut"],
  },
  {
    title: "Clocks, order and snapshots",
    ids: [
      "clock/vector-clock", "clock/cristian-drifting", "clock/berkeley-elects", "multicast/fifo-without-causal", "multicast/causal-without-total",
      "multicast/plain-sender-crash", "globalstate/token-ring", "globalstate/without-fifo",
    ],
  },
  { title: "Under load", ids: ["load/ricart-agrawala-30", "load/token-ring-100"] },
];

/** Runs that say more side by side, with what to look for. */
export const pairs: readonly { ids: readonly [string, string]; objective: string }[] = [
  { ids: ["maekawa-deadlock", "maekawa-without-deadlock"], objective: "After which step is the deadlock certain, and which vote is given back?" },
  { ids: ["lamport-without-fifo", "lamport-with-fifo"], objective: "Which message overtakes, and which one waits?" },
  { ids: ["mutex/lamport", "mutex/ricart-agrawala"], objective: "Which messages does Ricart-Agrawala save?" },
  { ids: ["mutex/lease-pause", "mutex/lease-pause-fence"], objective: "Two are inside. What does the fence still protect?" },
];

/** twinOf returns the other run of a pair, and the address of both side by side. */
export function twinOf(id: string | undefined): { id: string; href: string } | undefined {
  const ids = pairs.find((pair) => id !== undefined && pair.ids.includes(id))?.ids;
  const other = ids?.find((one) => one !== id);
  return ids && other ? { id: other, href: `#1/compare/${ids.map(encodeURIComponent).join("/")}` } : undefined;
}

/** objectiveOf is what to look for in a scenario, or else the first sentence of what it says of itself. */
export function objectiveOf(known: string | undefined, about: string | undefined): string {
  if (known) return known;
  // Where a scenario comes from a document, its first words are the name of a file.
  const told = (about ?? "").trim().replace(/^\S+\.txt, /, "");
  const first = /^[^]*?[.?!](?=\s|$)/.exec(told)?.[0].replaceAll(/\s+/g, " ") ?? "";
  return first.charAt(0).toUpperCase() + first.slice(1);
}

/** stem leaves the endings of a word away, so that voters, votes and voting are found by each other. */
const stem = (word: string): string => (word.length < 5 ? word : word.replace(/(ing|ers?|ed|es|s)$/, "").replace(/e$/, ""));

/** matches reports whether a text has words that begin like each word of a query. */
export function matches(text: string, query: string): boolean {
  const lower = text.toLowerCase();
  const wanted = query.trim().toLowerCase();
  if (lower.includes(wanted)) return true;
  return wanted.split(/\s+/).every((word) => lower.includes(stem(word)));
}

/** ranked sorts what a search found: first where to start, last what only a search of all schedules shows. */
export function ranked<S extends { id: string; about: string }>(found: readonly S[]): S[] {
  const order = groups.flatMap((group) => group.ids);
  const rank = ({ id, about }: S) => {
    const place = order.indexOf(id);
    return place >= 0 ? place : order.length + (/^found by the model checker/i.test(about) ? 1 : 0);
  };
  return [...found].sort((a, b) => rank(a) - rank(b));
}
