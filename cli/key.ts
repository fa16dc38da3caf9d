import { type Command, Option } from 'commander'
import { validate as isUuid } from 'uuid'
import { issueApiKey } from '../auth/api-key.ts'
import { Refused } from '../errors.ts'
import {
  type AccessLevel,
  type ApiKey,
  accessLevels,
  findApiKey,
  listApiKeys,
  revokeApiKey,
} from '../records/api-keys.ts'
import { accountTransaction, readScope } from '../records/database/scope.ts'
import type { User } from '../records/users.ts'
import { formatKeyHint } from './account.ts'
import { auditCommand } from './audit.ts'
import { lookUpUser } from './lookup.ts'
import { examples, formatTable, formatTime, type Shell } from './shell.ts'

interface CreateOptions {
  email: string
  name: string
  access: AccessLevel
}

export function addCommand(program: Command, shell: Shell): void {
  const key = program.command('key').description('Create, list and revoke API keys.')
  addCreate(key, shell)
  addList(key, shell)
  addRevoke(key, shell)
}

function addCreate(key: Command, shell: Shell): void {
  key
    .command('create')
    .summary('create an API key for a user')
    .description(
      'Create an API key for a user. The token is shown once, because only its hash and its beginning are stored. ' +
        "The user's Finance permission also applies to the key.",
    )
    .requiredOption('--email <email>', 'the user who owns the key')
    .requiredOption('--name <name>', 'the name of the key, for example its purpose')
    .addOption(
      new Option('--access <level>', 'the access level')
        .choices(accessLevels)
        .makeOptionMandatory(),
    )
    .addHelpText(
      'after',
      examples(
        "muster key create --email ann@example.com --name 'Nightly sync' --access read_only",
      ),
    )
    .action(
      shell.databaseAction(async ({ db, config, now }, options: CreateOptions) => {
        const { id: userId, accountId } = await lookUpUser(db, options.email)
        const { id, token } = await accountTransaction(db, accountId, async (scope) => {
          const at = now()
          const created = await issueApiKey(
            scope,
            { userId, name: options.name, accessLevel: options.access },
            at,
          )
          const target = { type: 'api_key', id: created.id, name: options.name.trim() } as const
          const details = { access_level: options.access, owner: options.email }
          await auditCommand(scope, { action: 'api_key.created', target, details }, at)
          return created
        })
        return {
          document: { id, token },
          text: [
            `Key ${id} was created. Its token is shown only once:`,
            '',
            `  ${token}`,
            '',
            `Try it:  curl -H 'Authorization: Bearer ${token}' ${config.baseUrl}/public/v1/participants`,
          ].join('\n'),
        }
      }),
    )
}

function addList(key: Command, shell: Shell): void {
  key
    .command('list')
    .summary("list a user's API keys")
    .description(
      "List a user's API keys, also the revoked ones. Only the beginning of each token can be shown.",
    )
    .requiredOption('--email <email>', 'the user who owns the keys')
    .addHelpText(
      'after',
      examples(
        'muster key list --email ann@example.com',
        'muster key list --email ann@example.com --json',
      ),
    )
    .action(
      shell.databaseAction(async ({ db }, options: { email: string }) => {
        const user = await lookUpUser(db, options.email)
        const keys = await listApiKeys(readScope(db, user.accountId), user.id)
        return {
          document: keys.map(toDocument),
          text: keys.length === 0 ? noKeys(user) : toTable(keys),
        }
      }),
    )
}

function addRevoke(key: Command, shell: Shell): void {
  key
    .command('revoke')
    .summary('revoke an API key for good')
    .description('Revoke an API key. Running nodes refuse its next request. This cannot be undone.')
    .argument('<id>', 'the ID of the key, from `muster key list`')
    .addHelpText('after', examples('muster key revoke ID'))
    .action(
      shell.databaseAction(async ({ db, now }, id: string) => {
        const found = isUuid(id) ? await findApiKey(db.read, id) : undefined
        if (!found) throw new Refused(`There is no API key ${id}`)
        await accountTransaction(db, found.accountId, async (scope) => {
          const at = now()
          const keyBefore = await revokeApiKey(scope, id, at)
          if (!keyBefore || keyBefore.revokedAt !== null) return
          const target = { type: 'api_key', id, name: keyBefore.name } as const
          await auditCommand(scope, { action: 'api_key.revoked', target }, at)
        })
        const revokedAt = formatTime((await findApiKey(db.read, id))?.revokedAt ?? null)
        return {
          document: { id, revoked_at: revokedAt },
          text: found.revokedAt
            ? `Key ${id} was already revoked at ${revokedAt}.`
            : `Key ${id} (${found.name}) was revoked.`,
        }
      }),
    )
}

const noKeys = (user: User): string => `${user.email} has no API keys. ${formatKeyHint(user.email)}`

function toDocument(key: ApiKey) {
  return {
    id: key.id,
    name: key.name,
    access_level: key.accessLevel,
    token_prefix: key.tokenPrefix,
    created_at: formatTime(key.createdAt),
    last_used_at: formatTime(key.lastUsedAt),
    revoked_at: formatTime(key.revokedAt),
  }
}

function toTable(keys: ApiKey[]): string {
  return formatTable(
    ['ID', 'NAME', 'ACCESS', 'TOKEN', 'CREATED', 'LAST USED', 'STATE'],
    keys.map((key) => [
      key.id,
      key.name,
      key.accessLevel,
      `${key.tokenPrefix}…`,
      formatTime(key.createdAt),
      formatTime(key.lastUsedAt) ?? 'never',
      key.revokedAt ? `revoked ${formatTime(key.revokedAt)}` : 'valid',
    ]),
  )
}
