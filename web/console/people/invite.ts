/** Inviting a user, and the page that shows a one-time link. */
import { invite } from '../../../auth/invitation.ts'
import { TooOften } from '../../../auth/rate-limit.ts'
import type { WriteScope } from '../../../records/database/scope.ts'
import { assertName } from '../../../records/names.ts'
import {
  assertEmail,
  EmailTaken,
  emailKey,
  findUser,
  insertUser,
  listUsers,
  permissionsByRole,
  type User,
} from '../../../records/users.ts'
import { html } from '../../shared/html.ts'
import { type Errors, form, problemsOf, textField } from '../form-fields.ts'
import { utc } from '../format.ts'
import {
  type ConsolePage,
  get,
  isOwner,
  type PageResult,
  post,
  type Route,
  type Visit,
} from '../page.ts'
import { buttonLink, card, codeBlock, note } from '../ui.ts'
import { accessFields, flattenAccess, readAccess } from './access-form.ts'
import { userTarget } from './person.ts'

export const inviteRoutes: Route[] = [
  get('/people/invite', isOwner, (visit) => invitePage(visit)),
  post('/people/invite', isOwner, createInvitation),
]

const NEW_MEMBER = { role: 'member' as const, grants: [], permissions: permissionsByRole.member }

function invitePage(visit: Visit, errors: Errors = {}): ConsolePage {
  const isSent = visit.ctx.method === 'POST'
  return {
    title: 'Invite a teammate',
    lead: 'You get a link to send them. It works once, for seven days.',
    crumbs: [{ label: 'People', to: '/people' }],
    status: isSent ? 422 : 200,
    isNarrow: true,
    body: card(
      '',
      form({ to: '/people/invite', submit: 'Create invite link', cancel: '/people', errors }, [
        textField({
          name: 'full_name',
          label: 'Name',
          value: visit.form.get('full_name') ?? '',
          maxLength: 200,
          isRequired: true,
          errors,
        }),
        textField({
          name: 'email',
          label: 'Email',
          hint: 'They sign in with it.',
          type: 'email',
          value: visit.form.get('email') ?? '',
          maxLength: 254,
          isRequired: true,
          errors,
        }),
        accessFields(isSent ? readAccess(visit.form).access : NEW_MEMBER, errors),
      ]),
    ),
  }
}

async function createInvitation(visit: Visit): Promise<PageResult> {
  const fullName = visit.form.get('full_name') ?? ''
  const email = visit.form.get('email') ?? ''
  const { access, errors: accessErrors } = readAccess(visit.form)
  const errors = {
    ...problemsOf({
      full_name: () => assertName('The name', fullName),
      email: () => assertEmail(email),
    }),
    ...accessErrors,
  }
  if (Object.keys(errors).length > 0) return invitePage(visit, errors)
  try {
    await visit.throttle('invite', visit.account.id)
    const { user, link } = await visit.change(async (scope) => {
      const newUser = { ...access, fullName, email, passwordHash: null }
      const user = await readBack(scope, await insertUser(scope, newUser, visit.now))
      const link = await invite(scope, user.id, visit.now)
      await visit.audit(scope, {
        action: 'user.invited',
        target: userTarget(user),
        details: { email: user.email, ...flattenAccess(user) },
      })
      return { user, link }
    })
    return linkPage(visit, user, link, false)
  } catch (error) {
    if (error instanceof TooOften) return invitePage(visit, { email: [error.message] })
    if (error instanceof EmailTaken) return invitePage(visit, await emailTakenErrors(visit, email))
    throw error
  }
}

async function readBack(scope: WriteScope, id: string): Promise<User> {
  const user = await findUser(scope, id)
  if (!user) throw new Error(`User ${id} is missing after its insert`)
  return user
}

/** Does not tell whether another account has a user with this email. */
async function emailTakenErrors({ scope }: Visit, email: string): Promise<Errors> {
  const users = await listUsers(scope)
  const isInAccount = users.some((user) => emailKey(user.email) === emailKey(email))
  return {
    email: [
      isInAccount
        ? 'A user of your account already has this email.'
        : 'This email cannot be used. Enter another one.',
    ],
  }
}

/** The only place that shows the link. */
export function linkPage(
  { config }: Visit,
  user: User,
  { token, expiresAt }: { token: string; expiresAt: number },
  hasJoined: boolean,
): ConsolePage {
  const effect = hasJoined
    ? 'Using it signs them out on all devices.'
    : 'You can create a new one on their page.'
  return {
    title: hasJoined ? `A new password for ${user.fullName}` : `${user.fullName} is invited`,
    crumbs: [
      { label: 'People', to: '/people' },
      { label: user.fullName, to: `/people/${user.id}` },
    ],
    isNarrow: true,
    body: card(
      'Send them this link',
      html`
${note('warn', 'Copy it now. You won’t see it again. Anyone with the link can sign in as this user.')}
${codeBlock(`${config.baseUrl}/console/invitation/${token}`, 'link')}
<p class="muted">It works once, until ${utc(expiresAt)}. ${effect}</p>
<p>${buttonLink('/people', 'Done', 'primary')}</p>`,
    ),
  }
}
