/** The metrics of this process' delivery engine. */
import { Counter, Histogram, type Registry } from 'prom-client'
import { timeOfId } from '../records/ids.ts'
import type { Engine, EngineOptions } from '../webhooks/engine/engine.ts'
import { countReadErrors } from '../webhooks/transport/secret.ts'
import { addGauge } from './metrics.ts'

/** Observes each attempt of the engine. */
export function newAttemptObserver(registry: Registry): NonNullable<EngineOptions['onAttempt']> {
  const duration = new Histogram({
    name: 'muster_delivery_attempt_duration_seconds',
    help: 'Duration of attempts, from connecting to the end of the response body, by outcome.',
    labelNames: ['outcome'],
    buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15],
    registers: [registry],
  })
  const firstAttempt = new Histogram({
    name: 'muster_delivery_first_attempt_delay_seconds',
    help: 'Time from the creation of a delivery to the start of its first attempt.',
    buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800],
    registers: [registry],
  })
  return ({ deliveryId, number, result: { trigger } }, { outcome, durationMs, startedAt }) => {
    duration.observe({ outcome }, durationMs / 1000)
    if (number === 1 && trigger === 'schedule')
      firstAttempt.observe(Math.max(0, startedAt - timeOfId(deliveryId)) / 1000)
  }
}

/** Every node reports this metric: API nodes read signing secrets for the console. */
export function reportSecrets(registry: Registry): void {
  const errors = new Counter({
    name: 'muster_secret_read_errors_total',
    help:
      'How often this process could not decrypt the signing secret of a webhook ' +
      'since the start.',
    registers: [registry],
    collect() {
      errors.reset()
      errors.inc(countReadErrors())
    },
  })
}

export function reportDeliveries(registry: Registry, engine: Engine): void {
  const gauge = addGauge.bind(undefined, registry)
  gauge(
    'muster_delivery_attempts_in_flight',
    'Attempts that this process has leased and whose results are not stored yet.',
    () => engine.stats().inFlight,
  )
  gauge(
    'muster_delivery_results_waiting',
    'Attempts in flight that have ended and whose results are not stored yet.',
    () => engine.stats().resultsWaiting,
  )
  gauge(
    'muster_delivery_paused_webhooks',
    'Webhooks whose deliveries this process has paused, ' +
      'because it cannot read their signing secrets.',
    () => engine.stats().pausedWebhooks,
  )
  gauge(
    'muster_delivery_leader',
    'Whether this process is the leader, which fills the queue: 1 or 0.',
    () => Number(engine.isLeader()),
  )
  gauge(
    'muster_delivery_listen_connected',
    'Whether notifications of other nodes arrive: 1 or 0. No value in embedded mode.',
    async () => {
      const isListening = await engine.isListening()
      return isListening === undefined ? undefined : Number(isListening)
    },
  )
  gauge(
    'muster_delivery_queue_depth',
    'Due attempts in the queue that no worker has leased. Counted every few seconds.',
    () => engine.queueDepth(),
  )
  gauge(
    'muster_delivery_oldest_due_seconds',
    'How long ago the earliest scheduled attempt became due, over all workers. 0: no attempt is due.',
    async () => (await engine.oldestDueAgeMs()) / 1000,
  )
  const attempts = new Counter({
    name: 'muster_delivery_attempts_made_total',
    help: 'Attempts made since the start, by outcome.',
    labelNames: ['outcome'],
    registers: [registry],
    collect() {
      attempts.reset()
      for (const [outcome, count] of Object.entries(engine.stats().outcomes))
        attempts.inc({ outcome }, count)
    },
  })
  const ended = new Counter({
    name: 'muster_deliveries_ended_total',
    help: 'Deliveries that ended since the start, by state.',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      ended.reset()
      for (const [state, count] of Object.entries(engine.stats().ended)) ended.inc({ state }, count)
    },
  })
}
