/** The role, grants and permissions of a user, as the Account Owner sets them. */
import {
  type Grant,
  grants,
  type Module,
  modules,
  type Permission,
  type Permissions,
  permissions,
  type User,
  type UserAccess,
} from '../../../records/users.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { choiceField, type Errors } from '../form-fields.ts'
import { capital } from '../format.ts'

export const MODULE_LABELS: Record<Module, string> = {
  participants: 'Participants',
  tasks: 'Tasks',
  jobs: 'Jobs and applications',
  exports: 'Exports',
  finance: 'Finance',
}
export const SHORT_MODULE_LABELS: Record<Module, string> = { ...MODULE_LABELS, jobs: 'Jobs' }
export const PERMISSION_LABELS: Record<Permission, string> = {
  none: 'None',
  read: 'View',
  write: 'Edit',
}
const GRANT_LABELS: Record<Grant, string> = { api_keys: 'API keys', webhooks: 'webhooks' }

/** `API keys and webhooks`, `Webhooks`, or an empty string. */
export function formatGrants({ grants: granted }: Pick<User, 'grants'>): string {
  return capital(granted.map((grant) => GRANT_LABELS[grant]).join(' and '))
}

/** With a permission for every module. */
type CompleteAccess = UserAccess & { permissions: Permissions }

/** Reads the fields of `accessFields`. An invalid or missing role or permission is an error, and
 *  counts as the least access. Unknown grants are ignored. */
export function readAccess(form: URLSearchParams): { access: CompleteAccess; errors: Errors } {
  const errors: Errors = {}
  const role = form.get('role')
  if (role !== 'admin' && role !== 'member') errors.role = ['Choose a role.']
  const chosenPermissions = modules.map((module): [Module, Permission] => {
    const chosen = permissions.find((permission) => permission === form.get(module))
    if (!chosen) errors[module] = ['Choose a permission.']
    return [module, chosen ?? 'none']
  })
  const isAdmin = role === 'admin'
  const access: CompleteAccess = {
    role: isAdmin ? 'admin' : 'member',
    // The form hides the checkboxes of the grants for the role Member, but they stay ticked.
    grants: isAdmin ? grants.filter((grant) => form.getAll('grants').includes(grant)) : [],
    permissions: Object.fromEntries(chosenPermissions) as Permissions,
  }
  return { access, errors }
}

/** The access as one flat object, which `changesBetween` in records/audit-log.ts can compare. */
export function flattenAccess({
  role,
  grants: granted,
  permissions: byModule,
}: CompleteAccess | User): object {
  return {
    role,
    ...Object.fromEntries(grants.map((grant) => [`manages_${grant}`, granted.includes(grant)])),
    ...byModule,
  }
}

export function accessFields(access: CompleteAccess, errors: Errors): Content {
  return html`
    ${roleField(access, errors)}
    <div class="for-admins">${grantsField(access, errors)}</div>
    <fieldset class="field">
      <legend>Records</legend>
      <p class="hint">
        Applies to this console. The user’s API keys can access all records, with one exception:
        payments need View or Edit for Finance.
      </p>
      ${modules.map((module) => permissionField(module, access, errors))}
    </fieldset>`
}

function roleField({ role }: CompleteAccess, errors: Errors): Html {
  return choiceField({
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
  })
}

function grantsField({ grants: granted }: CompleteAccess, errors: Errors): Html {
  return choiceField({
    name: 'grants',
    legend: 'Can manage',
    hint: 'Every admin can view these. Choose what this admin can also change.',
    choices: [
      {
        value: 'api_keys',
        label: 'API keys',
        hint: 'Create, update and revoke keys of the account.',
      },
      {
        value: 'webhooks',
        label: 'Webhooks',
        hint: 'Create, update and delete webhooks, and retry or resend deliveries, also by API.',
      },
    ],
    values: granted,
    isMultiple: true,
    errors,
  })
}

function permissionField(module: Module, access: CompleteAccess, errors: Errors): Html {
  const choice = (permission: Permission): Html => {
    const checked = permission === access.permissions[module] && html` checked`
    return html`<label>
      <input type="radio" name="${module}" value="${permission}"${checked}>
      <span>${PERMISSION_LABELS[permission]}</span>
    </label>`
  }
  return html`<div class="segments-row" role="radiogroup" aria-labelledby="label-${module}">
    <span id="label-${module}">${MODULE_LABELS[module]}</span>
    <span class="segments">${permissions.map(choice)}</span>
    ${errors[module] && html`<p class="field-error">${errors[module].join(' ')}</p>`}
  </div>`
}
