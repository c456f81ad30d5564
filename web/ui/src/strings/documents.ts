/** The documents that texts cite, as in docs/references.md. */
export const documents: Readonly<Record<string, string>> = {
  "[D0]": "Coordination Algorithms. R. Sisto, Politecnico di Torino, lecture notes",
  "[D1]": "Coordination and Agreement. Slides",
  "[D2]": "Mutual Exclusion in a Distributed Environment (Review). Slides",
  "[D3]": "IT4883 Distributed Systems: Synchronization 3. Hanoi University of Science and Technology, 2020",
  "[D4]": "Unit 3: Synchronization, Coordination and Agreement. Lecture notes",
};

/** cited splits a text at its citations, which are parts of their own. */
export const cited = (text: string): string[] => text.split(/(\[D[0-4]\])/).filter((part) => part !== "");
