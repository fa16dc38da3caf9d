/** Access to records in the console: by module permission, and only within the account. */
import { beforeAll, describe, expect, it } from 'vitest'
import { resources } from '../../generated/resources.ts'
import type { Permission, Permissions } from '../../records/users.ts'
import { newCompleteExport } from '../handlers/export-helpers.ts'
import { importFile } from '../handlers/import-helpers.ts'
import {
  newApplication,
  newJob,
  newParticipant,
  newPayment,
  newTask,
  UNKNOWN_ID,
} from '../handlers/new-records.ts'
import { type Client, sharedApp } from '../helpers.ts'
import { mainText, recordIdsIn, submitForm } from './forms.ts'
import { newOwner, type Owner, resourceBySlug } from './record-forms.ts'
import { inEveryModule, memberWith, visitor } from './visitors.ts'

let owner: Owner
let records: Record<string, string>
const app = sharedApp()
beforeAll(async () => {
  owner = await newOwner(app)
  records = await newLinkedRecords(owner.client)
})

/** Creates records that refer to each other. Returns the ID of one of each resource, by slug. The
 *  export is complete. */
async function newLinkedRecords(client: Client): Promise<Record<string, string>> {
  const person = await newParticipant(client, { full_name: 'Ada Lovelace' })
  const job = await newJob(client, { title: 'Interpreter' })
  const task = await newTask(client, { title: 'Call', participant_id: person.id })
  const application = await newApplication(client, { job_id: job.id, participant_id: person.id })
  const payment = await newPayment(client, { participant_id: person.id, task_id: task.id })
  return {
    participants: person.id,
    tasks: task.id,
    jobs: job.id,
    'job-applications': application.id,
    payments: payment.id,
    exports: await newCompleteExport(app, client, { resource: 'participants' }),
    imports: (await importFile(app, client, 'mode=create', 'full_name\n')).record.id,
  }
}

/** Requests for a resource: the permission that each needs, whether a resource has the page, and
 *  the status with the permission. The forms are empty. `/delete` is not posted: it would delete
 *  the record of all tests. */
const ACTIONS = [
  { name: 'list', method: 'get', to: () => '', needs: 'read', exists: () => true, status: 200 },
  {
    name: 'get',
    method: 'get',
    to: (id: string) => `/${id}`,
    needs: 'read',
    exists: () => true,
    status: 200,
  },
  {
    name: 'file',
    method: 'get',
    to: (id: string) => `/${id}/file`,
    needs: 'read',
    exists: (slug: string) => slug === 'exports' || slug === 'imports',
    status: 200,
  },
  {
    name: 'create form',
    method: 'get',
    to: () => '/new',
    needs: 'write',
    exists: hasForm,
    status: 200,
  },
  {
    name: 'create',
    method: 'post',
    to: () => '/new',
    needs: 'write',
    exists: hasForm,
    status: 422,
  },
  {
    name: 'update form',
    method: 'get',
    to: (id: string) => `/${id}/edit`,
    needs: 'write',
    exists: has('update'),
    status: 200,
  },
  {
    name: 'update',
    method: 'post',
    to: (id: string) => `/${id}/edit`,
    needs: 'write',
    exists: has('update'),
    status: 303,
  },
  {
    name: 'delete form',
    method: 'get',
    to: (id: string) => `/${id}/delete`,
    needs: 'write',
    exists: has('delete'),
    status: 200,
  },
] as const

/** The form of imports has a file, and not the fields of a JSON body. */
function hasForm(slug: string): boolean {
  return slug === 'imports' || has('create')(slug)
}

function has(operation: 'create' | 'update' | 'delete') {
  return (slug: string): boolean => resourceBySlug(slug).operations[operation] !== null
}

describe.each(resources.map(({ slug, module }) => ({ slug, module })))(
  '$slug',
  ({ slug, module }) => {
    const levels: Permission[] = ['none', 'read', 'write']
    it.each(levels)(
      `with the permission %s in ${module}: only the URLs, navigation entries and buttons of that level`,
      async (level) => {
        // The files of the export and of the import also need the permission for participants.
        const visits = await memberWith(app, owner.account, {
          ...(/^(exports|imports)$/.test(slug) && { participants: 'read' }),
          [module]: level,
        })
        const isAllowed = (needs: Permission): boolean =>
          levels.indexOf(level) >= levels.indexOf(needs)
        for (const { name, method, to, needs, exists, status: expected } of ACTIONS) {
          const { status } = await visits[method](`/records/${slug}${to(records[slug] ?? '')}`)
          const permitted = slug === 'imports' && name === 'create' ? 415 : expected
          expect([name, status]).toEqual([name, exists(slug) && isAllowed(needs) ? permitted : 404])
        }
        const home = await visits.get('/me')
        expect(home.text.includes(`href="/console/records/${slug}"`)).toBe(isAllowed('read'))
        if (!isAllowed('read')) return
        const [list, page] = [
          await visits.get(`/records/${slug}`),
          await visits.get(`/records/${slug}/${records[slug]}`),
        ]
        expect(recordIdsIn(list.text, slug)).toContain(records[slug])
        expect(list.text.includes(`/records/${slug}/new"`)).toBe(isAllowed('write'))
        for (const [action, operation] of [
          ['edit', 'update'],
          ['delete', 'delete'],
        ] as const)
          expect([action, page.text.includes(`/${records[slug]}/${action}"`)]).toEqual([
            action,
            isAllowed('write') && has(operation)(slug),
          ])
      },
    )

    it('with every other permission: 404', async () => {
      const others = { ...inEveryModule('write'), [module]: 'none' }
      const visits = await memberWith(app, owner.account, others)
      for (const { name, method, to } of ACTIONS) {
        const { status } = await visits[method](`/records/${slug}${to(records[slug] ?? '')}`)
        expect([name, status]).toEqual([name, 404])
      }
      const deleted = await visits.post(`/records/${slug}/${records[slug]}/delete`)
      expect(deleted.status).toBe(404)
    })

    it('records of another account, unknown IDs and invalid IDs: 404', async () => {
      const stranger = await newOwner(app)
      const before = await owner.tenant.scope.rows('events').count({ total: '*' })
      for (const id of [
        records[slug] ?? '',
        UNKNOWN_ID,
        'nonsense',
        '..%2Fusers',
        `${records[slug]}x`,
      ])
        for (const [method, action] of [
          ['get', ''],
          ['get', '/edit'],
          ['post', '/edit'],
          ['get', '/delete'],
          ['post', '/delete'],
          ['get', '/file'],
        ] as const) {
          const { status, text } = await stranger.visits[method](
            `/records/${slug}/${id}${action}`,
            method === 'post' ? { full_name: 'x' } : {},
          )
          expect([id, action, status]).toEqual([id, action, 404])
          expect(text).not.toContain('Lovelace')
        }
      expect(recordIdsIn((await stranger.visits.get(`/records/${slug}`)).text, slug)).toEqual([])
      expect(await owner.tenant.scope.rows('events').count({ total: '*' })).toEqual(before)
    })

    it('a guest: redirected to the sign-in page', async () => {
      const guest = await visitor(app)
      for (const path of [
        `/records/${slug}`,
        `/records/${slug}/${records[slug]}`,
        `/records/${slug}/new`,
      ]) {
        const answer = await guest.get(path)
        expect([answer.status, answer.to?.startsWith('/sign-in')]).toEqual([303, true])
      }
    })
  },
)

it('unknown resources and resources without pages: 404', async () => {
  for (const slug of [
    ...['nothing', 'events', 'event-types', 'users'],
    ...['constructor', '__proto__', 'Participants'],
  ])
    for (const path of [
      `/records/${slug}`,
      `/records/${slug}/new`,
      `/records/${slug}/${records.participants}`,
    ])
      expect([path, (await owner.visits.get(path)).status]).toEqual([path, 404])
})

describe('related records', () => {
  it('are hidden from users without permission, with their names and counts', async () => {
    const visits = await memberWith(app, owner.account, { tasks: 'write' })
    const [list, page] = [
      await visits.get('/records/tasks'),
      await visits.get(`/records/tasks/${records.tasks}`),
    ]
    for (const { text } of [list, page]) {
      expect(text).not.toContain('Lovelace')
      expect(text).not.toContain('/records/participants')
      expect(text).not.toContain('/records/payments')
    }
    const found = await submitForm(visits, '/records/tasks/new', {
      participant_id: 'ada',
      'ask:find': 'participant_id',
    })
    expect([found.status, found.text.includes('Lovelace')]).toEqual([200, false])
    // A known ID can still be entered.
    const answer = await submitForm(visits, '/records/tasks/new', {
      title: 'T',
      participant_id: records.participants,
    })
    expect(answer.status).toBe(303)
  })

  it('are on the page of a record for users with permission', async () => {
    const pageFor = async (permissions: Partial<Permissions>): Promise<string> => {
      const member = await memberWith(app, owner.account, permissions)
      return (await member.get(`/records/participants/${records.participants}`)).text
    }
    const alone = await pageFor({ participants: 'read' })
    expect(mainText(alone)).not.toMatch(/Payments|Job applications|Tasks/)
    const withTasks = await pageFor({ participants: 'read', tasks: 'read' })
    expect(mainText(withTasks)).toMatch(/Tasks \d/)
    expect(withTasks).not.toContain('/records/tasks/new')
    const withNewTasks = await pageFor({ participants: 'read', tasks: 'write' })
    expect(withNewTasks).toContain('/records/tasks/new')
  })
})
