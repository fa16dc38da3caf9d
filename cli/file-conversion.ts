/** Converts the file of an embedded database of an earlier version, so that the file can shrink
 *  when rows are deleted. */
import {
  type ConversionSpace,
  convertFile,
  findConversionSpace,
  isSpaceReturned,
} from '../records/database/free-space.ts'
import type { Db } from '../records/database/open.ts'
import { tryServeLock } from './serve-lock.ts'
import { formatBytes } from './shell.ts'

const PROGRESS_MS = 5_000
const NOT_CONVERTED = 'The file does not return the space of deleted rows yet.'

/** Returns a message for the operator, or undefined if the file needs no conversion. `print` gets
 *  the progress. A running service and too little space are no errors: the service works without
 *  the conversion. */
export async function convertIfNeeded(
  db: Db,
  dataDir: string,
  print: (line: string) => void,
): Promise<string | undefined> {
  if (await isSpaceReturned(db)) return undefined
  const lock = await tryServeLock(dataDir)
  if (lock === undefined)
    return `${NOT_CONVERTED} To convert it, stop muster serve and run muster migrate again.`
  try {
    const space = await findConversionSpace(db, dataDir)
    if (space.freeBytes < space.neededBytes) return formatTooFull(space, dataDir)
    await convertWithProgress(db, dataDir, space, print)
    const { fileBytes } = await findConversionSpace(db, dataDir)
    return `The file was converted and has ${formatBytes(fileBytes)} now. It returns the space of deleted rows.`
  } finally {
    await lock.release()
  }
}

function formatTooFull({ neededBytes, freeBytes }: ConversionSpace, dataDir: string): string {
  return (
    `${NOT_CONVERTED} Its conversion needs ` +
    `${formatBytes(neededBytes)} of free space in DATA_DIR ${dataDir}, which has ${formatBytes(freeBytes)}. ` +
    'Make room and run muster migrate again.'
  )
}

async function convertWithProgress(
  db: Db,
  dataDir: string,
  { fileBytes }: ConversionSpace,
  print: (line: string) => void,
): Promise<void> {
  print(`Converting the file of ${formatBytes(fileBytes)}, so that it returns free space.`)
  const startedAtMs = performance.now()
  const timer = setInterval(() => {
    const seconds = Math.round((performance.now() - startedAtMs) / 1_000)
    print(`Still converting after ${seconds} s.`)
  }, PROGRESS_MS)
  await convertFile(db, dataDir).finally(() => clearInterval(timer))
}
