/** The tests on SQLite that run in one process with the service. They record what they reach. */
import { defineConfig } from 'vitest/config'
import base from '../../vitest.config.ts'

const { projects = [], ...shared } = base.test ?? {}

export default defineConfig({
  test: {
    ...shared,
    projects: projects.flatMap((project) =>
      typeof project === 'object' && 'test' in project && project.test?.name !== 'postgres'
        ? [{ test: { ...project.test, setupFiles: ['test/mutants/record-coverage.ts'] } }]
        : [],
    ),
  },
})
