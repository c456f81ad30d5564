/** Objectives: one sentence that says what to look for in a scenario of the catalog. */
export const objectives: Readonly<Record<string, string>> = {
  "mutex/central": "Count the messages of one entry.",
  "mutex/token-ring": "What does it cost when nobody wants to enter?",
  "mutex/lamport": "Why must a process hear from everybody before it enters?",
  "mutex/ricart-agrawala": "Find the message that is not sent.",
  "mutex/suzuki-kasami": "One REQ comes too late. Who serves it all the same?",
  "mutex/raymond": "Which way does the tree point after each move?",
  "mutex/maekawa": "Which voter changes its mind?",
  "mutex/singhal": "Which processes need not be asked?",
  "singhal-lost-request": "Where is the request lost?",
  "mutex/k-ricart-agrawala": "Who waits when two units serve three?",
  "mutex/majority": "How many may forget?",
  "majority-reset-coordinator": "How many may forget?",
  "maekawa-deadlock": "Nobody will ever enter. Find the step after which this is certain.",
  "maekawa-without-deadlock": "Which message breaks the circle, and which vote is given back?",
  "lamport-without-fifo": "Which message overtakes?",
  "lamport-with-fifo": "Which message waits for an earlier one?",
  "lost-token": "Who can make a new token, and who must not?",
  "recovered-token": "Who can make a new token, and who must not?",
  "ricart-agrawala-clock-0": "What did process 1 forget?",
  "raymond-crash": "Who still waits, and for whom?",
  "documents/004-ricart-agrawala-second-waiter": "Who still waits, and for whom?",
  bully: "Who answers and then dies?",
  "documents/000-bully-helper": "Who answers and then dies?",
  "documents/001-ring-order": "Does the order of requests decide who enters?",
  "documents/002-ring-all-start": "Which labels are swallowed?",
  "election/chang-roberts": "Which labels are swallowed?",
  "election/chang-roberts-printed-nobody": "One sign is wrong. Which?",
  "election/ring-list-starter-crashes": "Who stops a list whose starter is gone?",
  "detectors/heartbeat-slow-link": "Is a slow process dead?",
  "detectors/phi-adapts": "Which detector learns?",
  "detectors/swim": "Who vouches for process 1?",
  "detectors/swim-one-way-cut": "Who vouches for process 1?",
  "clock/lamport-clock-is-not-strong": "Do smaller numbers mean earlier?",
  "clock/vector-clock": "Which events are concurrent?",
  "clock/cristian-drifting": "How wrong can a clock be?",
  "clock/berkeley-elects": "Which clock is the reference after the master is gone?",
  "multicast/fifo-without-causal": "Which answer comes before its question?",
  "multicast/causal-without-total": "Which order is broken?",
  "multicast/plain-sender-crash": "Who received the message, and who did not?",
  "globalstate/token-ring": "Where is the token in this snapshot?",
  "globalstate/without-fifo": "Which marker is overtaken?",
  "super-peer-crash": "Who serves the segment now?",
  "load/ricart-agrawala-30": "What does the whole run look like?",
  "load/token-ring-100": "Who waits longest, and for how long?",
};

/** The groups of the gallery, in the order of a course, with the scenarios that have an objective. */
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

/** objectiveOf falls back to the first sentence of what the scenario says of itself. */
export function objectiveOf(id: string | undefined, about: string | undefined): string {
  const known = id === undefined ? undefined : objectives[id];
  if (known) return known;
  // Where a scenario comes from a document, its first words are the name of a file.
  const told = (about ?? "").trim().replace(/^\S+\.txt, /, "");
  const first = /^[^]*?[.?!](?=\s|$)/.exec(told)?.[0].replaceAll(/\s+/g, " ") ?? "";
  return first.charAt(0).toUpperCase() + first.slice(1);
}
