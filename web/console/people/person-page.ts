/** The page of a user: access, one-time links and deactivation. Only the Account Owner sees it. */
import { deactivateUser } from '../../../auth/deactivation.ts'
import { invite } from '../../../auth/invitation.ts'
import { Refused } from '../../../errors.ts'
import { changesBetween } from '../../../records/audit-log.ts'
import { deleteInvitation } from '../../../records/invitations.ts'
import {
  deleteInvitedUser,
  findRateLimit,
  findUser,
  type User,
  updateAccess,
  updateUserStatus,
  userTarget,
} from '../../../records/users.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { type Errors, form, formPage, formStatus, hasErrors } from '../form-fields.ts'
import { counted } from '../format.ts'
import { ROLES } from '../layout.ts'
import {
  type ConsolePage,
  get,
  isOwner,
  type PageResult,
  post,
  type Route,
  redirect,
  type Visit,
} from '../page.ts'
import { withQuery } from '../query.ts'
import {
  actionForm,
  actionRow,
  actionRows,
  buttonLink,
  card,
  confirmButton,
  facts,
  timeElement,
} from '../ui.ts'
import { accessFields, flattenAccess, readAccess } from './access-form.ts'
import { linkPage } from './invite.ts'
import {
  changeKeysAndWebhooks,
  type KeysAndWebhooks,
  keysAndWebhooksFields,
  loadKeysAndWebhooks,
} from './keys-and-webhooks.ts'
import { CRUMBS, loadPerson, type Person, personStatus } from './person.ts'

export const personRoutes: Route[] = [
  get('/people/:user', isOwner, async (visit) => personPage(visit, await loadPerson(visit))),
  post('/people/:user', isOwner, changeAccess),
  post('/people/:user/link', isOwner, createLink),
  post('/people/:user/withdraw', isOwner, withdrawInvitation),
  post('/people/:user/link/withdraw', isOwner, withdrawPasswordLink),
  get('/people/:user/deactivate', isOwner, deactivationPage),
  post('/people/:user/deactivate', isOwner, (visit) => switchStatus(visit, 'deactivated')),
  post('/people/:user/reactivate', isOwner, (visit) => switchStatus(visit, 'active')),
]

async function personPage(visit: Visit, person: Person, errors: Errors = {}): Promise<ConsolePage> {
  const { scope, config } = visit
  const [owned, rateLimit] = await Promise.all([
    loadKeysAndWebhooks(visit, person),
    findRateLimit(scope, person, config.quotas),
  ])
  const activeKeys = owned.keys.length
  const isOwnPage = person.role === 'owner'
  return {
    title: person.fullName,
    crumbs: CRUMBS,
    lead: personStatus(person, visit.now),
    status: formStatus(errors),
    isNarrow: true,
    body: [
      card('', personFacts(person, { activeKeys, rateLimit }, visit.now)),
      isOwnPage ? ownerCard() : accessCard(visit, person, owned, errors),
      !isOwnPage && membershipCard(person, visit.now),
    ],
  }
}

function personFacts(
  person: Person,
  { activeKeys, rateLimit }: { activeKeys: number; rateLimit: number },
  now: Date,
): Html {
  const { id, email, role, hasJoined, createdAt } = person
  const keys = html`<a href="/console/api-keys?user=${id}">${counted(activeKeys, 'key')}</a>`
  const requestsPath = withQuery('/requests', { user: id, range: '30d' })
  const requests = html`<a href="/console${requestsPath}">With their keys</a>`
  const history = html`<a href="/console/audit-log?user=${id}">Actions by this user</a> ·
    <a href="/console/audit-log?target=${id}">Changes to this user</a>`
  return facts([
    ['Email', email],
    ['Role', ROLES[role]],
    [hasJoined ? 'Added' : 'Invited', timeElement(createdAt, now)],
    (!hasJoined || hasOpenLink(person, now)) && ['Link', linkExpiry(person, now)],
    ['API keys', activeKeys === 0 ? 'None' : keys],
    ['API requests', requests],
    ['Rate limit', `${counted(rateLimit, 'request')} per minute`],
    ['History', history],
  ])
}

const hasOpenLink = ({ linkExpiresAt = 0 }: Person, now: Date): boolean =>
  linkExpiresAt > now.getTime()

function linkExpiry({ linkExpiresAt }: Person, now: Date): Content {
  if (linkExpiresAt === undefined) return 'None'
  const verb = linkExpiresAt > now.getTime() ? 'Expires' : 'Expired'
  return html`${verb} ${timeElement(linkExpiresAt, now)}`
}

function ownerCard(): Html {
  return card(
    'Access',
    html`<p>
      You own this account. The owner has full access and decides what everyone else can do. To
      change that, <a href="/console/settings">transfer the ownership</a>.
    </p>`,
  )
}

function accessCard(visit: Visit, person: Person, owned: KeysAndWebhooks, errors: Errors): Html {
  const role = person.role === 'admin' ? ('admin' as const) : ('member' as const)
  const access = hasErrors(errors) ? readAccess(visit.form).access : { ...person, role }
  return card(
    'Access',
    form({ to: `/people/${person.id}`, submit: 'Save', errors }, [
      accessFields(access, errors),
      keysAndWebhooksFields(
        visit,
        owned,
        'Keys keep their access when the role changes: a Full Access key can still change records.',
      ),
    ]),
  )
}

function membershipCard(person: Person, now: Date): Html {
  return card('Sign-in and removal', actionRows(membershipActions(person, now)))
}

function membershipActions(person: Person, now: Date): Content[] {
  const { id, hasJoined, status } = person
  if (status === 'deactivated')
    return [
      actionRow({
        text: 'This user cannot sign in, and their API keys are refused. Their data stays.',
        control: actionForm({ to: `/people/${id}/reactivate`, label: 'Reactivate' }),
      }),
    ]
  const linkText = hasJoined
    ? 'Forgot the password? Send a one-time link to choose a new one.'
    : 'This user has not joined yet. A new link replaces the previous one.'
  return [
    actionRow({
      text: linkText,
      control: actionForm({ to: `/people/${id}/link`, label: 'Create a new link' }),
    }),
    hasJoined &&
      hasOpenLink(person, now) &&
      actionRow({
        text: 'A one-time link to choose a new password is open.',
        control: actionForm({ to: `/people/${id}/link/withdraw`, label: 'Withdraw the link' }),
      }),
    !hasJoined &&
      actionRow({
        text: 'Invited by mistake? The link stops working, and the email can be invited again.',
        control: withdrawButton(person),
      }),
    actionRow({
      text: 'Signs them out and disables their API keys. Their data stays.',
      control: buttonLink(`/people/${id}/deactivate`, 'Deactivate', 'danger'),
    }),
  ]
}

function withdrawButton({ id, fullName }: Person): Html {
  return confirmButton('Withdraw the invitation', {
    title: `Withdraw the invitation of ${fullName}?`,
    text: 'Their link stops working immediately.',
    body: actionForm({ to: `/people/${id}/withdraw`, label: 'Withdraw', style: 'danger' }),
  })
}

async function deactivationPage(visit: Visit): Promise<ConsolePage> {
  const person = await loadPerson(visit)
  const { id, fullName } = person
  const to = `/people/${id}`
  return formPage(
    {
      title: `Deactivate ${fullName}?`,
      lead: 'They are signed out everywhere, and cannot sign in. You can reactivate them later.',
      crumbs: [...CRUMBS, { label: fullName, to }],
    },
    { to: `${to}/deactivate`, submit: 'Deactivate', style: 'danger', cancel: to },
    keysAndWebhooksFields(
      visit,
      await loadKeysAndWebhooks(visit, person),
      'Keys that you keep are refused until you reactivate the user.',
    ),
  )
}

async function changeAccess(visit: Visit): Promise<PageResult> {
  const person = await loadPerson(visit)
  const { access, errors } = readAccess(visit.form)
  // For the Account Owner, `updateAccess` refuses every change, whatever the fields contain.
  if (hasErrors(errors) && person.role !== 'owner') return personPage(visit, person, errors)
  const texts = await visit.change(async (scope) => {
    const updated = await updateAccess(scope, person.id, access, visit.now)
    const changes =
      updated && changesBetween(flattenAccess(updated.before), flattenAccess(updated.after))
    if (changes) await visit.audit(scope, 'user.access_changed', userTarget(person), { changes })
    return [
      changes ? `Access of ${person.fullName} updated.` : '',
      changedText(await changeKeysAndWebhooks(visit, scope, person)),
    ]
  })
  const text = texts.filter(Boolean).join(' ') || 'No changes to save.'
  return redirect(`/people/${person.id}`, text)
}

function changedText(changes: number): string {
  return changes === 0 ? '' : `${counted(changes, 'key or webhook', 'keys and webhooks')} changed.`
}

async function createLink(visit: Visit): Promise<PageResult> {
  const person = await loadPerson(visit)
  const link = await visit.change(async (scope) => {
    // Checked in the transaction: a link for a user who has just become the Account Owner would
    // give the account away.
    const current = await findUser(scope, person.id, { forUpdate: true })
    if (current?.role === 'owner') throw new Refused('Change your own password on your profile.')
    if (current?.status !== 'active')
      throw new Refused(`${person.fullName} is deactivated. Reactivate them first.`)
    // A password link is an invitation of a user who has joined.
    const created = await invite(scope, person.id, visit.now)
    await visit.audit(
      scope,
      person.hasJoined ? 'user.password_link_made' : 'user.invitation_renewed',
      userTarget(person),
    )
    return created
  })
  return linkPage(visit, person, link)
}

async function withdrawInvitation(visit: Visit): Promise<PageResult> {
  const person = await loadPerson(visit)
  const { id, fullName, email } = person
  await visit.change(async (scope) => {
    if (!(await deleteInvitedUser(scope, id)))
      throw new Refused(`${fullName} has joined or has API keys. Deactivate them instead.`)
    await visit.audit(scope, 'user.invitation_withdrawn', userTarget(person), { email })
  })
  return redirect('/people', `The invitation of ${fullName} is withdrawn.`)
}

async function withdrawPasswordLink(visit: Visit): Promise<PageResult> {
  const person = await loadPerson(visit)
  await visit.change(async (scope) => {
    if (await deleteInvitation(scope, person.id))
      await visit.audit(scope, 'user.password_link_withdrawn', userTarget(person))
  })
  return redirect(`/people/${person.id}`, `The password link of ${person.fullName} is withdrawn.`)
}

async function switchStatus(visit: Visit, status: User['status']): Promise<PageResult> {
  const person = await loadPerson(visit)
  const { id, fullName } = person
  const isActive = status === 'active'
  const changes = await visit.change(async (scope) => {
    const before = isActive
      ? await updateUserStatus(scope, id, status, visit.now)
      : await deactivateUser(scope, id, visit.now)
    if (before?.status !== status)
      await visit.audit(
        scope,
        isActive ? 'user.reactivated' : 'user.deactivated',
        userTarget(person),
      )
    return isActive ? 0 : changeKeysAndWebhooks(visit, scope, person)
  })
  const text = isActive
    ? `${fullName} can sign in again, and their API keys work again.`
    : `${fullName} is deactivated and signed out. ${changedText(changes)}`
  return redirect(`/people/${id}`, text.trim())
}
