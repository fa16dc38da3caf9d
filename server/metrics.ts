import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { newViolations, type SeenViolation, type Violation } from '../operations/violations.ts'
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
  addBuildInfo(registry)
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

/** Prometheus waits 10 s for the response, and then has no metric of the node. */
const READ_TIMEOUT_MS = 5_000

/** Undefined: `read` throws, or takes too long. */
async function readInTime<T>(read: () => T | Promise<T>): Promise<T | undefined> {
  const reading = Promise.resolve()
    .then(read)
    .catch(() => undefined)
  return Promise.race([reading, delay(READ_TIMEOUT_MS, undefined, { ref: false })])
}

/** Adds a gauge that is read at each scrape. The gauge has no value while `read` returns undefined,
 *  throws or takes too long. */
export function addGauge(
  registry: Registry,
  name: string,
  help: string,
  read: () => number | undefined | Promise<number | undefined>,
): void {
  const gauge: Gauge = new Gauge({
    name,
    help,
    registers: [registry],
    async collect() {
      const value = await readInTime(read)
      if (value === undefined) gauge.remove()
      else gauge.set(value)
    },
  })
}

/** Adds a gauge with one number for each value of its label. The gauge is empty while `read` throws
 *  or takes too long. */
export function addLabelledGauge(
  registry: Registry,
  { label, ...names }: { name: string; help: string; label: string },
  read: () => Promise<Record<string, number>>,
): void {
  const gauge: Gauge = new Gauge({
    ...names,
    labelNames: [label],
    registers: [registry],
    async collect() {
      gauge.reset()
      const values = (await readInTime(read)) ?? {}
      for (const [key, value] of Object.entries(values)) gauge.set({ [label]: key }, value)
    },
  })
}

function addBuildInfo(registry: Registry): void {
  const { version } = JSON.parse(
    readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
  ) as { version: string }
  new Gauge({
    name: 'muster_build_info',
    help: 'The version of Muster and of Node.js. Always 1.',
    labelNames: ['version', 'node'],
    registers: [registry],
  }).set({ version, node: process.versions.node }, 1)
}
