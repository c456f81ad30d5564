import type { Order } from "./names";

/** What the server answers, as docs/http.md describes it. Numbers of 64 bits are strings. */

export interface Holder {
  session_id: string;
  owner?: string;
  hold: string;
  fence: string;
  since: string;
  host: string;
  pid: number;
  program: string;
  value?: string;
  value_base64?: string;
  shared?: boolean;
  priority?: number;
  revoked?: boolean;
  reason?: string;
}

export type Waiter = Omit<Holder, "hold" | "fence" | "revoked" | "reason">;

/** A lock or an election that somebody holds. */
export interface Resource {
  name: string;
  limit: number;
  holders: Holder[];
  waiters: Waiter[];
  queue_length: number;
}

/** A hold that has ended. */
export interface Ended {
  fence: string;
  since: string;
  until: string;
  host: string;
  pid: number;
  program: string;
  how: "released" | "closed" | "expired" | "dropped";
  reason?: string;
  owner?: string;
  by?: string;
}

export interface Why {
  held?: Resource;
  past: Ended[];
  guard?: { prefix: string; algorithm: string };
  homes?: { server: number; held: boolean; queue_length: number; problem?: string }[];
}

export interface Session {
  session_id: string;
  owner?: string;
  leaving?: boolean;
  ttl: string;
  remaining?: string;
  opened: string;
  host: string;
  pid: number;
  program: string;
  holds: number;
  waits: number;
}

export interface Member {
  id: number;
  peer_address: string;
  client_address: string;
  voter: boolean;
  leader: boolean;
  connected: boolean;
  match_index: string;
  learner: boolean;
  behind: string;
  stage: "settled" | "reserved" | "joining" | "leaving";
}

export interface Figures {
  requests: number;
  replies: number;
  exhausted: number;
  fsyncs: number;
  snapshots: number;
  leader_changes: number;
  pending: number;
  streams: number;
  watches: number;
  disk_bytes: number;
  log_bytes: number;
  stalled?: string;
  latencies: [number, number][];
}

export interface Status {
  cluster: string;
  server: number;
  leader: number;
  term: string;
  commit_index: string;
  applied_index: string;
  sessions: number;
  locks: number;
  elections: number;
  waiters: number;
  fence: string;
  version: string;
  uptime: string;
  leader_since?: string;
  state_bytes: number;
  state_limit_bytes: number;
  figures?: Figures;
  /** The level of the formats. */
  level?: number;
  /** What the server does about locks that algorithms guard, if it has part in that. */
  home?: Home;
}

export interface Home {
  epoch: number;
  state: "OUT" | "RESUMING" | "OPEN";
  remaining: string;
  missing?: number[];
  sessions: number;
  names: number;
  lanes: { server: number; up: boolean; unacknowledged: number }[];
}

/** What a server has that guards locks by algorithms, or wants to. */
export interface Seat {
  id: string;
  server: number;
  client_address: string;
  remaining?: string;
  /** What the server says of itself, or why it says nothing. */
  home?: { watch?: Watching; starts: ViewStart[] };
  problem?: string;
}

/** What a server says of its failure detector and its election. */
export interface Watching {
  stack: string;
  doubted?: number[];
  elected?: number;
  suspicions: number;
  failures: number;
  trusts: number;
  elections: number;
  messages: number;
}

/** The beginning of an epoch, as a server saw it. */
export interface ViewStart {
  epoch: number;
  at: string;
  why: string;
}

/** What guards the locks whose names start with a prefix, and what is to. */
export interface Guard {
  prefix: string;
  algorithm: string;
  options?: string;
  change?: { algorithm: string; options?: string; remove?: boolean; quiet?: number[]; wait?: string; reason?: string; by?: string };
}

export interface View {
  epoch: number;
  coordinator: number;
  members: Seat[];
  others: Seat[];
  guards: Guard[];
  /** A failure detector and an election, such as swim+bully. */
  watch?: string;
  watch_options?: string;
}

/** What one server said of itself. */
export interface Report {
  id: number;
  at?: string;
  problem?: string;
  status?: Status;
}

/** The state of all servers at a moment, as one of them tells it. */
export interface Sample extends Status {
  time: string;
  members: Member[];
  servers: Report[];
}

export interface Changes {
  resources: Resource[];
  gone: string[];
  reset?: boolean;
  more?: boolean;
}

/** Something of the stream that cannot be told now. */
export interface Lack {
  part: "status" | Class;
  code: string;
  message: string;
}

/** The two classes of names, as paths and parameters call them. */
export type Class = "locks" | "elections";

/** kindOf is what one name of a class is called. */
const kindOf = (of: Class): "lock" | "election" => (of === "locks" ? "lock" : "election");

/** Whom the servers take the caller for. The principal is empty if nothing proves it. */
export interface WhoAmI {
  principal: string;
  via: string;
  remote: string;
  roles: string[];
}

/** The verbs of rules that the page has an action for. */
export type Verb = "revoke" | "end-session" | "members";

/** Whether the rules allow something, and the line that says why. */
export interface Right {
  allowed: boolean;
  why: string;
}

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
export const right = (verb: Verb, of: Class | undefined, name: string | undefined, signal: AbortSignal): Promise<Right> =>
  call(url("v1/access/check", { verb, ...(of && { [kindOf(of)]: name }) }), signal);

/** handOver makes a voter the leader, and returns once it leads. */
export const handOver = (to: number): Promise<unknown> => post("v1/leader", { to });

/** endSession has a session end, and returns how many holds it has to release first. */
export const endSession = async (id: string, reason: string): Promise<number> => (await post<{ holds: number }>(`v1/sessions/${id}/end`, { reason })).holds;

/** askToLeave asks the holder with a fence to leave, in a session that is made for it. */
export async function askToLeave(of: Class, name: string, fence: string, reason: string): Promise<void> {
  const { session } = await post<{ session: string }>("v1/open", { ttl: "5s", program: "dashboard" });
  try {
    await post("v1/revoke", { session, [kindOf(of)]: name, fence, reason });
  } finally {
    await post("v1/close", { session }).catch(() => undefined); // it would end by itself
  }
}

export const why = (of: Class, name: string, signal: AbortSignal): Promise<Why> =>
  call<Why>(url(`v1/${of}/${encodeURIComponent(name)}/why`, { waiters: 100 }), signal);

export const sessions = (after: string, limit: number, signal: AbortSignal): Promise<{ sessions: Session[]; more: boolean }> =>
  call(url("v1/sessions", { limit, after: after || undefined }), signal);

export const view = (signal: AbortSignal): Promise<View> => call(url("v1/view", { homes: "true" }), signal);

/** heldUnder lists the first held locks whose names start with a prefix, by name. */
export const heldUnder = (prefix: string, limit: number, signal: AbortSignal): Promise<{ locks: Resource[]; more: boolean; silent?: number[] }> =>
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
