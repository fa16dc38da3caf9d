/** Clocks that are wrong, through libfaketime. The monotonic clock stays right. */
import { existsSync, writeFileSync } from 'node:fs'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The library of the Debian package libfaketime. Undefined: the package is not installed. */
export const faketime = ['x86_64', 'aarch64']
  .map((machine) => `/usr/lib/${machine}-linux-gnu/faketime/libfaketime.so.1`)
  .find((library) => existsSync(library))

if (faketime === undefined)
  console.log('Tests of wrong clocks are skipped: the Debian package libfaketime is not installed.')

/** In the notation of libfaketime, for example `+100d`, `-3h` or `+0`. */
export type ClockOffset = `${'+' | '-'}${number}${'d' | 'h' | ''}`

export interface FakeClock extends AsyncDisposable {
  /** The environment of processes that use this clock. */
  environment: Record<string, string>
  /** Changes the clock. Running processes see the change within a second. */
  set(offset: ClockOffset): void
}

export async function newFakeClock(): Promise<FakeClock> {
  const directory = await mkdtemp(join(tmpdir(), 'muster-clock-'))
  // PostgreSQL runs as another user.
  await chmod(directory, 0o755)
  const file = join(directory, 'offset')
  const set = (offset: ClockOffset): void => writeFileSync(file, `${offset}\n`)
  set('+0')
  return {
    environment: {
      LD_PRELOAD: faketime ?? '',
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_CACHE_DURATION: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      DONT_FAKE_MONOTONIC: '1',
      NO_FAKE_STAT: '1',
    },
    set,
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }),
  }
}
