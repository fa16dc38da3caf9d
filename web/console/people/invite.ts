/** Inviting a user, and the page that shows a one-time link. */
import { invite } from '../../../auth/invitation.ts'
import type { WriteScope } from '../../../records/database/scope.ts'
import { parseName } from '../../../records/names.ts'
import {
  EmailTaken,
  emailKey,
  findUser,
  insertUser,
  listUsers,
  parseEmail,
  permissionsByRole,
  type User,
  userTarget,
} from '../../../records/users.ts'
import { html } from '../../shared/html.ts'
import { emailField, UNUSABLE_EMAIL } from '../account/user-fields.ts'
import {
  checkFields,
  type Errors,
  formPage,
  hasErrors,
  textField,
  typedFields,
} from '../form-fields.ts'
import { absoluteTime } from '../format.ts'
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
import { CRUMBS } from './person.ts'

export const inviteRoutes: Route[] = [
  get('/people/invite', isOwner, (visit) => invitePage(visit)),
  post('/people/invite', isOwner, createInvitation),
]

/** The initial values of the form. */
const NEW_MEMBER = { role: 'member' as const, grants: [], permissions: permissionsByRole.member }

function invitePage(visit: Visit, errors: Errors = {}): ConsolePage {
  const field = typedFields(visit.form, errors)
  const access = hasErrors(errors) ? readAccess(visit.form).access : NEW_MEMBER
  return formPage(
    {
      title: 'Invite a teammate',
      lead: 'You get a link to send them. It works once, for seven days.',
      crumbs: CRUMBS,
    },
    { to: '/people/invite', submit: 'Create invite link', cancel: '/people', errors },
    [
      textField({ ...field('full_name', 'Name'), maxLength: 200 }),
      emailField({ ...field('email', 'Email'), hint: 'They sign in with it.' }),
      accessFields(access, errors),
    ],
  )
}

async function createInvitation(visit: Visit): Promise<PageResult> {
  const fullName = visit.form.get('full_name') ?? ''
  const email = visit.form.get('email') ?? ''
  const { access, errors: accessErrors } = readAccess(visit.form)
  const errors = {
    // The parsed values are not used: `insertUser` parses them again.
    ...checkFields({
      full_name: () => parseName('The name', fullName),
      email: () => parseEmail(email),
    }),
    ...accessErrors,
  }
  if (hasErrors(errors)) return invitePage(visit, errors)
  const tooOften = await visit.throttles.consume('invite', visit.account.id)
  if (tooOften) return invitePage(visit, { email: [tooOften.message] })
  try {
    const { user, link } = await visit.change(async (scope) => {
      const newUser = { ...access, fullName, email, passwordHash: null }
      const user = await readBack(scope, await insertUser(scope, newUser, visit.now))
      const link = await invite(scope, user.id, visit.now)
      await visit.audit(scope, 'user.invited', userTarget(user), {
        email: user.email,
        ...flattenAccess(user),
      })
      return { user, link }
    })
    return linkPage(visit, { ...user, hasJoined: false }, link)
  } catch (error) {
    if (error instanceof EmailTaken) return invitePage(visit, await emailTakenErrors(visit, email))
    throw error
  }
}

/** The user as stored: `insertUser` returns only the ID. */
async function readBack(scope: WriteScope, id: string): Promise<User> {
  const user = await findUser(scope, id)
  if (!user) throw new Error(`User ${id} is missing after its insert`)
  return user
}

async function emailTakenErrors({ scope }: Visit, email: string): Promise<Errors> {
  const users = await listUsers(scope)
  const isInAccount = users.some((user) => emailKey(user.email) === emailKey(email))
  return isInAccount
    ? { email: ['A user of your account already has this email.'] }
    : UNUSABLE_EMAIL
}

/** The only page that shows a one-time link, which is an invitation or a password link. */
export function linkPage(
  { config }: Visit,
  user: Pick<User, 'id' | 'fullName'> & { hasJoined: boolean },
  { token, expiresAt }: { token: string; expiresAt: number },
): ConsolePage {
  const { id, fullName, hasJoined } = user
  const hint = hasJoined
    ? 'Using it signs them out on all devices.'
    : 'You can create a new one on their page.'
  return {
    title: hasJoined ? `A new password for ${fullName}` : `${fullName} is invited`,
    crumbs: [...CRUMBS, { label: fullName, to: `/people/${id}` }],
    isNarrow: true,
    body: card('Send them this link', [
      note(
        'warn',
        'Copy it now. You won’t see it again. Anyone with the link can sign in as this user.',
      ),
      codeBlock(`${config.baseUrl}/console/invitation/${token}`, 'link'),
      html`<p class="muted">It works once, until ${absoluteTime(expiresAt)}. ${hint}</p>
        <p>${buttonLink('/people', 'Done', 'primary')}</p>`,
    ]),
  }
}
