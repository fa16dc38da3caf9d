/** The page of a one-time link, which is an invitation or a password link: the user chooses a
 *  password and is signed in. Opening the page does not use up the link, because mail programs
 *  preview links. */
import { assertPassword, hashPassword } from '../../../auth/password.ts'
import { hashOfToken } from '../../../auth/session.ts'
import { insertAuditEntry } from '../../../records/audit-log.ts'
import { accountTransaction } from '../../../records/database/scope.ts'
import { consumeInvitation, findInvitation, type Invitation } from '../../../records/invitations.ts'
import { updatePassword } from '../../../records/passwords.ts'
import { deleteSessions, type SignedIn } from '../../../records/sessions.ts'
import { userTarget } from '../../../records/users.ts'
import { html } from '../../shared/html.ts'
import { checkFields, type Errors, form, formStatus } from '../form-fields.ts'
import {
  type ConsolePage,
  type GuestVisit,
  guestGet,
  guestPost,
  type PageResult,
  type Route,
  redirect,
} from '../page.ts'
import { note } from '../ui.ts'
import { signInAs } from './sign-in.ts'
import { newPasswordField, usernameField } from './user-fields.ts'

export const invitationRoutes: Route[] = [
  guestGet('/invitation/:token', openLink),
  guestPost('/invitation/:token', useLink),
]

/** One page for all links that cannot be used, so that it does not tell which links existed. */
const UNUSABLE_LINK: ConsolePage = {
  title: 'This link cannot be used',
  status: 404,
  isNarrow: true,
  body: html`
    <p>
      A link works once, within seven days. This one was used, has expired or was replaced by a
      newer one.
    </p>
    <p>
      Ask your Account Owner for a new link. If you have already chosen a password,
      <a href="/console/sign-in">sign in</a>.
    </p>`,
}

interface UnusedLink {
  tokenHash: string
  invitation: Invitation
}

async function findUnusedLink({ params, db, now }: GuestVisit): Promise<UnusedLink | undefined> {
  const tokenHash = hashOfToken(params.token ?? '')
  const invitation = tokenHash && (await findInvitation(db.read, tokenHash, now))
  return invitation ? { tokenHash, invitation } : undefined
}

async function openLink(visit: GuestVisit): Promise<PageResult> {
  const link = await findUnusedLink(visit)
  return link ? passwordPage(visit, link.invitation) : UNUSABLE_LINK
}

function passwordPage(
  { params, ctx }: GuestVisit,
  { user, accountName, hasJoined }: Invitation,
  errors: Errors = {},
): ConsolePage {
  const visitor: SignedIn | undefined = ctx.state.visitor
  const submit = hasJoined ? 'Change password' : 'Join'
  return {
    title: hasJoined ? 'Choose a new password' : `Join ${accountName}`,
    lead: hasJoined ? `For ${user.email}.` : `From now on, sign in as ${user.email}.`,
    status: formStatus(errors),
    isNarrow: true,
    body: [
      visitor &&
        note(
          'warn',
          `You are signed in as ${visitor.user.fullName}. This switches to ${user.fullName}.`,
        ),
      form({ to: `/invitation/${params.token}`, submit, errors }, [
        usernameField(user.email),
        newPasswordField({
          name: 'password',
          label: hasJoined ? 'New password' : 'Choose a password',
          errors,
        }),
      ]),
    ],
  }
}

async function useLink(visit: GuestVisit): Promise<PageResult> {
  const link = await findUnusedLink(visit)
  if (!link) return UNUSABLE_LINK
  const { tokenHash, invitation } = link
  const password = visit.form.get('password') ?? ''
  const { user, accountName, hasJoined } = invitation
  const names = [user.email, user.fullName, accountName]
  const errors = checkFields({ password: () => assertPassword(password, names) })
  if (errors.password) return passwordPage(visit, invitation, errors)

  const passwordHash = await hashPassword(password)
  const isPasswordSet = await accountTransaction(visit.db, user.accountId, async (scope) => {
    if (!(await consumeInvitation(scope, tokenHash, visit.now))) return false
    await updatePassword(scope, user.id, passwordHash, visit.now)
    await deleteSessions(scope, user.id)
    const action = hasJoined ? 'user.password_reset' : 'user.joined'
    await insertAuditEntry(
      scope,
      { user, action, target: userTarget(user), ip: visit.ip },
      visit.now,
    )
    return true
  })
  // The link was used or replaced meanwhile.
  if (!isPasswordSet) return UNUSABLE_LINK
  visit.ctx.state.hasChanged = true
  await signInAs(visit, user, passwordHash)
  return redirect('', hasJoined ? 'Password updated.' : `Welcome to ${accountName}.`)
}
