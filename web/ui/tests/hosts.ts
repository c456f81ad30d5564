import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";
import { repository } from "./browser";

/** The program under test. make web-test builds it. */
export const conclave = process.env.CONCLAVE ?? join(repository, "bin/conclave");

/** Where a lab can be reached. Url makes the address of a fragment without "#". */
export interface Host {
  origin: string;
  url(fragment: string): string;
  stop(): Promise<void>;
}

/** native starts a lab on a free port. First is the address that it prints. */
export async function native(command: string[] = ["lab"]): Promise<Host & { process: ChildProcess; first: string }> {
  const child = spawn(conclave, command, { stdio: ["ignore", "pipe", "pipe"] });
  const printed = await new Promise<string>((resolve, reject) => {
    let text = "";
    const read = (data: Buffer) => {
      text += data.toString();
      const found = /https?:\/\/\S+/.exec(text);
      if (found) resolve(found[0]);
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    child.on("error", reject);
    child.on("exit", (code) => reject(new Error(`conclave lab ended with ${code}: ${text}`)));
  });
  const address = new URL(printed);
  const token = /engine=([^&]+)/.exec(address.hash)?.[1] ?? "";
  const page = address.origin + address.pathname;
  return {
    origin: address.origin,
    process: child,
    first: printed,
    url: (fragment) => `${page}#${fragment}${fragment.includes("?") ? "&" : "?"}engine=${token}`,
    stop: () => ended(child),
  };
}

function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    child.once("exit", () => resolve());
    child.kill("SIGINT");
  });
}

/** exported writes the static site, with the engine as WebAssembly, and serves it. */
export async function exported(): Promise<Host | undefined> {
  const dir = mkdtempSync(join(tmpdir(), "conclave-site-"));
  const child = spawn(conclave, ["lab", "--export", dir], { stdio: "inherit" });
  const code = await new Promise<number | null>((resolve) => child.once("exit", resolve));
  if (code !== 0) {
    rmSync(dir, { recursive: true, force: true });
    return undefined;
  }
  const host = await files(dir);
  return {
    ...host,
    stop: async () => {
      await host.stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** built serves the page as it was built, without any engine. */
export const built = (): Promise<Host> => files(join(repository, "web/dist"));

const kinds: Record<string, string> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
  ".json": "application/json",
};

/** files serves a folder as a static host does: no rules, no headers but the type. */
async function files(dir: string): Promise<Host> {
  const server: Server = createServer((request, response) => {
    const path = normalize(decodeURIComponent(new URL(request.url ?? "/", "http://x").pathname));
    const file = join(dir, path.endsWith("/") ? `${path}index.html` : path);
    if (!existsSync(file)) {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, { "Content-Type": kinds[extname(file)] ?? "application/octet-stream" });
    response.end(readFileSync(file));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const origin = `http://127.0.0.1:${typeof address === "object" && address ? address.port : 0}`;
  return {
    origin,
    url: (fragment) => `${origin}/lab/#${fragment}`,
    stop: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}
