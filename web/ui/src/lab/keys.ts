import { actionsOf, perform } from "./act";
import type { Lab } from "./lab.svelte";
import type { Tab } from "./tabs";

/** What keys do besides what the lab does itself. */
export interface Deck {
  lab: Lab;
  choose(tab: Tab): void;
  search(): void;
  ask(what: "keys" | "go"): void;
  share(): void;
}

const speeds = [0.001, 0.01, 0.1, 0.5, 1, 2, 5, 20, 100, 1000];

type Action = (deck: Deck, event: KeyboardEvent) => void;

/** step moves the cursor: everywhere, or with Shift at the selected process. */
function step(lab: Lab, by: 1 | -1, atProcess: boolean): void {
  lab.stop();
  const rank = lab.pick && "process" in lab.pick ? (lab.run?.rank(lab.pick.process) ?? -1) : (lab.run?.process[lab.cursor - 1] ?? -1);
  const to = atProcess && rank >= 0 ? lab.seekProcess(by, rank) : lab.cursor + by;
  if (to !== undefined) lab.go(to);
}

function entry(lab: Lab, by: 1 | -1): void {
  lab.stop();
  const to = lab.seekEntry(by);
  if (to !== undefined) lab.go(to);
}

function faster(lab: Lab, by: 1 | -1): void {
  const place = speeds.indexOf(lab.speed);
  lab.speed = speeds[Math.max(0, Math.min(speeds.length - 1, place + by))] ?? 1;
}

/** cone turns the past or the future of the record on or off. */
function cone(lab: Lab, which: "past" | "future"): void {
  const other = which === "past" ? "future" : "past";
  if (lab.cone === which) lab.cone = undefined;
  else if (lab.cone === "both") lab.cone = other;
  else lab.cone = lab.cone === other ? "both" : which;
}

/** row moves the focus in the list that is open. */
function row(by: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLElement>("[data-list] [data-row], .cards a")];
  if (rows.length === 0) return;
  const place = rows.indexOf(document.activeElement as HTMLElement);
  const current = place >= 0 ? place : rows.findIndex((r) => r.getAttribute("aria-current") !== null);
  rows[Math.max(0, Math.min(rows.length - 1, current + by))]?.focus();
}

const actions: Record<string, Action> = {
  ArrowRight: ({ lab }, event) => step(lab, 1, event.shiftKey),
  ArrowLeft: ({ lab }, event) => step(lab, -1, event.shiftKey),
  // What a clicker sends.
  PageDown: ({ lab }) => step(lab, 1, false),
  PageUp: ({ lab }) => step(lab, -1, false),
  Home: ({ lab }) => (lab.stop(), lab.go(0)),
  End: ({ lab }) => (lab.stop(), lab.go(lab.count)),
  " ": ({ lab }) => (lab.playing ? lab.stop() : lab.play()),
  n: ({ lab }) => entry(lab, 1),
  p: ({ lab }) => entry(lab, -1),
  "-": ({ lab }) => faster(lab, -1),
  "+": ({ lab }) => faster(lab, 1),
  "=": ({ lab }) => faster(lab, 1),
  j: () => row(1),
  k: () => row(-1),
  g: (deck) => deck.ask("go"),
  "?": (deck) => deck.ask("keys"),
  v: ({ lab }) => (lab.axis = lab.axis === "real" ? "logical" : "real"),
  w: ({ lab }) => cone(lab, "past"),
  W: ({ lab }) => cone(lab, "future"),
  i: ({ lab }) => lab.cutting.toggle(),
  m: ({ lab }) => (lab.mapShown = !lab.mapShown),
  s: (deck) => deck.choose("source"),
  "/": (deck) => deck.search(),
  "'": ({ lab }) => (lab.mark = lab.mark === undefined ? lab.cursor : undefined),
  u: ({ lab }) => lab.undo(),
  U: ({ lab }) => lab.redo(),
  "[": ({ lab }) => otherBranch(lab, -1),
  "]": ({ lab }) => otherBranch(lab, 1),
  t: (deck) => {
    deck.lab.choosing.toggle();
    if (deck.lab.choosing.on) deck.choose("flight");
  },
  T: ({ lab }) => void lab.choosing.rest(),
  d: ({ lab }) => takeTurn(lab),
  L: (deck) => deck.share(),
  ".": ({ lab }) => (lab.presenter = !lab.presenter),
  Escape: ({ lab }) => clear(lab),
};

/** otherBranch goes to the branch that is shown before or after the present one. */
function otherBranch(lab: Lab, by: 1 | -1): void {
  const shown = lab.branches.shown;
  const to = shown[shown.findIndex((s) => s.branch === lab.branches.current) + by];
  if (to) lab.branch(to.branch.id);
}

/** takeTurn takes the turn of the selected message, or else the first that can be taken. */
function takeTurn(lab: Lab): void {
  const { pick, run } = lab;
  const choices = lab.choosing.turns?.choices ?? [];
  const message = pick && "message" in pick ? pick.message : undefined;
  const choice = message ? choices.find((c) => c.cause === message.sender && run?.labels[c.rank] === message.to) : choices.find((c) => !c.why);
  if (choice) void lab.choosing.pick(choice);
}

/** clear takes back what is shown besides the run, the latest first. */
function clear(lab: Lab): void {
  lab.notice = "";
  if (lab.pick) lab.select(undefined);
  else if (lab.cutting.cut) lab.cutting.toggle();
  else if (lab.cone) lab.cone = undefined;
  else if (lab.mark !== undefined) lab.mark = undefined;
  else lab.presenter = false;
}

/** press acts on a key of the run, and reports whether it did. */
export function press(deck: Deck, event: KeyboardEvent): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return false;
  const arrow = event.key.startsWith("Arrow") || event.key === "Home" || event.key === "End";
  if (arrow && event.target instanceof HTMLElement && event.target.closest("input, select, [role=tablist]")) return false;
  if (event.key === " " && event.target instanceof Element && event.target.closest("button, a, input, select, summary")) return false;
  if (event.key.startsWith("Page") && !deck.lab.presenter) return false;
  const digit = /^[1-9]$/.exec(event.key);
  if (digit) {
    const label = deck.lab.run?.labels[Number(event.key) - 1];
    if (label === undefined) return false;
    deck.lab.select({ process: label });
    return true;
  }
  const action = actions[event.key];
  if (!action) {
    const done = deck.lab.canEdit ? actionsOf(deck.lab).find((a) => a.key === event.key) : undefined;
    if (done) perform(deck.lab, done);
    return done !== undefined;
  }
  action(deck, event);
  return true;
}

/** typing reports whether keys belong to a text field or a dialog. */
const typing = (target: EventTarget | null): boolean =>
  target instanceof Element &&
  (target.closest("textarea, select, dialog[open], [contenteditable]") !== null || (target instanceof HTMLInputElement && !["range", "checkbox", "radio"].includes(target.type)));
