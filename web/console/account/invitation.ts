/** The page behind a one-time link: whoever follows it chooses a password and is signed in. Looking at it does not use it up, as programs that
 *  look at links in messages do. */
import { assertPassword, hashPassword } from '../../../auth/password.ts'
import { hashOfToken } from '../../../auth/session.ts'
import { insertAuditEntry } from '../../../records/audit-log.ts'
import { writeScope } from '../../../records/database/scope.ts'
import { transaction } from '../../../records/database/transaction.ts'
import { findInvitation, type Invitation, takeInvitation } from '../../../records/invitations.ts'
import { deleteSessions, type SignedIn } from '../../../records/sessions.ts'
import { updatePassword } from '../../../records/users.ts'
import { html } from '../../shared/html.ts'
import {
  type Answer,
  type GuestVisit,
  guestGet,
  guestPost,
  type Page,
  type Route,
} from '../page.ts'
import { type Errors, form, note, passwordField, problemsOf } from '../ui.ts'
import { PASSWORD_HINT, usernameOf } from './own-password.ts'
import { signInAs } from './sign-in.ts'

export const invitationRoutes: Route[] = [
  guestGet('/invitation/:token', openInvitation),
  guestPost('/invitation/:token', acceptInvitation),
]

/** One text for all of it: who holds a wrong link learns nothing. */
const GONE: Page = {
  title: 'This link cannot be used',
  status: 404,
  isNarrow: true,
  body: html`<p>It works once and for seven days. It was used, has expired or was replaced by a newer one.</p><p>Ask the Owner of your account for a new link. If you have chosen a password already, <a href="/console/sign-in">sign in</a>.</p>`,
}

async function findOpen({
  params,
  db,
  now,
}: GuestVisit): Promise<{ tokenHash: string; invitation: Invitation } | undefined> {
  const tokenHash = hashOfToken(params.token ?? '')
  const invitation = tokenHash && (await findInvitation(db.read, tokenHash, now))
  return invitation ? { tokenHash, invitation } : undefined
}

async function openInvitation(visit: GuestVisit): Promise<Answer> {
  const open = await findOpen(visit)
  return open ? invitationPage(visit, open.invitation) : GONE
}

function invitationPage(
  { params, ctx }: GuestVisit,
  { user, accountName, hasJoined }: Invitation,
  errors: Errors = {},
): Page {
  const present: SignedIn | undefined = ctx.state.visitor
  return {
    title: hasJoined ? 'Choose a new password' : `Join ${accountName}`,
    lead: hasJoined ? `For ${user.email}.` : `You sign in as ${user.email} from now on.`,
    status: Object.keys(errors).length > 0 ? 422 : 200,
    isNarrow: true,
    body: html`${present && note('warn', `You are signed in as ${present.user.fullName}. This signs you out, and in as ${user.fullName}.`)}${form(
      {
        to: `/invitation/${params.token}`,
        submit: hasJoined ? 'Change the password' : 'Join',
        errors,
      },
      [
        usernameOf(user.email),
        passwordField({
          name: 'password',
          label: hasJoined ? 'New password' : 'Choose a password',
          hint: PASSWORD_HINT,
          autocomplete: 'new-password',
          errors,
        }),
      ],
    )}`,
  }
}

async function acceptInvitation(visit: GuestVisit): Promise<Answer> {
  const open = await findOpen(visit)
  if (!open) return GONE
  const { tokenHash, invitation } = open
  const password = visit.form.get('password') ?? ''
  const errors = problemsOf({ password: () => assertPassword(password) })
  if (errors.password) return invitationPage(visit, invitation, errors)

  const { user, accountName, hasJoined } = invitation
  const passwordHash = await hashPassword(password)
  const isOurs = await transaction(visit.db, async (trx) => {
    const scope = writeScope(trx, user.accountId)
    if (!(await takeInvitation(scope, tokenHash, visit.now))) return false
    await updatePassword(scope, user.id, passwordHash, visit.now)
    await deleteSessions(scope, user.id)
    const target = { type: 'user', id: user.id, name: user.fullName } as const
    const action = hasJoined ? 'user.password_reset' : 'user.joined'
    await insertAuditEntry(scope, { user, action, target, ip: visit.ip }, visit.now)
    return true
  })
  if (!isOurs) return GONE
  await signInAs(visit, user, passwordHash)
  return {
    to: '',
    notice: {
      kind: 'ok',
      text: hasJoined ? 'Your password is changed.' : `Welcome to ${accountName}.`,
    },
  }
}
