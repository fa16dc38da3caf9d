import { defineConfig } from 'orval'

export default defineConfig({
  muster: {
    input: '../contracts/openapi.yaml',
    output: {
      target: 'generated/orval.ts',
      client: 'fetch',
      override: { mutator: { path: 'orval-fetch.ts', name: 'send' } },
    },
  },
})
