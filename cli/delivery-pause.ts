/** The commands that pause the deliveries of the whole installation, and end the pause. */
import { pauseDeliveries, unpauseDeliveries } from '../records/delivery-pause.ts'
import { databaseCommand } from './commands.ts'
import { formatTime } from './shell.ts'

export const pause = databaseCommand({
  name: 'pause',
  summary: 'pause all deliveries',
  description:
    'Pause the deliveries of all accounts, also on running nodes: no attempt is made, and retries, test ' +
    'events and bulk jobs are refused. Attempts in flight end. No delivery is lost. ' +
    'The pause survives restarts, and ends with "muster deliveries unpause".',
  examples: ['muster deliveries pause'],
  notes:
    'A start with DELIVERIES=paused pauses deliveries before any attempt is made, for example on a restored database.',

  async run({ db, now }) {
    const pausedAt = formatTime(await pauseDeliveries(db, now()))
    return {
      document: { paused_at: pausedAt },
      text: `All deliveries have been paused since ${pausedAt}.\nTo continue:  muster deliveries unpause`,
    }
  },
})

export const unpause = databaseCommand({
  name: 'unpause',
  summary: 'end the pause of all deliveries',
  description:
    'End the pause of all deliveries. Attempts that became due during the pause are made at once, within the ' +
    'concurrency limits. The others stay on their schedule.',
  examples: ['muster deliveries unpause'],
  notes: 'Remove DELIVERIES=paused from the settings too: a start with it pauses deliveries again.',

  async run({ db, now }) {
    const pausedAt = await unpauseDeliveries(db, now())
    const wasPaused = pausedAt !== undefined
    return {
      document: { was_paused: wasPaused, paused_at: formatTime(pausedAt ?? null) },
      text: wasPaused
        ? `Deliveries continue. They had been paused since ${formatTime(pausedAt)}.\n` +
          'Remove DELIVERIES=paused from the settings: a start with it pauses them again.'
        : 'Deliveries were not paused.',
    }
  },
})
