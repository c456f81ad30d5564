import type { Class } from "./api";
import type { Member, Report, Sample } from "./forms";
import { leaderOf } from "./history";
import type { Row } from "./names";
import { words } from "../strings/dashboard";

/** Something that an operator should know first, in one sentence. */
export interface Problem {
  /** id stays the same while the problem does. */
  id: string;
  text: string;
  /** Where it is to be seen. */
  at?: { tab: "cluster" | Class; name?: string };
}

/** Usual is how long the last holds of a name lasted at most, in ms. */
export type Usual = ReadonlyMap<string, number>;

export interface Known {
  sample: Sample;
  rows: Record<Class, Iterable<Row>>;
  /** usual has, by fence, what is known of locks that others wait for. */
  usual: Usual;
  /** When each server refused something last because a queue was full, in ms. */
  full: ReadonlyMap<number, number>;
}

/** How many entries a server may be behind before that is a problem. */
const farBehind = 1000;
/** From which part of its limit on the size of the state is a problem. */
const nearLimit = 0.9;
/** How many problems of one sort are told one by one. */
const mostAlike = 3;

/** problems lists what is wrong, what concerns all first. */
export function problems(known: Known, now: number): Problem[] {
  const { sample } = known;
  return [
    ...ofTheCluster(sample),
    ...(sample.members ?? []).flatMap((member) => ofAMember(member, sample)),
    ...sample.servers.flatMap((server) => ofAServer(server, known, now)),
    ...few(ofHolds("locks", known, now), "locks"),
    ...few(ofHolds("elections", known, now), "elections"),
  ];
}

function ofTheCluster(sample: Sample): Problem[] {
  if (sample.leader !== 0) return [];
  const since = sample.leader_since ? Date.parse(sample.leader_since) : Date.parse(sample.time);
  const voters = (sample.members ?? []).filter((m) => m.voter).map((m) => m.id);
  const answering = sample.servers.filter((s) => voters.includes(s.id) && s.status && !s.problem).length;
  const at = { tab: "cluster" } as const;
  const all = [{ id: "leader", text: words.noLeader(since), at }];
  if (voters.length > 0 && answering <= voters.length / 2) {
    all.push({ id: "quorum", text: words.noQuorum(sample.server, answering, voters.length), at });
  }
  return all;
}

function ofAMember(member: Member, sample: Sample): Problem[] {
  const at = { tab: "cluster" } as const;
  const report = sample.servers.find((s) => s.id === member.id);
  const behind = Number(member.behind);
  const cutOff = sample.leader !== 0 && !member.connected && !member.leader;
  const silent = report?.problem !== undefined;
  if (cutOff || silent) {
    const since = report?.at === undefined ? undefined : Date.parse(report.at);
    return [{ id: `gone-${member.id}`, text: words.gone(member.id, silent, since, behind), at }];
  }
  return behind >= farBehind ? [{ id: `behind-${member.id}`, text: words.behind(member.id, behind), at }] : [];
}

function ofAServer(report: Report, known: Known, now: number): Problem[] {
  const { status } = report;
  const at = { tab: "cluster" } as const;
  const found: Problem[] = [];
  if (!status || report.problem) return found;
  if (status.figures?.stalled) found.push({ id: `stalled-${report.id}`, text: words.stalled(report.id, status.figures.stalled), at });
  const full = known.full.get(report.id);
  if (full !== undefined && now - full < 60_000) found.push({ id: `full-${report.id}`, text: words.full(report.id, now - full), at });
  const limit = status.state_limit_bytes;
  if (limit > 0 && status.state_bytes > nearLimit * limit && report === leaderOf(known.sample)) {
    found.push({ id: "limit", text: words.nearLimit(status.state_bytes, limit), at });
  }
  return found;
}

/** How much longer than usual a hold lasts before that is a problem. */
const longer = 3;

function* ofHolds(tab: Class, known: Known, now: number): Generator<Problem> {
  for (const { resource, since, asked } of known.rows[tab]) {
    const waited = tab === "locks" && resource.queue_length > 0;
    if (!asked && !waited) continue;
    const { name } = resource;
    const at = { tab, name };
    if (asked) {
      yield { id: `revoked-${tab}-${name}`, text: words.revoked(asked, name), at };
    } else {
      const usual = known.usual.get(resource.holders[0]?.fence ?? "");
      const held = now - since;
      if (usual !== undefined && held > longer * usual) {
        yield { id: `long-${name}`, text: words.long(name, held, usual, resource.queue_length), at };
      }
    }
  }
}

/** few tells some problems one by one, and counts the rest. */
function few(found: Iterable<Problem>, tab: Class): Problem[] {
  const all = [...found];
  if (all.length <= mostAlike) return all;
  const rest = all.length - mostAlike;
  return [...all.slice(0, mostAlike), { id: `more-${tab}`, text: words.moreProblems(rest, tab), at: { tab } }];
}
