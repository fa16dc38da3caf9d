/** Takes and releases the lock on a file. Arguments: the file, and the number of times. Fails if it
 *  waits for more than five seconds. */
import { acquireFileLock } from '../../records/database/lock.ts'

const WAIT_MS = 5_000
const [file = '', times] = process.argv.slice(2)

for (let taken = 0; taken < Number(times); taken++) {
  const lock = await acquireFileLock(file, WAIT_MS)
  await lock.release()
}
