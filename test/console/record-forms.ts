/** Account Owners who create records by form and by API. */
import { expect } from 'vitest'
import { operations } from '../../generated/operations.ts'
import { type Resource, resources } from '../../generated/resources.ts'
import { makeExport } from '../../operations/export-job.ts'
import {
  type Body,
  newApplication,
  newJob,
  newParticipant,
  newPayment,
  newTask,
} from '../handlers/new-records.ts'
import type { Client, TestAccount, TestApp } from '../helpers.ts'
import { newTenant, type Tenant } from '../webhooks/harness.ts'
import { fieldErrors, submitForm, type Values } from './forms.ts'
import { newAccountOwner, type Visitor } from './visitors.ts'

/** The Owner of an account, with access to the console and the API. */
export interface Owner {
  account: TestAccount
  /** The same account. */
  tenant: Tenant
  /** The Owner as a client of the API. */
  client: Client
  /** The Owner in the console. */
  visits: Visitor
}

export async function newOwner(app: TestApp): Promise<Owner> {
  const { account, owner } = await newAccountOwner(app)
  const { db, config } = app
  const tenant = await newTenant({ db, config, newAccount: async () => account })
  return { account, tenant, client: app.as(account), visits: owner }
}

export function resourceBySlug(slug: string): Resource {
  const resource = resources.find((one) => one.slug === slug)
  if (!resource) throw new Error(`No resource ${slug}`)
  return resource
}

/** The path of the resource's list, below `/public/v1`. */
export function apiPath({ operations: { list } }: Resource): string {
  return operations[list].path.replace('/public/v1', '')
}

/** Screening questions of a job. */
export const QUESTIONS = [
  { key: 'french', label: 'French?', requirement: 'must_have', expected: true },
  { key: 'years', label: 'Years?', requirement: 'nice_to_have', expected: 5 },
]

export interface RecordOfResource {
  /** Empty for an export, which cannot be updated. */
  id: string
  /** The body of a request that creates another record. */
  body: Body
}

/** A record of each resource, by slug. */
export async function newRecordOfEach(client: Client): Promise<Record<string, RecordOfResource>> {
  const ada = await newParticipant(client)
  const other = await newParticipant(client, { full_name: 'Grace Hopper' })
  const job = await newJob(client)
  const task = await newTask(client)
  const application = await newApplication(client, { job_id: job.id, participant_id: ada.id })
  const payment = await newPayment(client, { participant_id: ada.id })
  return {
    participants: { id: ada.id, body: { full_name: 'Alan Turing' } },
    tasks: { id: task.id, body: { title: 'Call' } },
    jobs: { id: job.id, body: { title: 'Driver' } },
    'job-applications': { id: application.id, body: { job_id: job.id, participant_id: other.id } },
    payments: {
      id: payment.id,
      body: { participant_id: ada.id, amount_minor: 5, currency: 'EUR' },
    },
    exports: { id: '', body: { resource: 'tasks', format: 'csv' } },
  }
}

/** Writes the file of an export, as the engine does. */
export async function writeExportFile({ db }: TestApp, id: string): Promise<void> {
  const context = { db, now: () => new Date(), quotas: { export_mib: 1024 } }
  await makeExport(context, id, new AbortController().signal)
}

/** The input for the form of a new record: each field of the body as a user types it. A user who
 *  types an amount sees how the form reads it. */
export function asInput(body: Body): Values {
  const { amount_minor, ...others } = body
  return {
    ...Object.fromEntries(Object.entries(others).map(([name, value]) => [name, String(value)])),
    ...(amount_minor !== undefined && {
      amount_minor: (amount_minor / 100).toFixed(2),
      'amount_minor:seen': `€${(amount_minor / 100).toFixed(2)}`,
    }),
  }
}

/** Creates a record with the form at `path`. Returns its ID. */
export async function createByForm(visits: Visitor, path: string, values: Values): Promise<string> {
  const answer = await submitForm(visits, path, values)
  expect(fieldErrors(answer.text)).toEqual({})
  expect(answer).toMatchObject({
    status: 303,
    to: expect.stringMatching(/^\/records\/[a-z-]+\/[0-9a-f-]{36}$/),
  })
  return answer.to?.split('/').at(-1) ?? ''
}
