/** Completion of commands in a shell. The scripts ask `muster complete`, so they stay correct after an
 *  upgrade. */
import { Argument, type Command } from 'commander'
import { examples, type Shell } from './shell.ts'

/** `muster complete` gets the words after `muster`, and the unfinished word last. */
const SCRIPTS = {
  bash: `_muster() {
  local IFS=$'\\n'
  COMPREPLY=($(muster complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _muster muster
`,
  zsh: `#compdef muster
_muster() {
  local -a candidates
  candidates=("\${(@f)$(muster complete -- "\${words[@]:1:$((CURRENT - 1))}" 2>/dev/null)}")
  compadd -a candidates
}
compdef _muster muster
`,
  fish: `complete -c muster -f -a '(muster complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
`,
}

export function addCommand(program: Command, shell: Shell): void {
  program
    .command('completion')
    .description('Print a script that completes commands and options in your shell.')
    .addArgument(new Argument('<shell>', 'the shell').choices(Object.keys(SCRIPTS)))
    .addHelpText(
      'after',
      `\nThe script runs muster from your PATH. In a copy of the repository, "npm link" puts it there.\n${examples(
        'muster completion bash >> ~/.bashrc',
        'muster completion zsh > ~/.zfunc/_muster',
        'muster completion fish > ~/.config/fish/completions/muster.fish',
      )}`,
    )
    .action(
      shell.action(async (name: keyof typeof SCRIPTS) => ({
        document: { shell: name, script: SCRIPTS[name] },
        text: SCRIPTS[name].trimEnd(),
      })),
    )
}

/** The words that can replace the last one: commands, options, or the choices of an argument. */
export function complete(program: Command, words: string[]): string[] {
  const start = words.at(-1) ?? ''
  let command = program
  for (const word of words.slice(0, -1))
    command = command.commands.find((known) => known.name() === word) ?? command
  const option = command.options.find(({ long }) => long === words.at(-2))
  const choices = command.registeredArguments.flatMap(({ argChoices = [] }) => argChoices)
  const names = command.commands.map((known) => known.name())
  const flags = command.options.flatMap(({ long, hidden }) => (long && !hidden ? [long] : []))
  const candidates = option?.argChoices ?? (start.startsWith('-') ? flags : [...names, ...choices])
  return candidates.filter((candidate) => candidate.startsWith(start))
}
