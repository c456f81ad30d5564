import { execFile, spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Resource, Sample, Session } from "../src/dashboard/forms";
import { conclave } from "./hosts";

const run = promisify(execFile);

/** Cluster is three servers, each a process, with data on disk. */
export class Cluster {
  #running = new Map<number, ChildProcess>();
  #dir = mkdtempSync(join(tmpdir(), "conclave-cluster-"));
  #ports: number[] = [];
  /** The token that calls show, once the cluster has rules. */
  token = "";

  static readonly size = 3;
  #tls: string[] = [];

  static async start(): Promise<Cluster> {
    const cluster = await Cluster.#founded(Cluster.size);
    await cluster.leader();
    return cluster;
  }

  /** secure starts one server with TLS and rules. Who has the certificate of alice may do everything, and others need a proof too. */
  static async secure(): Promise<Cluster> {
    const cluster = await Cluster.#founded(1, async (cluster) => {
      const dir = cluster.#certificates;
      await run(conclave, ["cert", "authority", dir]);
      await run(conclave, ["cert", "server", dir, "--id", "1", "--host", "127.0.0.1"]);
      await run(conclave, ["cert", "client", dir, "--name", "alice"]);
      const file = (name: string) => join(dir, name);
      return ["--tls-cert", file("server-1.pem"), "--tls-key", file("server-1.key"), "--tls-ca", file("ca.pem"), "--client-cert", "optional"];
    });
    await eventually("rules", () => cluster.administer("access", "init", "--admin", "cert:alice").then(() => true));
    return cluster;
  }

  static async #founded(size: number, tls: (cluster: Cluster) => Promise<string[]> = async () => []): Promise<Cluster> {
    const cluster = new Cluster();
    cluster.#ports = await freePorts(2 * size);
    cluster.#tls = await tls(cluster);
    for (let id = 1; id <= size; id++) cluster.run(id);
    return cluster;
  }

  get #certificates(): string {
    return join(this.#dir, "certs");
  }

  /** certificate is what a browser needs to be name. */
  certificate(name: string): { origin: string; certPath: string; keyPath: string } {
    return { origin: this.origin(1), certPath: join(this.#certificates, `${name}.pem`), keyPath: join(this.#certificates, `${name}.key`) };
  }

  /** The admin socket of the first server, which lets its caller do everything. */
  get #socket(): string {
    return `unix:${join(this.#dir, "1", "admin.sock")}`;
  }

  address(id: number): string {
    return `127.0.0.1:${this.#ports[id - 1]}`;
  }

  origin(id: number): string {
    return `${this.#tls.length > 0 ? "https" : "http"}://${this.address(id)}`;
  }

  /** run starts a server that is not running. */
  run(id: number): void {
    const size = this.#ports.length / 2;
    const peers = Array.from({ length: size }, (_, i) => `${i + 1}=127.0.0.1:${this.#ports[size + i]}`);
    const options = ["--id", String(id), "--peers", peers.join(","), "--listen", this.address(id), "--data", join(this.#dir, String(id)), ...this.#tls];
    this.#running.set(id, spawn(conclave, ["serve", ...options], { stdio: "ignore" }));
  }

  /** kill ends a server at once, as a power failure would. */
  async kill(id: number): Promise<void> {
    const child = this.#running.get(id);
    this.#running.delete(id);
    await ended(child, "SIGKILL");
  }

  /** signal sends a signal such as SIGSTOP. */
  signal(id: number, what: NodeJS.Signals): void {
    this.#running.get(id)?.kill(what);
  }

  /** restore runs every server again that a flow ended or stopped. */
  async restore(): Promise<void> {
    for (let id = 1; id <= Cluster.size; id++) {
      if (this.#running.has(id)) this.signal(id, "SIGCONT");
      else this.run(id);
    }
    await this.leader();
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#running.values()].map((child) => ended(child, "SIGKILL")));
    rmSync(this.#dir, { recursive: true, force: true });
  }

  /** leader waits until all that run agree on a leader that runs, and returns it. */
  async leader(): Promise<number> {
    return eventually("a leader", async () => {
      const said = await Promise.all([...this.#running.keys()].map(async (id) => (await this.status(id)).leader));
      const leader = said[0] ?? 0;
      return leader !== 0 && this.#running.has(leader) && said.every((other) => other === leader) ? leader : undefined;
    });
  }

  /** followers are the servers that run and do not lead. */
  async followers(): Promise<number[]> {
    const leader = await this.leader();
    return [...this.#running.keys()].filter((id) => id !== leader).sort();
  }

  async status(id: number): Promise<Sample> {
    const response = await fetch(`${this.origin(id)}/v1/status`, { headers: this.#headers() });
    return (await response.json()) as Sample;
  }

  /** command starts a command line against the cluster, and returns it. */
  command(...args: string[]): ChildProcess {
    const servers = this.#tls.length > 0 ? this.#socket : [...this.#running.keys()].map((id) => this.address(id)).join(",");
    const [name = "", ...rest] = args;
    return spawn(conclave, [name, "--servers", servers, ...rest], { stdio: "ignore" });
  }

  /** locks lists the held locks under a prefix. */
  async locks(prefix: string): Promise<Resource[]> {
    return (await this.#get<{ locks: Resource[] }>(`locks?prefix=${encodeURIComponent(prefix)}`)).locks;
  }

  async sessions(): Promise<Session[]> {
    return (await this.#get<{ sessions: Session[] }>("sessions?limit=1000")).sessions;
  }

  /** level is that of the formats, which rises by itself in a cluster that is new. */
  async level(): Promise<number> {
    return Number((await this.#get<{ level: number }>("upgrade")).level);
  }

  /** administer runs a command line through the admin socket of the first server, and returns what it prints. */
  async administer(...args: string[]): Promise<string> {
    const { stdout } = await run(conclave, [...args, "--servers", this.#socket]);
    return stdout.trim();
  }

  #headers(): Record<string, string> {
    return this.token ? { Authorization: `Bearer ${this.token}` } : {};
  }

  async #get<T>(path: string): Promise<T> {
    const [id] = this.#running.keys();
    return (await (await fetch(`${this.origin(id ?? 1)}/v1/${path}`, { headers: this.#headers() })).json()) as T;
  }

  /** post makes a call at a server that runs, and fails if it is refused. */
  async post(path: string, body: object): Promise<Record<string, string>> {
    const [id] = this.#running.keys();
    const response = await fetch(`${this.origin(id ?? 1)}/v1/${path}`, { method: "POST", body: JSON.stringify(body), headers: this.#headers() });
    const answer = (await response.json()) as Record<string, string>;
    if (!response.ok) throw new Error(`${path} ${JSON.stringify(body)}: ${response.status} ${answer.message}`);
    return answer;
  }

  /** open opens a session and returns its secret. */
  async open(program: string, host: string, pid = 4711, ttl = "10m"): Promise<string> {
    return (await this.post("open", { program, host, pid, ttl })).session ?? "";
  }

  /** acquire takes a lock, and returns the hold. */
  async acquire(session: string, name: string, more: object = {}): Promise<string> {
    return (await this.post("acquire", { session, name, ...more })).hold ?? "";
  }

  /** queue asks for a lock that others hold. Nobody waits for the answer. */
  queue(session: string, name: string): void {
    void this.post("acquire", { session, name }).catch(() => undefined);
  }
}

export function ended(child: ChildProcess | undefined, by: NodeJS.Signals): Promise<void> {
  if (!child || child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    child.once("exit", () => resolve());
    child.kill(by);
  });
}

/** eventually asks until there is an answer, and fails after 20 s. */
export async function eventually<T>(what: string, ask: () => Promise<T | undefined>): Promise<T> {
  const end = Date.now() + 20_000;
  let last: unknown;
  while (Date.now() < end) {
    try {
      const answer = await ask();
      if (answer !== undefined) return answer;
    } catch (error) {
      last = error;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`there is never ${what}: ${String(last)}`);
}

/** freePorts returns ports at which nobody listens now. */
async function freePorts(n: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: n }, () => {
      const server = createServer();
      return new Promise<typeof server>((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
    }),
  );
  return Promise.all(
    servers.map((server) => {
      const address = server.address();
      const port = typeof address === "object" && address ? address.port : 0;
      return new Promise<number>((resolve) => server.close(() => resolve(port)));
    }),
  );
}
