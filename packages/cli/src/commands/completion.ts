import type { Command } from "commander";

/**
 * Adds `completion`, which prints a script for a shell, and the hidden command that the script asks for suggestions. The library that answers
 * them is loaded only then.
 */
export async function addCompletion(program: Command, [name]: readonly string[]): Promise<void> {
  if (name === "completion" || name === "complete") {
    const { default: tab } = await import("@bomb.sh/tab/commander");
    tab(program, { completionCommandName: "completion" });
  } else {
    program.command("completion").description("Print a completion script for a shell: zsh, bash, fish or powershell.").argument("<shell>");
  }
}
