/** The list of users. Only the Account Owner sees it. */
import { modules, type Permission } from '../../../records/users.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { ROLES } from '../layout.ts'
import { type ConsolePage, getFromStandby, isOwner, type Route, type Visit } from '../page.ts'
import { buttonLink, card, empty, table, twoLines } from '../ui.ts'
import { formatGrants, PERMISSION_LABELS, SHORT_MODULE_LABELS } from './access-form.ts'
import { listPeople, type Person, personStatus } from './person.ts'

export const peopleRoutes: Route[] = [getFromStandby('/people', isOwner, peoplePage)]

async function peoplePage(visit: Visit): Promise<ConsolePage> {
  const people = await listPeople(visit)
  return {
    title: 'People',
    lead: 'Who works with this account, and what they can see and do.',
    actions: inviteLink(),
    body: [
      card('', peopleTable(people, visit.now)),
      people.length === 1 && card('', noColleagues()),
    ],
  }
}

function inviteLink(): Html {
  return buttonLink('/people/invite', 'Invite a teammate', 'primary')
}

function noColleagues(): Html {
  return empty(
    'No teammates yet',
    'Invite Admins to set up the account, API keys and webhooks, and Members to work with records.',
    inviteLink(),
  )
}

function peopleTable(people: Person[], now: Date): Html {
  const moduleLabels = modules.map((module) => SHORT_MODULE_LABELS[module])
  const rows = people.map((person) => ({
    cells: [
      twoLines(html`<a href="/console/people/${person.id}">${person.fullName}</a>`, person.email),
      twoLines(ROLES[person.role], manages(person)),
      personStatus(person, now),
      ...modules.map((module) => permissionCell(person.permissions[module])),
    ],
  }))
  return table('People', ['Name', 'Role', 'Status', ...moduleLabels], rows, 'people')
}

function manages(person: Person): Content {
  const granted = formatGrants(person)
  return granted !== '' && `Manages ${granted}`
}

function permissionCell(permission: Permission): Html {
  return html`<span class="permission ${permission}">${PERMISSION_LABELS[permission]}</span>`
}
