import { defineConfig } from 'vitest/config'

/** The same suite on both databases. What needs no database runs once, in `plain`. */
const plain = ['test/{auth,cli,client,docs,scripts,server}/**/*.test.ts']
const onBoth = ['test/{console,handlers,records,webhooks,contract,crash}/**/*.test.ts']
// Clocks, sockets and memory on a machine that does other things too: what is wrong is wrong twice.
const shared = {
  retry: 1,
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
          globalSetup: [],
          provide: { database: 'sqlite' },
        },
      },
      { test: { ...shared, name: 'postgres', include: onBoth, provide: { database: 'postgres' } } },
    ],
  },
})
