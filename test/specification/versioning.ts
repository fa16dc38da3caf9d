import type { Section } from './section.ts'

export const versioning: Section = {
  title: '§9 Versioning',
  rows: [
    {
      quote: 'The version is in the path prefix `/public/v1`.',
      tests: [
        'test/contract/list-envelope.test.ts > every path begins with /public/v1',
        'test/contract/paths.test.ts > the unknown path %s → 404 as JSON, without a key',
      ],
    },
    { quote: 'Versioning policy, deprecation rules and other versions: not shown.', tests: [] },
  ],
}
