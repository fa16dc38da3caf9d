import { commandGroup } from './commands.ts'
import { attempts, list, undelivered } from './delivery-lists.ts'
import { pause, unpause } from './delivery-pause.ts'
import { cancel, retry, retryFailed, retryWaiting } from './delivery-retries.ts'

export const addCommand = commandGroup(
  'deliveries',
  'List, retry, resend and cancel webhook deliveries, and pause all of them.',
  [list, undelivered, retry, retryFailed, retryWaiting, cancel, attempts, pause, unpause],
)
