import type { Challenge, Course } from "../engine/protocol";
import type { Connection } from "../lab/connection.svelte";
import { encode, plainView } from "../url/codec";

let loaded: Promise<Course> | undefined;

/** course asks the engine for the lessons and challenges, once. */
export function course(connection: Connection): Promise<Course> | undefined {
  const { engine } = connection;
  if (connection.status !== "ready" || !engine) return loaded;
  loaded ??= engine.call<Course>({ call: "course" }).catch((error: unknown) => {
    loaded = undefined;
    throw error;
  });
  return loaded;
}

/** The address at which a challenge begins. */
export const addressOf = (challenge: Challenge): Promise<string> =>
  encode({ page: "run", source: { text: challenge.run }, cursor: 0, view: plainView, others: [["challenge", challenge.id]] });

const key = "conclave.learn";

function stored(): Record<string, number> {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(key) ?? "{}");
    if (typeof value !== "object" || value === null) return {};
    return Object.fromEntries(Object.entries(value).filter((entry): entry is [string, number] => typeof entry[1] === "number"));
  } catch {
    return {};
  }
}

/** How far this browser has come: steps of lessons, and 1 for a challenge that is solved. */
class Progress {
  #done: Record<string, number> = $state.raw(stored());

  of(kind: "lesson" | "challenge", id: string): number {
    return this.#done[`${kind}/${id}`] ?? 0;
  }

  reach(kind: "lesson" | "challenge", id: string, steps: number): void {
    if (this.of(kind, id) >= steps) return;
    this.#done = { ...this.#done, [`${kind}/${id}`]: steps };
    try {
      localStorage.setItem(key, JSON.stringify(this.#done));
    } catch {
      // Without storage the progress lasts until the page is loaded again.
    }
  }
}

export const progress = new Progress();
