import { fate, flag, type Edit } from "../engine/protocol";
import { lab as strings } from "../strings/lab";
import { delayed } from "./late";
import type { Lab } from "./lab.svelte";

/** An Action is what can be done to what is selected. */
export interface Action {
  key: string;
  text: string;
  edit: Edit;
  /** Why it cannot be done now, or nothing. */
  why: string;
}

/** actionsOf returns what can be done to the selected process or message at the cursor. */
export function actionsOf(lab: Lab): Action[] {
  const { run, pick } = lab;
  if (!run || !pick) return [];
  const act = strings.act;
  if ("message" in pick) {
    const flight = run.flight(pick.message.sender, run.rank(pick.message.to));
    if (flight === undefined) return [];
    const lost = run.fateOf(flight) === fate.lost ? act.isLost : "";
    const arrival = run.time[(run.end[flight] ?? 0) - 1];
    const arrives = (by: number) => (arrival === undefined || run.fateOf(flight) !== fate.arrived ? 0 : delayed(run, flight, arrival + by * run.head.d));
    const moved = (by: number, key: string, text: string): Action => ({ key, text, edit: { do: "delay", flight, by: arrives(by) }, why: arrives(by) ? "" : act.notMoved });
    return [
      { key: "x", text: act.lose, edit: { do: "lose", flight }, why: lost },
      { key: "D", text: act.repeat, edit: { do: "repeat", flight }, why: lost },
      moved(1, ">", act.later),
      moved(-1, "<", act.earlier),
    ];
  }
  const rank = run.rank(pick.process);
  if (rank < 0) return [];
  const name = run.label(rank);
  const state = stateAt(lab, rank);
  const down = (state & flag.down) !== 0;
  const paused = (state & flag.paused) !== 0;
  const isDown = down ? act.isDown(name) : "";
  return [
    { key: "c", text: act.crash, edit: { do: "crash", rank }, why: isDown },
    { key: "r", text: act.restart, edit: { do: "restart", rank }, why: down ? "" : act.notDown(name) },
    { key: paused ? "" : "z", text: act.pause, edit: { do: "pause", rank }, why: isDown || (paused ? act.isPaused(name) : "") },
    { key: paused ? "z" : "", text: act.resume, edit: { do: "resume", rank }, why: paused ? "" : act.notPaused(name) },
    { key: "", text: act.cut, edit: { do: "partition", ranks: [rank] }, why: "" },
    { key: "", text: act.heal, edit: { do: "heal" }, why: "" },
    { key: "a", text: act.acquire, edit: { do: "acquire", rank }, why: isDown || (state & (flag.waiting | flag.inside) ? act.asked(name) : "") },
    { key: "e", text: act.release, edit: { do: "release", rank }, why: state & flag.inside ? "" : act.notInside(name) },
  ];
}

/** stateAt returns the flags of a process at the cursor. */
function stateAt(lab: Lab, rank: number): number {
  const { run } = lab;
  for (let record = lab.cursor; run && record >= 1; record--) {
    if (run.process[record - 1] === rank && !run.has(record, flag.network)) return run.flags[record - 1] ?? 0;
  }
  return 0;
}

/** perform does an action, or says why it cannot be done. */
export function perform(lab: Lab, action: Action): void {
  if (action.why) lab.notice = action.why;
  else void lab.act(action.edit);
}
