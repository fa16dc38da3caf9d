import type { Command } from 'commander'
import { examples, type Output, type Shell, UsageError } from './shell.ts'

export function addDoctor(program: Command, shell: Shell): void {
  program
    .command('doctor')
    .description('Confirm the time after the clock was in doubt.')
    .option('--confirm-clock', 'the time is right: delete outdated rows again')
    .addHelpText('after', examples('muster doctor --confirm-clock'))
    .action(
      shell.action(({ confirmClock }: { confirmClock?: boolean }) => {
        if (!confirmClock) throw new UsageError('Use --confirm-clock.')
        return shell.withDatabase(async ({ db, now }): Promise<Output> => {
          const records = await import('../records/clock-spans.ts')
          const time = now()
          await records.confirmClock(db, time)
          return {
            document: { time: time.toISOString(), in_doubt: false },
            text:
              `The time ${time.toISOString()} is confirmed. ` +
              'Running nodes delete outdated rows again within a minute.',
          }
        })
      }),
    )
}
