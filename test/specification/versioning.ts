import type { Section } from './section.ts'

export const versioning: Section = {
  title: '§9 Versioning',
  rows: [
    {
      quote: 'The version is in the path prefix `/public/v1`.',
      tests: [
        'test/contract/list-envelope.test.ts > every path begins with /public/v1',
        'test/contract/http.test.ts > %s is nothing → 404 in our shape, without a key',
      ],
    },
    { quote: 'Versioning policy, deprecation rules and other versions: not shown.', tests: [] },
  ],
}
