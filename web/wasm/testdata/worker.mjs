// Runs the engine under Node as a browser runs it in a worker: requests come as lines of
// JSON, frames go as conclave lab sends them.
//
//	node worker.mjs WASM_EXEC ENGINE
import { readFileSync, writeSync } from "node:fs";
import { createInterface } from "node:readline";

const [, , exec, engine] = process.argv;
await import(exec);

function write(bytes) {
  for (let at = 0; at < bytes.length; ) at += writeSync(1, bytes, at);
}

globalThis.postMessage = ({ ready, header, body }) => {
  if (ready) {
    const lines = createInterface({ input: process.stdin });
    lines.on("line", (line) => globalThis.onmessage({ data: JSON.parse(line) }));
    lines.on("close", () => process.exit(0));
    return;
  }
  const head = Buffer.from(JSON.stringify(header));
  const lengths = Buffer.alloc(8);
  lengths.writeUInt32LE(head.length, 0);
  lengths.writeUInt32LE(body ? body.byteLength : 0, 4);
  write(Buffer.concat([lengths, head, body ? Buffer.from(body) : Buffer.alloc(0)]));
};

const go = new Go();
const { instance } = await WebAssembly.instantiate(readFileSync(engine), go.importObject);
go.run(instance);
