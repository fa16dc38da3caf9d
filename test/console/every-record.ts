import {
  type Body,
  newApplication,
  newJob,
  newParticipant,
  newPayment,
  newTask,
} from '../handlers/new-records.ts'
import type { Client } from '../helpers.ts'
import type { Values } from './forms.ts'

/** A record of each resource, and a body that creates another. */
export async function newRecords(
  client: Client,
): Promise<Record<string, { id: string; body: Body }>> {
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

/** The texts that a user types for a body. */
export function asInput(body: Body): Values {
  return Object.fromEntries(Object.entries(body).map(([name, value]) => [name, String(value)]))
}

/** Screening questions of a job. */
export const QUESTIONS = [
  { key: 'french', label: 'French?', requirement: 'must_have', expected: true },
  { key: 'years', label: 'Years?', requirement: 'nice_to_have', expected: 5 },
]
