import type { Command } from 'commander'
import { addAttempts, addList, addUndelivered } from './delivery-lists.ts'
import { addPause, addUnpause } from './delivery-pause.ts'
import { addCancel, addRetry, addRetryFailed } from './delivery-retries.ts'
import type { Shell } from './shell.ts'

export function addCommand(program: Command, shell: Shell): void {
  const deliveries = program
    .command('deliveries')
    .description('List, retry, resend and cancel webhook deliveries, and pause all of them.')
  addList(deliveries, shell)
  addUndelivered(deliveries, shell)
  addRetry(deliveries, shell)
  addRetryFailed(deliveries, shell)
  addCancel(deliveries, shell)
  addAttempts(deliveries, shell)
  addPause(deliveries, shell)
  addUnpause(deliveries, shell)
}
