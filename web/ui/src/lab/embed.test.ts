import { expect, test } from "vitest";
import { decode } from "../url/codec";
import { embedCode } from "./embed";

test("the code of a frame has the run, and quotes what it must", async () => {
  const code = embedCode("https://host/lab/#1/run/mutex/lamport?t=4&h=0123456789ab", 'a "b" <c>');
  expect(code).toBe(
    '<iframe src="https://host/lab/#1/run/mutex/lamport?t=4&amp;h=0123456789ab&amp;embed=1" title="a &quot;b&quot; &lt;c> in the Conclave Lab" width="600" height="400"></iframe>',
  );
  const fragment = /#([^"]*)/.exec(code)?.[1]?.replaceAll("&amp;", "&") ?? "";
  expect((await decode(fragment)).place).toMatchObject({ page: "run", cursor: 4, view: { embed: true } });
  expect(embedCode("https://host/lab/#1/run/bully", "bully")).toContain("#1/run/bully?embed=1");
});
