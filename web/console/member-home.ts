/** The overview of Members: what to do next, and the records that they may see. */
import { type Resource, resources } from '../../generated/resources.ts'
import {
  DUE_SOON_DAYS,
  listDueTasks,
  listNewApplications,
  listOpenTasks,
  listRecentChanges,
  type TaskToDo,
} from '../../records/reports/to-do.ts'
import { findOwner } from '../../records/users.ts'
import { type Content, type Html, html } from '../shared/html.ts'
import { count } from './format.ts'
import { icon } from './icons.ts'
import type { Visit } from './page.ts'
import { OVERDUE, statePill } from './records/cells.ts'
import { statusPill } from './records/combobox.ts'
import { plural } from './records/labels.ts'
import { kindOf, loadRecordLinks } from './records/record-link.ts'
import { listRecords } from './records/references.ts'
import { canViewResource, findResource, recordLink, resourcePath } from './records/resources.ts'
import { buttonLink, type Column, card, empty, table, timeElement, twoLines } from './ui.ts'

export async function memberHome(visit: Visit): Promise<Html> {
  const { scope, user } = visit
  const visible = resources.filter((resource) => canViewResource(user, resource))
  if (visible.length === 0) {
    const owner = await findOwner(scope)
    const text = `You have no access to records yet. Ask ${owner?.fullName}, the Account Owner.`
    return card('', empty('Nothing here yet', text))
  }
  const cards = [
    findVisible(visible, 'tasks', (resource) => taskCards(visit, resource)),
    findVisible(visible, 'job-applications', (resource) => applicationsCard(visit, resource)),
    changesCard(visit, visible),
  ]
  return html`<div class="halves">${await Promise.all(cards)}</div>${await tiles(visit, visible)}`
}

async function findVisible(
  visible: Resource[],
  slug: string,
  show: (resource: Resource) => Promise<Content>,
): Promise<Content> {
  const resource = visible.find((one) => one.slug === slug)
  return resource && show(resource)
}

async function taskCards({ scope, now }: Visit, tasks: Resource): Promise<Content> {
  const [due, open] = await Promise.all([listDueTasks(scope, now), listOpenTasks(scope)])
  const link = ({ id, title }: TaskToDo): Html => recordLink(tasks, id, title)
  const dueTime = ({ due_at: at }: TaskToDo): Content => [
    when(at, now),
    Number(at) < now.getTime() && OVERDUE,
  ]
  return [
    listCard(`Due within ${DUE_SOON_DAYS} days`, {
      columns: ['Task', 'Status', 'Due'],
      rows: due.map((task) => [link(task), statusPill({ ...task }), dueTime(task)]),
      none: 'No unfinished task is due soon.',
      all: `${resourcePath(tasks)}?filter[status]=open,in_progress&sort=due_at`,
    }),
    listCard('Open tasks', {
      columns: ['Task', 'Created'],
      rows: open.map((task) => [link(task), when(task.created_at, now)]),
      none: 'Every task has been started or finished.',
      all: `${resourcePath(tasks)}?filter[status]=open`,
    }),
  ]
}

async function applicationsCard(
  { scope, user, now }: Visit,
  applications: Resource,
): Promise<Content> {
  const participants = findResource('participants')
  const canViewNames = participants !== undefined && canViewResource(user, participants)
  const rows = (await listNewApplications(scope)).map((application) => {
    const title = canViewNames ? application.participant : 'Application'
    return [
      twoLines(recordLink(applications, application.id, title), application.job),
      application.screening_outcome && statePill(application.screening_outcome),
      when(application.created_at, now),
    ]
  })
  return listCard('New applications', {
    columns: ['Application', 'Screening', 'Submitted'],
    rows,
    none: 'No application waits for a decision.',
    all: `${resourcePath(applications)}?filter[status]=submitted`,
  })
}

const CHANGES = ['created', 'updated', 'deleted']

async function changesCard(visit: Visit, visible: Resource[]): Promise<Content> {
  const types = visible
    // Exports and imports are no records of people, and an export can be of hidden records.
    .filter(({ module }) => module !== 'exports')
    .flatMap(({ type }) => CHANGES.map((verb) => `${type}.${verb}`))
  if (types.length === 0) return false
  const changes = await listRecentChanges(visit.scope, types)
  const references = changes.map(({ resource_type: type, resource_id: id }) => ({ type, id }))
  const links = await loadRecordLinks(visit, references)
  const rows = changes.map((change) => {
    const kind = kindOf(change.resource_type)
    const verb = change.event_type.slice(change.event_type.indexOf('.') + 1)
    return [
      twoLines(links.get(change.resource_id) ?? kind, `${kind} ${verb}`),
      change.user_name && html`<span class="clip">${change.user_name}</span>`,
      when(change.created_at, visit.now),
    ]
  })
  return listCard('Recent changes', {
    columns: ['Record', 'By', 'When'],
    rows,
    none: 'No record has changed yet.',
  })
}

interface List {
  columns: Column[]
  rows: Content[][]
  none: string
  /** The page with all of them, below /console. */
  all?: string
}

function listCard(title: string, { columns, rows, none, all }: List): Html {
  const body =
    rows.length === 0
      ? html`<p class="muted">${none}</p>`
      : table(
          title,
          columns,
          rows.map((cells) => ({ cells })),
        )
  return card(title, body, all && rows.length > 0 && buttonLink(all, 'See all', 'quiet'))
}

function when(at: number | null, now: Date): Html {
  return html`<span class="nowrap">${timeElement(at, now)}</span>`
}

async function tiles(visit: Visit, visible: Resource[]): Promise<Html> {
  const items = await Promise.all(
    visible.map(async (resource) => {
      const { meta } = await listRecords(visit, resource, { 'page[size]': 1 })
      return html`<li>
        <a href="/console${resourcePath(resource)}">
          ${icon(resource.slug)}
          <strong>${plural(resource)}</strong>
          <span class="stat-value">${count(meta.total)}</span>
        </a>
      </li>`
    }),
  )
  return html`<ul class="tiles">${items}</ul>`
}
