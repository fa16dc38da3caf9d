/** The people of the account: who they are, what they may do, and the links by which they join. For the Owner. */
import { invite } from '../../../auth/invitation.ts'
import { TooOften } from '../../../auth/rate-limit.ts'
import { Refused } from '../../../errors.ts'
import { listApiKeys } from '../../../records/api-keys.ts'
import { changesBetween } from '../../../records/audit-log.ts'
import type { WriteScope } from '../../../records/database/scope.ts'
import { deleteInvitation, listExpiries } from '../../../records/invitations.ts'
import { assertName } from '../../../records/names.ts'
import { deleteSessions } from '../../../records/sessions.ts'
import {
  assertEmail,
  deleteInvitedUser,
  EmailTaken,
  emailKey,
  findUser,
  type Grant,
  grants,
  insertUser,
  listJoinedIds,
  listUsers,
  type Module,
  modules,
  type Permission,
  type Permissions,
  permissions,
  permissionsByRole,
  type User,
  type UserAccess,
  updateAccess,
  updateUserStatus,
} from '../../../records/users.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { ROLES } from '../layout.ts'
import { type Answer, get, isOwner, type Page, post, type Route, type Visit } from '../page.ts'
import {
  action,
  buttonLink,
  card,
  choiceField,
  codeBlock,
  confirmed,
  counted,
  type Errors,
  empty,
  facts,
  form,
  note,
  pill,
  problemsOf,
  table,
  textField,
  timeOf,
  utc,
} from '../ui.ts'

export const peopleRoutes: Route[] = [
  get('/people', isOwner, peoplePage),
  get('/people/invite', isOwner, (visit) => invitePage(visit)),
  post('/people/invite', isOwner, invitePerson),
  get('/people/:user', isOwner, async (visit) => personPage(visit, await findPerson(visit))),
  post('/people/:user', isOwner, changeAccess),
  post('/people/:user/link', isOwner, makeLink),
  post('/people/:user/withdraw', isOwner, withdraw),
  post('/people/:user/deactivate', isOwner, deactivate),
  post('/people/:user/reactivate', isOwner, reactivate),
]

export const MODULES: Record<Module, string> = {
  participants: 'Participants',
  tasks: 'Tasks',
  jobs: 'Jobs and applications',
  exports: 'Exports',
  finance: 'Finance',
}
export const PERMISSIONS: Record<Permission, string> = { none: 'None', read: 'View', write: 'Edit' }
const GRANTS: Record<Grant, string> = { api_keys: 'API keys', webhooks: 'webhooks' }

/** `API keys and webhooks`, `Webhooks`, or nothing. */
export function managedBy(user: User): string {
  const text = user.grants.map((grant) => GRANTS[grant]).join(' and ')
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`
}

/** A user, and how they stand to the account. */
interface Person extends User {
  hasJoined: boolean
  /** When their link expires or has expired. */
  linkExpiresAt: number | undefined
}

async function listPeople({ scope }: Visit): Promise<Person[]> {
  const [users, joined, expiries] = await Promise.all([
    listUsers(scope),
    listJoinedIds(scope),
    listExpiries(scope),
  ])
  const hasJoined = new Set(joined)
  return users.map((user) => ({
    ...user,
    hasJoined: hasJoined.has(user.id),
    linkExpiresAt: expiries.get(user.id),
  }))
}

async function findPerson(visit: Visit): Promise<Person> {
  const person = (await listPeople(visit)).find(({ id }) => id === visit.params.user?.toLowerCase())
  return person ?? visit.ctx.throw(404)
}

function statusOf({ status, hasJoined, linkExpiresAt }: Person, now: Date): Html {
  if (status === 'deactivated') return pill('quiet', 'Deactivated')
  if (hasJoined) return pill('ok', 'Active')
  return linkExpiresAt !== undefined && linkExpiresAt > now.getTime()
    ? pill('busy', 'Invited')
    : pill('warn', 'Invitation expired')
}

/** Somebody's name, and under it their address. */
function nameAndAddress({ id, fullName, email }: User): Html {
  return html`<span class="two-lines"><a href="/console/people/${id}">${fullName}</a><small class="muted">${email}</small></span>`
}

function permissionCell(permission: Permission): Html {
  return html`<span class="permission ${permission}">${PERMISSIONS[permission]}</span>`
}

async function peoplePage(visit: Visit): Promise<Page> {
  const people = await listPeople(visit)
  const rows = people.map((person) => ({
    cells: [
      nameAndAddress(person),
      ROLES[person.role],
      statusOf(person, visit.now),
      managedBy(person) || html`<span class="muted">Nothing</span>`,
      ...modules.map((module) => permissionCell(person.permissions[module])),
    ],
  }))
  return {
    title: 'People',
    lead: 'Who works with this account, and what each of them may see and do.',
    actions: buttonLink('/people/invite', 'Invite somebody', 'primary'),
    body: html`${card(
      '',
      table(
        ['Name', 'Role', 'Status', 'Manages', ...modules.map((module) => SHORT_MODULES[module])],
        rows,
        { label: 'People' },
      ),
    )}${people.length === 1 && card('', empty('You work alone so far', 'Invite the people you work with: an Admin sets things up and can be let manage API keys and webhooks; a Member works with the records that you open to them.', buttonLink('/people/invite', 'Invite somebody')))}`,
  }
}

const SHORT_MODULES: Record<Module, string> = { ...MODULES, jobs: 'Jobs' }

/** What an access form was sent with. What is none of the choices is an error, and the least of them. */
function accessOf(given: URLSearchParams): {
  access: UserAccess & { permissions: Permissions }
  errors: Errors
} {
  const errors: Errors = {}
  const role = given.get('role')
  if (role !== 'admin' && role !== 'member') errors.role = ['Choose a role.']
  const levels = modules.map((module): [Module, Permission] => {
    const level = permissions.find((known) => known === given.get(module))
    if (!level) errors[module] = ['Choose what they may do.']
    return [module, level ?? 'none']
  })
  const access = {
    role: role === 'admin' ? ('admin' as const) : ('member' as const),
    // What was ticked before the role was changed to Member is no slip, and no grant.
    grants:
      role === 'admin' ? grants.filter((grant) => given.getAll('grants').includes(grant)) : [],
    permissions: Object.fromEntries(levels) as Permissions,
  }
  return { access, errors }
}

function accessFields(
  { role, grants: granted, permissions: given }: UserAccess & { permissions: Permissions },
  errors: Errors,
): Content {
  return html`${choiceField({
    name: 'role',
    legend: 'Role',
    choices: [
      {
        value: 'admin',
        label: 'Admin',
        hint: 'Also sees API keys, webhooks and API requests.',
      },
      { value: 'member', label: 'Member', hint: 'Works with records only.' },
    ],
    values: [role],
    errors,
  })}<div class="for-admins">${choiceField({
    name: 'grants',
    legend: 'May manage',
    hint: 'Admins only. Without it, an Admin sees them and changes nothing.',
    choices: [
      {
        value: 'api_keys',
        label: 'API keys',
        hint: 'Create, change and revoke keys of the account.',
      },
      {
        value: 'webhooks',
        label: 'Webhooks',
        hint: 'Create and change webhooks, and send deliveries again.',
      },
    ],
    values: granted,
    isMultiple: true,
    errors,
  })}</div><fieldset class="field"><legend>Records</legend><p class="hint">What they see and change in this console. API keys reach all records whatever is chosen here, but for payments: these need Finance.</p>${modules.map(
    (module) => segments(module, given[module], errors[module]),
  )}</fieldset>`
}

function segments(module: Module, chosen: Permission, wrong: string[] | undefined): Html {
  return html`<div class="segments-row" role="radiogroup" aria-labelledby="label-${module}"><span id="label-${module}">${MODULES[module]}</span><span class="segments">${permissions.map(
    (permission) =>
      html`<label><input type="radio" name="${module}" value="${permission}"${permission === chosen && html` checked`}><span>${PERMISSIONS[permission]}</span></label>`,
  )}</span>${wrong && html`<p class="field-error">${wrong.join(' ')}</p>`}</div>`
}

const NEW_MEMBER = { role: 'member' as const, grants: [], permissions: permissionsByRole.member }

function invitePage(visit: Visit, errors: Errors = {}): Page {
  const value = (name: string): string => visit.form.get(name) ?? ''
  const isSent = visit.ctx.method === 'POST'
  return {
    title: 'Invite somebody',
    lead: 'You get a link to send them. It works once, for seven days.',
    crumbs: [{ label: 'People', to: '/people' }],
    status: isSent ? 422 : 200,
    isNarrow: true,
    body: card(
      '',
      form({ to: '/people/invite', submit: 'Make the link', cancel: '/people', errors }, [
        textField({
          name: 'full_name',
          label: 'Name',
          value: value('full_name'),
          maxLength: 200,
          isRequired: true,
          errors,
        }),
        textField({
          name: 'email',
          label: 'E-mail address',
          hint: 'They sign in with it.',
          type: 'email',
          value: value('email'),
          maxLength: 254,
          isRequired: true,
          errors,
        }),
        accessFields(isSent ? accessOf(visit.form).access : NEW_MEMBER, errors),
      ]),
    ),
  }
}

async function invitePerson(visit: Visit): Promise<Answer> {
  const fullName = visit.form.get('full_name') ?? ''
  const email = visit.form.get('email') ?? ''
  const { access, errors: accessErrors } = accessOf(visit.form)
  const errors = {
    ...problemsOf({
      full_name: () => assertName('The name', fullName),
      email: () => assertEmail(email),
    }),
    ...accessErrors,
  }
  if (Object.keys(errors).length > 0) return invitePage(visit, errors)
  const given = { ...access, fullName, email, passwordHash: null }
  try {
    await visit.throttle('invite', visit.account.id)
    const { user, link } = await visit.change(async (scope) => {
      const user = await madeUser(scope, await insertUser(scope, given, visit.now))
      const link = await invite(scope, user.id, visit.now)
      await visit.audit(scope, {
        action: 'user.invited',
        target: targetOf(user),
        details: { email: user.email, ...flat(user) },
      })
      return { user, link }
    })
    return linkPage(visit, user, link, false)
  } catch (error) {
    if (error instanceof TooOften) return invitePage(visit, { email: [error.message] })
    if (!(error instanceof EmailTaken)) throw error
    const isOurs = (await listUsers(visit.scope)).some(
      (user) => emailKey(user.email) === emailKey(email),
    )
    return invitePage(visit, {
      email: [
        isOurs
          ? 'Somebody of your account has this address already.'
          : 'This address cannot be used.',
      ],
    })
  }
}

async function madeUser(scope: WriteScope, id: string): Promise<User> {
  const user = await findUser(scope, id)
  if (!user) throw new Error(`User ${id}, who was just made, is not there`)
  return user
}

const targetOf = ({ id, fullName }: User) => ({ type: 'user', id, name: fullName }) as const

/** What somebody may do, for the audit log to compare. */
const flat = ({ role, grants: granted, permissions: given }: User) => ({
  role,
  ...Object.fromEntries(grants.map((grant) => [`manages_${grant}`, granted.includes(grant)])),
  ...given,
})

/** The link is in this page and nowhere else. */
function linkPage(
  { config }: Visit,
  user: User,
  { token, expiresAt }: { token: string; expiresAt: number },
  hasJoined: boolean,
): Page {
  return {
    title: hasJoined ? `A new password for ${user.fullName}` : `${user.fullName} is invited`,
    crumbs: [
      { label: 'People', to: '/people' },
      { label: user.fullName, to: `/people/${user.id}` },
    ],
    isNarrow: true,
    body: card(
      'Send them this link',
      html`${note('warn', 'Copy it now: it is shown this once. Whoever has it can sign in as them, so send it to nobody else.')}${codeBlock(
        `${config.baseUrl}/console/invitation/${token}`,
        'link',
      )}<p class="muted">It works once, until ${utc(expiresAt)}. ${hasJoined ? 'Using it signs them out on all devices.' : 'You can make another one on their page.'}</p><p>${buttonLink('/people', 'Done', 'primary')}</p>`,
    ),
  }
}

async function personPage(visit: Visit, person: Person, errors: Errors = {}): Promise<Page> {
  const { scope, form: given, now } = visit
  const isSent = Object.keys(errors).length > 0
  const keys = (await listApiKeys(scope, person.id)).filter(({ revokedAt }) => revokedAt === null)
  const isOwnPage = person.role === 'owner'
  return {
    title: person.fullName,
    crumbs: [{ label: 'People', to: '/people' }],
    actions: statusOf(person, now),
    status: isSent ? 422 : 200,
    isNarrow: true,
    body: [
      card(
        '',
        facts([
          ['E-mail address', person.email],
          ['Role', ROLES[person.role]],
          [person.hasJoined ? 'Added' : 'Invited', timeOf(person.createdAt, now)],
          ...(person.hasJoined ? [] : [['Link', linkStateOf(person, now)] as [string, Content]]),
          [
            'API keys',
            keys.length === 0
              ? 'None'
              : html`<a href="/console/api-keys">${counted(keys.length, 'key')}</a>`,
          ],
          [
            'History',
            html`<a href="/console/audit-log?user=${person.id}">What they did</a> · <a href="/console/audit-log?target=${person.id}">What was changed about them</a>`,
          ],
        ]),
      ),
      isOwnPage
        ? card(
            'What you may do',
            html`<p>You are the Account Owner: you see and change everything, and decide what the others may. <a href="/console/settings">Transfer the ownership</a> to change that.</p>`,
          )
        : card(
            'What they may do',
            form(
              { to: `/people/${person.id}`, submit: 'Save', errors },
              accessFields(
                isSent
                  ? accessOf(given).access
                  : { ...person, role: person.role === 'admin' ? 'admin' : 'member' },
                errors,
              ),
            ),
          ),
      !isOwnPage &&
        card('Joining and leaving', html`<div class="card-body doings">${doings(person)}</div>`),
    ],
  }
}

function linkStateOf({ linkExpiresAt }: Person, now: Date): Content {
  if (linkExpiresAt === undefined) return 'None'
  return html`${linkExpiresAt > now.getTime() ? 'Expires' : 'Expired'} ${timeOf(linkExpiresAt, now)}`
}

/** What can be done about somebody, and what it does. */
function doings(person: Person): Content {
  const { id, fullName, hasJoined, status } = person
  const doing = (text: string, control: Content): Html => html`<div><p>${text}</p>${control}</div>`
  if (status === 'deactivated')
    return doing(
      'Deactivated: cannot sign in, and the API keys are refused. Nothing else was changed.',
      action({ to: `/people/${id}/reactivate`, label: 'Reactivate' }),
    )
  const link = action({ to: `/people/${id}/link`, label: 'Make a new link' })
  return [
    hasJoined
      ? doing('Forgot the password: a one-time link lets them choose a new one.', link)
      : doing('Has not joined yet. A new link replaces the one before.', link),
    !hasJoined &&
      doing(
        'Invited by mistake: the link stops working, and the address can be invited again.',
        confirmed('Withdraw the invitation', {
          title: `Withdraw the invitation of ${fullName}?`,
          text: 'Their link stops working at once.',
          body: action({ to: `/people/${id}/withdraw`, label: 'Withdraw', style: 'danger' }),
        }),
      ),
    doing(
      'Leaves: no more signing in, and the API keys are refused from the next request on. What they made stays.',
      confirmed('Deactivate', {
        title: `Deactivate ${fullName}?`,
        text: 'They are signed out everywhere at once, and every API key of theirs is refused from its next request on. You can take it back.',
        body: action({ to: `/people/${id}/deactivate`, label: 'Deactivate', style: 'danger' }),
      }),
    ),
  ]
}

async function changeAccess(visit: Visit): Promise<Answer> {
  const person = await findPerson(visit)
  const { access, errors } = accessOf(visit.form)
  if (Object.keys(errors).length > 0 && person.role !== 'owner')
    return personPage(visit, person, errors)
  const isChanged = await visit.change(async (scope) => {
    const changed = await updateAccess(scope, person.id, access, visit.now)
    const changes = changed && changesBetween(flat(changed.before), flat(changed.after))
    if (changes)
      await visit.audit(scope, {
        action: 'user.access_changed',
        target: targetOf(person),
        details: { changes },
      })
    return changes !== undefined
  })
  const text = isChanged
    ? `What ${person.fullName} may do is changed, from now on.`
    : 'Nothing was changed.'
  return { to: `/people/${person.id}`, notice: { kind: 'ok', text } }
}

async function makeLink(visit: Visit): Promise<Answer> {
  const person = await findPerson(visit)
  const link = await visit.change(async (scope) => {
    // In here: whoever became the Owner a moment ago must not be given away by the one before.
    const present = await findUser(scope, person.id, { forUpdate: true })
    if (present?.role === 'owner')
      throw new Refused('You change your own password on your own page')
    if (present?.status !== 'active')
      throw new Refused(`${person.fullName} is deactivated: reactivate them first`)
    const made = await invite(scope, person.id, visit.now)
    await visit.audit(scope, {
      action: person.hasJoined ? 'user.password_link_made' : 'user.invitation_renewed',
      target: targetOf(person),
    })
    return made
  })
  return linkPage(visit, person, link, person.hasJoined)
}

async function withdraw(visit: Visit): Promise<Answer> {
  const person = await findPerson(visit)
  await visit.change(async (scope) => {
    if (!(await deleteInvitedUser(scope, person.id)))
      throw new Refused(
        `${person.fullName} has joined or has API keys already: deactivate them instead`,
      )
    await visit.audit(scope, {
      action: 'user.invitation_withdrawn',
      target: targetOf(person),
      details: { email: person.email },
    })
  })
  return {
    to: '/people',
    notice: { kind: 'ok', text: `The invitation of ${person.fullName} is withdrawn.` },
  }
}

async function deactivate(visit: Visit): Promise<Answer> {
  return switchStatus(visit, 'deactivated')
}

async function reactivate(visit: Visit): Promise<Answer> {
  return switchStatus(visit, 'active')
}

async function switchStatus(visit: Visit, status: User['status']): Promise<Answer> {
  const person = await findPerson(visit)
  const { id, fullName } = person
  const isActive = status === 'active'
  await visit.change(async (scope) => {
    await updateUserStatus(scope, id, status, visit.now)
    if (!isActive) {
      // Not only refused as long as this lasts: nobody comes back by an old cookie or link.
      await deleteSessions(scope, id)
      await deleteInvitation(scope, id)
    }
    if (person.status !== status)
      await visit.audit(scope, {
        action: isActive ? 'user.reactivated' : 'user.deactivated',
        target: targetOf(person),
      })
  })
  const text = isActive
    ? `${fullName} can sign in again, and their API keys work again.`
    : `${fullName} is deactivated and signed out.`
  return { to: `/people/${id}`, notice: { kind: 'ok', text } }
}
