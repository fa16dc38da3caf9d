/** States of PostgreSQL in which the service must not start. test/cli/refusals.test.ts has the
 *  others. */
import { describe, expect, inject, it } from 'vitest'
import { migrate } from '../../records/database/migrate.ts'
import { type Db, openDatabase } from '../../records/database/open.ts'
import { proveSecretKeys } from '../../webhooks/secret-keys.ts'
import { secretKeysOf } from '../../webhooks/transport/secret.ts'
import { newMuster } from '../cli/muster.ts'
import { SERVE_ENVIRONMENT } from '../cli/serving.ts'
import { databaseUrlOf, newDatabase } from '../helpers.ts'

interface State {
  state: string
  prepare(db: Db): Promise<unknown>
  /** The user in the URL. The owner of the database by default. */
  user?: string
  sslmode?: string
  says: RegExp
}

const STATES: State[] = [
  {
    state: 'a user without rights',
    prepare: (db) =>
      db.write.raw(
        `do $$ begin create role muster_reader login; exception when duplicate_object then null; end $$`,
      ),
    user: 'muster_reader',
    says: /^PostgreSQL denies the user of DATABASE_URL a permission: permission denied for schema public\. Make this user the owner of the database\.$/,
  },
  {
    state: 'a user who does not exist',
    prepare: async () => undefined,
    user: 'nobody_here',
    says: /^PostgreSQL refuses the user or the password of DATABASE_URL: role "nobody_here" does not exist\. Correct DATABASE_URL\.$/,
  },
  {
    state: 'a server without TLS',
    prepare: async () => undefined,
    sslmode: 'verify-full',
    says: /^TLS to PostgreSQL failed: The server does not support SSL connections\. Correct sslmode in DATABASE_URL/,
  },
  {
    state: 'another SECRET_KEY',
    async prepare(db) {
      await migrate(db)
      await proveSecretKeys(
        db,
        secretKeysOf('the key that the installation used before this start'),
      )
    },
    says: /^SECRET_KEY is not the key that encrypted the signing secrets in the database\. Set SECRET_KEY to the key/,
  },
  {
    state: 'a missing column',
    async prepare(db) {
      await migrate(db)
      await db.write.raw('alter table webhooks drop column description')
    },
    says: /Missing: column webhooks\.description\. Change the schema back to that of records\/schema\.postgres\.json, or restore a backup\.$/,
  },
]

describe.skipIf(inject('database') !== 'postgres')(
  'serve on PostgreSQL is refused with status 1 and one sentence',
  () => {
    it.each(STATES)('$state', async ({ prepare, user, sslmode, says }) => {
      await using database = await newDatabase('postgres')
      await using muster = await newMuster()
      const databaseUrl = databaseUrlOf(database)
      const db = openDatabase({ databaseUrl })
      await prepare(db)
      await db.close()
      const url = new URL(databaseUrl)
      if (user !== undefined) url.username = user
      if (sslmode !== undefined) url.searchParams.set('sslmode', sslmode)
      const { status, stderr } = await muster.run(['serve'], {
        environment: { ...SERVE_ENVIRONMENT, ...database.environment, DATABASE_URL: url.href },
      })
      expect(status).toBe(1)
      expect(stderr).not.toMatch(/^\s+at /m)
      expect(stderr.trimEnd()).toMatch(says)
    })
  },
)
