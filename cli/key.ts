import { Option } from 'commander'
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
import { formatKeyHint } from './account.ts'
import { auditCommand } from './audit.ts'
import { type Columns, commandGroup, databaseCommand, listOutput } from './commands.ts'
import { lookUpUser } from './lookup.ts'
import { formatTime } from './shell.ts'

interface CreateOptions {
  email: string
  name: string
  access: AccessLevel
}

const create = databaseCommand({
  name: 'create',
  summary: 'create an API key for a user',
  description:
    'Create an API key for a user. The token is shown once, because only its hash and its beginning are stored. ' +
    "The user's Finance permission also applies to the key.",
  declare: (command) =>
    command
      .requiredOption('--email <email>', 'the user who owns the key')
      .requiredOption('--name <name>', 'the name of the key, for example its purpose')
      .addOption(
        new Option('--access <level>', 'the access level')
          .choices(accessLevels)
          .makeOptionMandatory(),
      ),
  examples: ["muster key create --email ann@example.com --name 'Nightly sync' --access read_only"],
  async run({ db, config, now }, { email, name, access }: CreateOptions) {
    const { id: userId, accountId } = await lookUpUser(db, email)
    const { id, token } = await accountTransaction(db, accountId, async (scope) => {
      const at = now()
      const created = await issueApiKey(scope, { userId, name, accessLevel: access }, at)
      const target = { type: 'api_key', id: created.id, name: name.trim() } as const
      const details = { access_level: access, owner: email }
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
        'Try it. The URL comes from the settings BASE_URL and PORT:',
        '',
        `  curl -H 'Authorization: Bearer ${token}' ${config.baseUrl}/public/v1/participants`,
      ].join('\n'),
    }
  },
})

const list = databaseCommand({
  name: 'list',
  summary: "list a user's API keys",
  description:
    "List a user's API keys, also the revoked ones. Only the beginning of each token can be shown.",
  declare: (command) => command.requiredOption('--email <email>', 'the user who owns the keys'),
  examples: [
    'muster key list --email ann@example.com',
    'muster key list --email ann@example.com --json',
  ],
  async run({ db }, { email }: { email: string }) {
    const user = await lookUpUser(db, email)
    const keys = await listApiKeys(readScope(db, user.accountId), user.id)
    const none = `${user.email} has no API keys. ${formatKeyHint(user.email)}`
    return listOutput(keys, { toDocument, columns: COLUMNS, none })
  },
})

const revoke = databaseCommand({
  name: 'revoke',
  summary: 'revoke an API key for good',
  description: 'Revoke an API key. Running nodes refuse its next request. This cannot be undone.',
  declare: (command) => command.argument('<id>', 'the ID of the key, from `muster key list`'),
  examples: ['muster key revoke ID'],
  async run({ db, now }, id: string) {
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
  },
})

export const addCommand = commandGroup('key', 'Create, list and revoke API keys.', [
  create,
  list,
  revoke,
])

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

const COLUMNS: Columns<ApiKey> = {
  ID: ({ id }) => id,
  NAME: ({ name }) => name,
  ACCESS: ({ accessLevel }) => accessLevel,
  TOKEN: ({ tokenPrefix }) => `${tokenPrefix}…`,
  CREATED: ({ createdAt }) => formatTime(createdAt),
  'LAST USED': ({ lastUsedAt }) => formatTime(lastUsedAt) ?? 'never',
  STATE: ({ revokedAt }) => (revokedAt ? `revoked ${formatTime(revokedAt)}` : 'valid'),
}
