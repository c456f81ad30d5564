/** The most bytes that a packed text may unpack to. */
export const unpackedLimit = 64 * 1024;

/** PackError says that a packed text is damaged. Partial is what could be read of it. */
export class PackError extends Error {
  constructor(
    message: string,
    readonly partial: string,
  ) {
    super(message);
  }
}

/** pack returns a text as UTF-8, deflate-raw, base64url: for the fragment of a URL. */
export async function pack(text: string): Promise<string> {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** unpack undoes pack. It throws a PackError for anything else, and above so many bytes. */
export async function unpack(packed: string, limit = unpackedLimit): Promise<string> {
  if (!/^[\w-]*$/.test(packed)) throw new PackError("a character that is not base64url", "");
  let bytes: Uint8Array<ArrayBuffer>;
  try {
    bytes = Uint8Array.from(atob(packed.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
  } catch {
    throw new PackError("incomplete base64url", "");
  }
  const { read, failure } = await inflate(bytes, limit);
  if (failure !== "") throw new PackError(failure, new TextDecoder().decode(read));
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(read);
  } catch {
    throw new PackError("not UTF-8", new TextDecoder().decode(read));
  }
}

/** inflate returns what it could unpack, and why not more. */
async function inflate(bytes: Uint8Array<ArrayBuffer>, limit: number): Promise<{ read: Uint8Array; failure: string }> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  let failure = "";
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      const room = limit - size;
      chunks.push(value.subarray(0, room));
      size += Math.min(value.length, room);
      if (value.length > room) {
        failure = `more than ${limit} bytes`;
        await reader.cancel();
        break;
      }
    }
  } catch {
    failure = "damaged or incomplete";
  }
  const read = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    read.set(chunk, at);
    at += chunk.length;
  }
  return { read, failure };
}
