import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { newViolations, type SeenViolation, type Violation } from '../operations/violations.ts'
import type { Engine } from '../webhooks/engine/engine.ts'
import type { Context, Next } from './context.ts'

export interface Metrics {
  registry: Registry
  middleware(ctx: Context, next: Next): Promise<void>
  recordViolation(violation: Violation): void
  /** Distinct violations since the start, most recent first. */
  violations(): SeenViolation[]
}

/** Prometheus metrics of the process and of each operation. */
export function newMetrics(): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const duration = new Histogram({
    name: 'muster_http_request_duration_seconds',
    help: 'Duration of requests to the public API, by operation and status.',
    labelNames: ['operation', 'status'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
    registers: [registry],
  })
  const contractViolations = new Counter({
    name: 'muster_contract_violations_total',
    help: 'Responses that broke the contract, by operation.',
    labelNames: ['operation'],
    registers: [registry],
  })
  const eventViolations = new Counter({
    name: 'muster_event_violations_total',
    help: 'Events that would have broken the contract and were not emitted, by type.',
    labelNames: ['event'],
    registers: [registry],
  })
  const violations = newViolations()
  return {
    registry,
    recordViolation(violation) {
      violations.record(violation, new Date())
      if ('event' in violation) eventViolations.inc({ event: violation.event })
      else contractViolations.inc({ operation: violation.operation })
    },
    violations: violations.list,
    async middleware(ctx, next) {
      const start = performance.now()
      await next()
      const operation = ctx.state.operationId ?? 'none'
      duration.observe(
        { operation, status: String(ctx.status) },
        (performance.now() - start) / 1000,
      )
    },
  }
}

/** Adds the metrics of this process' delivery engine. */
export function reportDeliveries(registry: Registry, engine: Engine): void {
  const claimed: Gauge = new Gauge({
    name: 'muster_delivery_attempts_claimed',
    help: 'Attempts that this process holds: being sent, or their results not stored yet.',
    registers: [registry],
    collect: () => claimed.set(engine.stats().inFlight),
  })
  const paused: Gauge = new Gauge({
    name: 'muster_delivery_paused_webhooks',
    help: 'Webhooks whose deliveries this process has paused, because it cannot read their signing secrets.',
    registers: [registry],
    collect: () => paused.set(engine.stats().pausedWebhooks),
  })
  const age: Gauge = new Gauge({
    name: 'muster_delivery_oldest_due_seconds',
    help: 'How long the attempt that waits longest has been due.',
    registers: [registry],
    // NaN without a database; the other metrics are still reported.
    collect: async () =>
      age.set(
        await engine.oldestDueAgeMs().then(
          (ms) => ms / 1000,
          () => Number.NaN,
        ),
      ),
  })
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
