/** The commands that pause the deliveries of the whole installation, and end the pause. */
import type { Command } from 'commander'
import { pauseDeliveries, unpauseDeliveries } from '../records/delivery-pause.ts'
import { examples, formatTime, type Shell } from './shell.ts'

export function addPause(deliveries: Command, shell: Shell): void {
  deliveries
    .command('pause')
    .summary('pause all deliveries')
    .description(
      'Pause the deliveries of all accounts, also on running nodes: no attempt is made, and retries, test ' +
        'events and bulk jobs are refused. Attempts in flight end. No delivery is lost. ' +
        'The pause survives restarts, and ends with "muster deliveries unpause".',
    )
    .addHelpText(
      'after',
      `${examples('muster deliveries pause')}
A start with DELIVERIES=paused pauses deliveries before any attempt is made, for example on a restored database.
`,
    )
    .action(
      shell.databaseAction(async ({ db, now }) => {
        const pausedAt = formatTime(await pauseDeliveries(db, now()))
        return {
          document: { paused_at: pausedAt },
          text: `All deliveries have been paused since ${pausedAt}.\nTo continue:  muster deliveries unpause`,
        }
      }),
    )
}

export function addUnpause(deliveries: Command, shell: Shell): void {
  deliveries
    .command('unpause')
    .summary('end the pause of all deliveries')
    .description(
      'End the pause of all deliveries. Attempts that became due during the pause are made at once, within the ' +
        'concurrency limits. The others stay on their schedule.',
    )
    .addHelpText(
      'after',
      `${examples('muster deliveries unpause')}
Remove DELIVERIES=paused from the settings too: a start with it pauses deliveries again.
`,
    )
    .action(
      shell.databaseAction(async ({ db, now }) => {
        const pausedAt = await unpauseDeliveries(db, now())
        const wasPaused = pausedAt !== undefined
        return {
          document: { was_paused: wasPaused, paused_at: formatTime(pausedAt ?? null) },
          text: wasPaused
            ? `Deliveries continue. They had been paused since ${formatTime(pausedAt)}.\n` +
              'Remove DELIVERIES=paused from the settings: a start with it pauses them again.'
            : 'Deliveries were not paused.',
        }
      }),
    )
}
