import { defineConfig } from 'vitest/config'

/** `plain` runs once, on SQLite. `onBoth` runs twice: on SQLite and on PostgreSQL, with many files in
 *  one process, because loading the service takes longer than most tests. */
const plain = [
  'test/specification.test.ts',
  'test/{auth,cli,client,deploy,docs,runtime,scripts,server}/**/*.test.ts',
]
const onBoth = ['test/{console,handlers,records,webhooks,contract,crash,upgrade}/**/*.test.ts']
// The timeouts are long, because machines also run other work. They only end a test that hangs:
// tests wait for conditions.
const shared = {
  testTimeout: 60_000,
  hookTimeout: 90_000,
  globalSetup: ['test/postgres.ts'],
}

export default defineConfig({
  test: {
    maxWorkers: 2,
    projects: [
      {
        test: {
          ...shared,
          name: 'plain',
          include: plain,
          globalSetup: [],
          provide: { database: 'sqlite' },
        },
      },
      {
        test: {
          ...shared,
          name: 'sqlite',
          include: onBoth,
          isolate: false,
          globalSetup: [],
          provide: { database: 'sqlite' },
        },
      },
      {
        test: {
          ...shared,
          name: 'postgres',
          include: onBoth,
          isolate: false,
          setupFiles: ['test/statements.ts'],
          provide: { database: 'postgres' },
        },
      },
    ],
  },
})
