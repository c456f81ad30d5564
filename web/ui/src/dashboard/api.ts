import type { EndedSession, Explanation, Locks, Resource, Session, Sessions, Verdict, View, WhoAmI } from "./forms";
import type { Order } from "./names";

/** The two classes of names, as paths and parameters call them. */
export type Class = "locks" | "elections";

/** kindOf is what one name of a class is called. */
const kindOf = (of: Class): "lock" | "election" => (of === "locks" ? "lock" : "election");

/** The verbs of rules that the page has an action for. */
export type Verb = "revoke" | "end-session" | "members";

/** Refused is an answer that is no success. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

/** url returns the address of a call, beside the page: a proxy may have added a prefix. */
export function url(path: string, parameters: Record<string, string | number | undefined> = {}): string {
  const at = new URL(path, document.baseURI);
  at.hash = "";
  for (const [key, value] of Object.entries(parameters)) {
    if (value !== undefined) at.searchParams.set(key, String(value));
  }
  return at.href;
}

/** refusal makes an error of an answer that is no success. */
export async function refusal(response: Response): Promise<Refused> {
  const text = await response.text();
  try {
    const { code, message } = JSON.parse(text) as { code?: string; message?: string };
    return new Refused(response.status, code ?? "", message ?? text);
  } catch {
    return new Refused(response.status, "", text.slice(0, 200) || response.statusText);
  }
}

/** The token that each call shows, or "". It is kept here, and nowhere that outlives the page. */
let token = "";

/** show sets the token that each call shows from now on; "" for none. */
export function show(next: string): void {
  token = next;
}

/** headersOf returns the headers of a call that accepts a type of answer. */
export const headersOf = (accept: string, proof = token): Record<string, string> => ({ Accept: accept, ...(proof && { Authorization: `Bearer ${proof}` }) });

/** unproven tells whether an error says that the server does not know who asks. */
export const unproven = (error: unknown): error is Refused => error instanceof Refused && (error.status === 401 || error.code === "UNAUTHENTICATED");

/** forbidden tells whether an error says that the server knows who asks, and does not allow it. */
export const forbidden = (error: unknown): error is Refused => error instanceof Refused && (error.status === 403 || error.code === "DENIED");

/** call makes one call and returns its answer. It fails with Refused, or as fetch does. */
async function call<T>(at: string, signal: AbortSignal, proof?: string): Promise<T> {
  const response = await fetch(at, { signal, headers: headersOf("application/json", proof) });
  if (!response.ok) throw await refusal(response);
  return (await response.json()) as T;
}

/** post makes one call that changes something. It fails as call does. */
async function post<T>(path: string, body: object): Promise<T> {
  const response = await fetch(url(path), { method: "POST", body: JSON.stringify(body), headers: { ...headersOf("application/json"), "Content-Type": "application/json" } });
  if (!response.ok) throw await refusal(response);
  return (await response.json()) as T;
}

/** whoAmI asks whom the server takes this page for, with the token that it shows or another one. */
export const whoAmI = (signal: AbortSignal, proof?: string): Promise<WhoAmI> => call(url("v1/access/whoami"), signal, proof);

/** right asks whether this page may do something, to a name or to the cluster. */
export const right = (verb: Verb, of: Class | undefined, name: string | undefined, signal: AbortSignal): Promise<Verdict> =>
  call(url("v1/access/check", { verb, ...(of && { [kindOf(of)]: name }) }), signal);

/** handOver makes a voter the leader, and returns once it leads. */
export const handOver = (to: number): Promise<unknown> => post("v1/leader", { to });

/** endSession has a session end, and returns how many holds it has to release first. */
export const endSession = async (id: string, reason: string): Promise<number> => (await post<EndedSession>(`v1/sessions/${id}/end`, { reason })).holds;

/** askToLeave asks the holder with a fence to leave, in a session that is made for it. */
export async function askToLeave(of: Class, name: string, fence: string, reason: string): Promise<void> {
  const { session } = await post<{ session: string }>("v1/open", { ttl: "5s", program: "dashboard" });
  try {
    await post("v1/revoke", { session, [kindOf(of)]: name, fence, reason });
  } finally {
    await post("v1/close", { session }).catch(() => undefined); // it would end by itself
  }
}

export const why = (of: Class, name: string, signal: AbortSignal): Promise<Explanation> =>
  call<Explanation>(url(`v1/${of}/${encodeURIComponent(name)}/why`, { waiters: 100 }), signal);

export const sessions = (after: string, limit: number, signal: AbortSignal): Promise<Sessions> =>
  call(url("v1/sessions", { limit, after: after || undefined }), signal);

export const view = (signal: AbortSignal): Promise<View> => call(url("v1/view", { homes: "true" }), signal);

/** heldUnder lists the first held locks whose names start with a prefix, by name. */
export const heldUnder = (prefix: string, limit: number, signal: AbortSignal): Promise<Locks> =>
  call(url("v1/locks", { prefix, limit, waiters: 1 }), signal);

/** ranked lists the first names of a class in an order. */
export const ranked = async (of: Class, prefix: string, order: Order, signal: AbortSignal): Promise<Resource[]> =>
  (await call<Record<Class, Resource[]>>(url(`v1/${of}`, { prefix, order, limit: 50, waiters: 1 }), signal))[of];

/** session returns one session, or undefined if there is none: the list begins behind its predecessor. */
export async function session(id: string, signal: AbortSignal): Promise<Session | undefined> {
  const before = (BigInt(`0x${id.slice(2)}`) - 1n).toString(16).padStart(32, "0");
  const page = await sessions(`s-${before}`, 1, signal);
  return page.sessions.find((s) => s.session_id === id);
}
