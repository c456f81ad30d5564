/**
 * commandFor is the command of a shell that runs a scenario again: a file of the
 * repository by its name, another text by a file that the command writes first.
 */
export function commandFor(id: string | undefined, text: string): string {
  if (id !== undefined) return `conclave sim lab/scenarios/${id}.yaml`;
  let end = "END";
  while (text.split("\n").includes(end)) end += "_";
  return `cat > scenario.yaml <<'${end}'\n${text.replace(/\n$/, "")}\n${end}\nconclave sim scenario.yaml`;
}
