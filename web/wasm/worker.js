// Loads the engine of the lab and lets it answer the messages of this worker; see
// docs/lab/protocol.md.
import "./wasm_exec.js";

const go = new Go();

// counted tells how much of a response has come, and passes it on.
function counted(response) {
  const packed = response.headers.has("Content-Encoding");
  const total = Number(response.headers.get("X-Unpacked-Length") ?? (packed ? 0 : response.headers.get("Content-Length")));
  let loaded = 0;
  const count = new TransformStream({
    transform(piece, to) {
      loaded += piece.byteLength;
      postMessage({ loaded, total });
      to.enqueue(piece);
    },
  });
  return new Response(response.body.pipeThrough(count), { headers: { "Content-Type": "application/wasm" } });
}

async function start() {
  const response = await fetch(new URL("engine.wasm", import.meta.url));
  if (!response.ok) throw new Error(`engine.wasm: ${response.status}`);
  const { instance } = await WebAssembly.instantiateStreaming(counted(response), go.importObject);
  await go.run(instance);
  throw new Error("the engine stopped");
}

start().catch((error) => {
  postMessage({ failed: String(error.message ?? error) });
  close();
});
