const STOP_SIGNALS = ['SIGINT', 'SIGTERM'] as const

/** Resolves with the first SIGINT or SIGTERM. From the call on, these signals do not end the
 *  process. */
export function nextStopSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    for (const signal of STOP_SIGNALS) process.on(signal, resolve)
  })
}

/** A second SIGTERM within this time is a duplicate: a service manager may signal this process
 *  and npm, which forwards the signal to this process. */
const DUPLICATE_MS = 250
/** A signal this soon after the last handled one does not end the process. It may be a duplicate:
 *  the terminal and npm each send Ctrl-C. If not, the operator cannot have seen yet that the stop
 *  takes too long. */
const EXIT_AFTER_MS = 1_000

export interface StopSignals {
  /** Aborts at the first SIGTERM or SIGINT. */
  stopping: AbortSignal
  /** Aborts when the drain must not begin, or must end: at SIGINT or a second SIGTERM. Also
   *  aborts at `endDrain`. */
  skipDrain: AbortSignal
  /** Call it after the drain. It aborts `skipDrain`, so that a signal ends the process. */
  endDrain(): void
}

/** Listens for SIGTERM and SIGINT. Once `skipDrain` has aborted, a further signal ends the process
 *  with status 1 (see `EXIT_AFTER_MS`). */
export function listenForStop(): StopSignals {
  const stopping = new AbortController()
  const skipDrain = new AbortController()
  let handledAtMs = Number.NEGATIVE_INFINITY
  const onSignal = (signal: NodeJS.Signals): void => {
    const sinceMs = performance.now() - handledAtMs
    if (skipDrain.signal.aborted) {
      if (sinceMs > EXIT_AFTER_MS) process.exit(1)
      return
    }
    const isDuplicate = signal === 'SIGTERM' && sinceMs < DUPLICATE_MS
    if (isDuplicate) return
    handledAtMs = performance.now()
    if (signal === 'SIGINT' || stopping.signal.aborted) skipDrain.abort()
    stopping.abort(signal)
  }
  for (const signal of STOP_SIGNALS) process.on(signal, onSignal)
  return {
    stopping: stopping.signal,
    skipDrain: skipDrain.signal,
    endDrain: () => skipDrain.abort(),
  }
}
