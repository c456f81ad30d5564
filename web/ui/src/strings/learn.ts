/** What the keys of a scenario stand for. */
const named: Record<string, string> = {
  "workload.commands": "the requests",
  "workload.section": "the time inside",
  schedule: "the order of events",
  links: "the links",
  faults: "the faults",
  seed: "the random seed",
};

const listed = (texts: readonly string[]): string => (texts.length > 1 ? `${texts.slice(0, -1).join(", ")} and ${texts.at(-1) ?? ""}` : texts.join(""));

/** What the lessons and challenges say besides their own texts, which come from the engine. */
export const learn = {
  tab: "Learn",
  title: "Learn",
  intro: "In a lesson you predict what happens next, and the run answers. In a challenge you change a run until it meets a goal, and the engine judges it.",
  lessons: "Lessons",
  challenges: "Challenges",
  loading: "Loading the lessons…",
  steps: (done: number, all: number) => (done === 0 ? `${all} steps` : done >= all ? "✓ done" : `${done} of ${all} steps done`),
  solved: "✓ solved",
  unknown: (id: string) => `There is no lesson or challenge “${id}”.`,
  back: "All lessons",

  step: (step: number, all: number) => `Step ${step} of ${all}`,
  goTo: (step: number) => `Go to step ${step}`,
  locked: (step: number) => `Step ${step} opens after the one before`,
  text: "The lesson",
  right: "Right.",
  wrong: "Not quite.",
  again: "Try another answer.",
  next: "Next step",
  nextLesson: (title: string) => `Next lesson: ${title}`,
  finished: "This was the last step of the lesson.",
  toChallenges: "Go to the challenges",
  check: "Search all schedules",
  open: "Open this run in the lab",

  challenge: "Challenge",
  goal: "Goal",
  may: (keys: readonly string[]) =>
    `You may change ${listed(keys.map((key) => named[key] ?? named[key.split(".")[0] ?? ""] ?? key).filter((text, i, all) => all.indexOf(text) === i))}. In the scenario: ${keys.join(", ")}.`,
  /** Buttons make faults, requests and turns. What else may change is text. */
  how: (keys: readonly string[]) =>
    `${keys.some((key) => /^faults|schedule|commands/.test(key)) ? "Select a message or a process, and use the buttons below the picture. Or open" : "Open"} the tab Source and edit the scenario there.`,
  grade: "Check my answer",
  impossible: "It is impossible",
  why: "Why is it impossible?",
  hint: "Hint",
  hintLater: "There is a hint after two tries",
  restart: "Start again",
  isSolved: "Solved.",
  isImpossible: "Right, it is impossible.",
  notSolved: "Not solved yet.",
  nextChallenge: (title: string) => `Next challenge: ${title}`,
  allChallenges: "All lessons and challenges",
  refused: "Your change is not allowed.",
  unmet: "The goal is not met.",
} as const;
