/** Takes and releases the lock on the file of the first argument as often as the second says. Ends
 *  with status 1 when it has waited for five seconds. */
import { acquireFileLock } from '../../records/database/lock.ts'

const WAIT_MS = 5_000
const [file = '', times] = process.argv.slice(2)

for (let taken = 0; taken < Number(times); taken++) {
  const lock = await acquireFileLock(file, WAIT_MS)
  await lock.release()
}
