/** A line on a terminal that says what a command does now. Each text replaces the one before. */
import type { WriteStream } from 'node:tty'

export interface ProgressLine {
  /** `done` of `total` parts of the work have ended. */
  show(what: string, done: number, total: number): void
  /** Removes the line. */
  end(): void
}

/** Too few parts say nothing about the rest. */
const MIN_DONE_FOR_ESTIMATE = 10
const CLEAR = '\r\x1b[K'

/** Writes nothing if the stream is no terminal. */
export function newProgressLine(stream: WriteStream): ProgressLine {
  const startedAt = performance.now()
  const write = (text: string): void => {
    if (stream.isTTY) stream.write(CLEAR + text.slice(0, stream.columns - 1))
  }
  return {
    show(what, done, total) {
      const leftMs = ((performance.now() - startedAt) / done) * (total - done)
      const left = done < MIN_DONE_FOR_ESTIMATE ? '' : `, about ${formatSeconds(leftMs)} left`
      write(`${done} of ${total}${left}: ${what}`)
    },
    end: () => write(''),
  }
}

function formatSeconds(ms: number): string {
  const seconds = Math.ceil(ms / 1000)
  return seconds < 100 ? `${seconds} s` : `${Math.ceil(seconds / 60)} min`
}
